"""Which request a run belongs to: the root of its tree of runs.

A retriever and the chat model behind it run in contexts of their own, copied from that of their chain, so
what one sets the other does not see. But every run tells its parent: the root is what they have in common.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook

from phaseguard import PhaseGuard

_AS_IS: ContextVar[bool] = ContextVar("phaseguard_as_is", default=False)
_MODEL_RUN: ContextVar[UUID | None] = ContextVar("phaseguard_model_run", default=None)
_MOST = 100_000  # runs that never end must not fill the memory
_MOST_MARKED = 10_000  # nor requests whose end is not seen, since a caller's own tracing began them


class _Roots(BaseCallbackHandler):
    """Remembers the parent of every run under way, and drops a request's marks when its root ends."""

    run_inline = True  # in the order of runs, not in a thread

    def __init__(self) -> None:
        self._parents: OrderedDict[UUID, UUID | None] = OrderedDict()
        self._marked: dict[UUID, weakref.WeakSet[PhaseGuard]] = {}
        self._lock = threading.Lock()

    def root(self, run: UUID) -> UUID:
        """The outermost run around one; itself where it has none."""
        with self._lock:
            while (parent := self._parents.get(run)) is not None:
                run = parent
            return run

    def is_under_way(self, run: UUID) -> bool:
        """Whether a run has started and not ended."""
        with self._lock:
            return run in self._parents

    def remember(self, root: UUID, guard: PhaseGuard) -> None:
        """Have ``guard`` forget the marks of ``root`` when that ends."""
        with self._lock:
            self._marked.setdefault(root, weakref.WeakSet()).add(guard)
            while len(self._marked) > _MOST_MARKED:
                self._drop(next(iter(self._marked)))

    def _start(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any) -> None:
        with self._lock:
            self._parents[run_id] = parent_run_id
            while len(self._parents) > _MOST:
                self._drop(self._parents.popitem(last=False)[0])

    def _end(self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any) -> None:
        with self._lock:
            self._parents.pop(run_id, None)
            if parent_run_id is None:
                self._drop(run_id)

    def _drop(self, run: UUID) -> None:
        for guard in self._marked.pop(run, ()):
            guard.forget(run)

    def on_chat_model_start(
        self, *_: Any, run_id: UUID, parent_run_id: UUID | None = None, **__: Any
    ) -> None:
        """Tell the model, too: in a batch no config stands for it."""
        self._start(run_id=run_id, parent_run_id=parent_run_id)
        _MODEL_RUN.set(run_id)

    on_chain_start = on_tool_start = on_retriever_start = on_llm_start = _start
    on_chain_end = on_tool_end = on_retriever_end = on_llm_end = _end
    on_chain_error = on_tool_error = on_retriever_error = on_llm_error = _end


_ROOTS = _Roots()
register_configure_hook(ContextVar("phaseguard_runs", default=_ROOTS), inheritable=True)


def current_request(run: UUID | None = None, callbacks: Any = None) -> UUID | None:
    """The request that is running here, or None outside of any run.

    Args:
        run: a run of it, where that is known.
        callbacks: a callback manager that was handed over, as compressors get one.
    """
    found = run or _parent(callbacks)
    if found is None:
        config = var_child_runnable_config.get()
        found = _parent(config.get("callbacks")) if config else None
    if found is None and (model := _MODEL_RUN.get()) is not None and _ROOTS.is_under_way(model):
        found = model
    return None if found is None else _ROOTS.root(found)


def _parent(callbacks: Any) -> UUID | None:
    return callbacks.parent_run_id if isinstance(callbacks, BaseCallbackManager) else None


def mark(guard: PhaseGuard, passages: Iterable[str], query: str | None, request: UUID | None) -> None:
    """Mark passages for the running request; its end forgets them."""
    if request is not None:
        _ROOTS.remember(request, guard)
    guard.mark(passages, query=query, request=request)


@contextmanager
def as_is() -> Iterator[None]:
    """Inside, guarded models send what they are given: it is a layout of an ensemble."""
    token = _AS_IS.set(True)
    try:
        yield
    finally:
        _AS_IS.reset(token)


def is_as_is() -> bool:
    """Whether prompts are laid out already."""
    return _AS_IS.get()
