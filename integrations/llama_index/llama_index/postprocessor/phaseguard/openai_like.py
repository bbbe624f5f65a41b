"""``PhaseGuardOpenAILike``: ``OpenAILike`` whose requests are aligned (extra ``openai-like``)."""

from __future__ import annotations

from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard.openai import PhaseGuardOpenAI


class PhaseGuardOpenAILike(PhaseGuardOpenAI, OpenAILike):
    """``OpenAILike(guard=..., is_chat_model=True, ...)``, for any OpenAI-compatible endpoint."""

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardOpenAILike"
