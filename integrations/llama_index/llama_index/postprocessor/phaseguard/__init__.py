"""phaseguard for LlamaIndex: the postprocessor normalizes and marks, the LLM layer aligns the final prompt."""

from llama_index.postprocessor.phaseguard.llms import PhaseGuardFunctionCallingLLM, PhaseGuardLLM, guard_llm
from llama_index.postprocessor.phaseguard.nodes import PhaseGuardPostprocessor

__all__ = ["PhaseGuardFunctionCallingLLM", "PhaseGuardLLM", "PhaseGuardPostprocessor", "guard_llm"]
