"""``PhaseGuardDeepSeek``: ``DeepSeek`` whose requests are aligned (extra ``deepseek``)."""

from __future__ import annotations

from llama_index.llms.deepseek import DeepSeek
from llama_index.postprocessor.phaseguard.openai import PhaseGuardOpenAI


class PhaseGuardDeepSeek(PhaseGuardOpenAI, DeepSeek):
    """``DeepSeek(guard=..., model=..., ...)``."""

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardDeepSeek"
