"""phaseguard for LangChain. Retrieval normalizes and marks; the layer that sees the final prompt aligns.

``PhaseGuardMiddleware`` needs the extra ``agents``, ``PhaseGuardChatOpenAI`` the extra ``openai`` and
``PhaseGuardChatDeepSeek`` the extra ``deepseek``; they are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_phaseguard.chat_models import ChatPhaseGuard
from langchain_phaseguard.documents import (
    PhaseGuardDocumentCompressor,
    PhaseGuardDocumentTransformer,
    guard_documents,
    guarded_documents,
)
from langchain_phaseguard.ensembles import ensemble_chain
from langchain_phaseguard.lock import StuffPrompt, locked
from langchain_phaseguard.mixin import PhaseGuardMixin
from langchain_phaseguard.retrievers import PhaseGuardRetriever

if TYPE_CHECKING:
    from langchain_phaseguard.deepseek import PhaseGuardChatDeepSeek
    from langchain_phaseguard.middleware import PhaseGuardMiddleware
    from langchain_phaseguard.openai import PhaseGuardChatOpenAI

__all__ = [
    "ChatPhaseGuard",
    "PhaseGuardChatDeepSeek",
    "PhaseGuardChatOpenAI",
    "PhaseGuardDocumentCompressor",
    "PhaseGuardDocumentTransformer",
    "PhaseGuardMiddleware",
    "PhaseGuardMixin",
    "PhaseGuardRetriever",
    "StuffPrompt",
    "ensemble_chain",
    "guard_documents",
    "guarded_documents",
    "locked",
]

_EXTRAS = {
    "PhaseGuardChatDeepSeek": ("deepseek", "langchain_deepseek"),
    "PhaseGuardChatOpenAI": ("openai", "langchain_openai"),
    "PhaseGuardMiddleware": ("middleware", "langchain"),
}
_NAMES = {"middleware": "agents"}


def __getattr__(name: str) -> Any:
    if name not in _EXTRAS:
        raise AttributeError(f"module 'langchain_phaseguard' has no attribute {name!r}")
    module, needs = _EXTRAS[name]
    try:
        return getattr(import_module(f"langchain_phaseguard.{module}"), name)
    except ModuleNotFoundError as fault:
        if (fault.name or "").split(".")[0] != needs:
            raise
        extra = _NAMES.get(module, module)
        raise ImportError(f"{name} needs {needs}: pip install 'langchain-phaseguard[{extra}]'.") from fault
