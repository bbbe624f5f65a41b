"""Documents on their way into a prompt: normalized copies, marked as key passages of the running request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any
from uuid import UUID

from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from pydantic import ConfigDict, Field

from langchain_phaseguard.lock import StuffPrompt, locked
from langchain_phaseguard.requests import current_request, mark
from phaseguard import PhaseGuard
from phaseguard.errors import InputError


def guarded_documents(
    documents: Sequence[Document],
    guard: PhaseGuard,
    *,
    query: str | None = None,
    top: int | None = None,
    request: UUID | None = None,
    lock: StuffPrompt | None = None,
) -> list[Document]:
    """Normalized copies of documents, marked for the layer that aligns the final prompt.

    Ids, metadata and their order stay; the documents given are not changed, nested metadata included.

    Args:
        documents: as retrieved, the most relevant first.
        guard: the application's guard.
        query: what they were retrieved for.
        top: mark only the first so many; None marks all.
        request: the running request; None finds it.
        lock: how they are packed, for a model that nothing aligns behind: see :func:`locked`. None adds no
            pads.

    >>> found = [Document("The code is A-17.   ", id="7")]
    >>> made = guarded_documents(found, PhaseGuard(), query="Which code?")
    >>> made[0].page_content, made[0].id
    ('The code is A-17.', '7')
    """
    made = [
        document.model_copy(
            update={
                "page_content": guard.normalize(document.page_content),
                "metadata": _copied(document.metadata),
            }
        )
        for document in documents
    ]
    marked = [text for document in made[:top] if (text := document.page_content.strip())]
    if marked:
        mark(guard, marked, query, request or current_request())
    return made if lock is None else locked(made, guard, lock, query)


def _copied(value: Any) -> Any:
    """A deep copy, but for values that cannot be copied, such as a connection in the metadata."""
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - whatever the copying of an application's value raises
        return {key: _copied(one) for key, one in value.items()} if isinstance(value, dict) else value


def _check_top(top: int | None) -> None:
    if top is not None and top < 0:
        raise InputError(f"top={top}: give how many documents to mark, from 0, or None for all.")


def guard_documents(
    guard: PhaseGuard, *, top: int | None = None, lock: StuffPrompt | None = None
) -> Callable[[Sequence[Document]], list[Document]]:
    """A step of a chain, put behind a retriever, that does the same.

    >>> from langchain_core.runnables import RunnableLambda
    >>> step = RunnableLambda(lambda query: [Document(query)]) | guard_documents(PhaseGuard())
    >>> step.invoke("Where is A-17?")[0].page_content
    'Where is A-17?'
    """
    _check_top(top)

    def guard_documents(documents: Sequence[Document]) -> list[Document]:
        return guarded_documents(documents, guard, top=top, lock=lock)

    return guard_documents


class PhaseGuardDocumentCompressor(BaseDocumentCompressor):
    """Normalizes and marks documents; for ``ContextualCompressionRetriever`` and pipelines. Drops none.

    >>> compressor = PhaseGuardDocumentCompressor(guard=PhaseGuard())
    >>> [d.page_content for d in compressor.compress_documents([Document("Use A-17.   ")], "code?")]
    ['Use A-17.']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    guard: PhaseGuard = Field(exclude=True)
    top: int | None = Field(default=None, ge=0)
    lock: StuffPrompt | None = Field(default=None, exclude=True)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        """Normalized copies, in the order given."""
        request = current_request(callbacks=callbacks)
        return guarded_documents(
            documents, self.guard, query=query, top=self.top, request=request, lock=self.lock
        )

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> list[Document]:
        """The same; nothing is waited for."""
        return self.compress_documents(documents, query, callbacks)


class PhaseGuardDocumentTransformer(BaseDocumentTransformer):
    """Normalizes and marks documents, where a transformer is asked for.

    Where documents are indexed, no request is under way: give ``top=0``, which marks none.

    >>> transformer = PhaseGuardDocumentTransformer(PhaseGuard(), top=0)
    >>> [d.page_content for d in transformer.transform_documents([Document("Use A-17.   ")])]
    ['Use A-17.']
    """

    def __init__(self, guard: PhaseGuard, *, top: int | None = None, lock: StuffPrompt | None = None) -> None:
        _check_top(top)
        self.guard, self.top, self.lock = guard, top, lock

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Normalized copies, in the order given; ``query=`` is what they were retrieved for."""
        query = kwargs.get("query")
        return guarded_documents(documents, self.guard, query=query, top=self.top, lock=self.lock)

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """The same; nothing is waited for."""
        return self.transform_documents(documents, **kwargs)
