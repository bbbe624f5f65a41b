"""``PhaseGuardChatOpenAI``: ``ChatOpenAI`` whose payload is aligned (extra ``openai``)."""

from __future__ import annotations

from langchain_openai import ChatOpenAI
from pydantic import ConfigDict

from langchain_phaseguard.mixin import PhaseGuardMixin


class PhaseGuardChatOpenAI(PhaseGuardMixin, ChatOpenAI):
    """``ChatOpenAI(guard=..., ...)``, for any OpenAI-compatible endpoint by ``base_url``."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
