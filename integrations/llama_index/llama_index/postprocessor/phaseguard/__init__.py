"""phaseguard for LlamaIndex: the postprocessor normalizes and marks, the LLM layer aligns the final prompt.

``PhaseGuardOpenAI`` and ``PhaseGuardOpenAILike`` need the extra ``openai-like``, ``PhaseGuardDeepSeek`` the
extra ``deepseek``; they are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from llama_index.postprocessor.phaseguard.ensembles import (
    PhaseGuardEnsembleFunctionCallingLLM,
    PhaseGuardEnsembleLLM,
    ensemble_llm,
)
from llama_index.postprocessor.phaseguard.llms import PhaseGuardFunctionCallingLLM, PhaseGuardLLM, guard_llm
from llama_index.postprocessor.phaseguard.nodes import PhaseGuardPostprocessor

if TYPE_CHECKING:
    from llama_index.postprocessor.phaseguard.deepseek import PhaseGuardDeepSeek
    from llama_index.postprocessor.phaseguard.openai import PhaseGuardOpenAI
    from llama_index.postprocessor.phaseguard.openai_like import PhaseGuardOpenAILike

__all__ = [
    "PhaseGuardDeepSeek",
    "PhaseGuardEnsembleFunctionCallingLLM",
    "PhaseGuardEnsembleLLM",
    "PhaseGuardFunctionCallingLLM",
    "PhaseGuardLLM",
    "PhaseGuardOpenAI",
    "PhaseGuardOpenAILike",
    "PhaseGuardPostprocessor",
    "ensemble_llm",
    "guard_llm",
]

_MODULES = {
    "PhaseGuardDeepSeek": "deepseek",
    "PhaseGuardOpenAI": "openai",
    "PhaseGuardOpenAILike": "openai_like",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as fault:
        if not (fault.name or "").startswith("llama_index.llms"):
            raise
        extra = "deepseek" if module == "deepseek" else "openai-like"
        raise ImportError(
            f"{name} needs {fault.name}: pip install 'llama-index-postprocessor-phaseguard[{extra}]'."
        ) from fault
