"""``PhaseGuardRetriever``: another retriever's documents, normalized and marked."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config, run_in_executor
from pydantic import ConfigDict, Field

from langchain_phaseguard.documents import guarded_documents
from langchain_phaseguard.lock import StuffPrompt
from langchain_phaseguard.requests import current_request
from phaseguard import PhaseGuard

_CONFIG: ContextVar[RunnableConfig | None] = ContextVar("phaseguard_retriever_config", default=None)


class PhaseGuardRetriever(BaseRetriever):
    """Wraps a retriever: its documents come back normalized, and marked as key passages of the request.

    It cannot align: it runs before the prompt is packed. The layer that sees the final prompt does
    (:class:`~langchain_phaseguard.ChatPhaseGuard`, or the middleware), and finds the marks by itself when it
    runs in the same request. Errors of the retriever pass through unchanged.

    Args:
        retriever: any retriever, or a runnable from a query to documents.
        guard: the application's guard.
        top: mark only the first so many documents; None marks all.
        lock: also pads documents for a known prompt; see :class:`~langchain_phaseguard.StuffPrompt`.

    >>> from langchain_core.runnables import RunnableLambda
    >>> inner = RunnableLambda(lambda query: [Document("The code is A-17.   ")])
    >>> PhaseGuardRetriever(inner, PhaseGuard()).invoke("code?")[0].page_content
    'The code is A-17.'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: RetrieverLike
    guard: PhaseGuard = Field(exclude=True)
    top: int | None = Field(default=None, ge=0)
    lock: StuffPrompt | None = Field(default=None, exclude=True)

    def __init__(self, retriever: RetrieverLike, guard: PhaseGuard, **kwargs: Any) -> None:
        super().__init__(retriever=retriever, guard=guard, **kwargs)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        """Retrieve; what ``config`` configures reaches the wrapped retriever."""
        token = _CONFIG.set(config)
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _CONFIG.reset(token)

    async def ainvoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """The same without blocking."""
        token = _CONFIG.set(config)
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _CONFIG.reset(token)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = patch_config(_CONFIG.get(), callbacks=run_manager.get_child())
        return self._guarded(self.retriever.invoke(query, config, **kwargs), query, run_manager)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = patch_config(_CONFIG.get(), callbacks=run_manager.get_child())
        if kwargs and _only_sync(self.retriever):
            sync = run_manager.get_sync().get_child()
            config = patch_config(config, callbacks=sync)
            found = await run_in_executor(None, self.retriever.invoke, query, config, **kwargs)
        else:
            found = await self.retriever.ainvoke(query, config, **kwargs)
        return self._guarded(found, query, run_manager)

    def _guarded(self, found: list[Document], query: str, run: Any) -> list[Document]:
        request = current_request(run.run_id)
        return guarded_documents(
            found, self.guard, query=query, top=self.top, request=request, lock=self.lock
        )


def _only_sync(retriever: RetrieverLike) -> bool:
    """Whether it leaves async to the base class, whose version takes no further arguments."""
    inherited = BaseRetriever._aget_relevant_documents
    return isinstance(retriever, BaseRetriever) and type(retriever)._aget_relevant_documents is inherited
