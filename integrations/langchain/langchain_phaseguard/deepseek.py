"""``PhaseGuardChatDeepSeek``: ``ChatDeepSeek`` whose payload is aligned (extra ``deepseek``)."""

from __future__ import annotations

from langchain_deepseek import ChatDeepSeek
from pydantic import ConfigDict

from langchain_phaseguard.mixin import PhaseGuardMixin


class PhaseGuardChatDeepSeek(PhaseGuardMixin, ChatDeepSeek):
    """``ChatDeepSeek(guard=..., ...)``; it flattens contents of its own, which the guard sees."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
