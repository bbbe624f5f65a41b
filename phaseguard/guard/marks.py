"""What retrieval marked as key, for the running request alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_LEAST_LINE = 8  # characters; a shorter line stands in a text by chance


@dataclass(frozen=True, slots=True)
class Mark:
    """Passages of one retrieval, and what they were retrieved for."""

    passages: tuple[str, ...]
    query: str | None


class Marks:
    """Marks by request, bounded.

    With a request's key they are kept until it is forgotten. Without one they are kept in the context that
    runs, where a mark for another query takes the place of older ones; outside of a scope they count only for
    a text in which their query stands, so that a thread that serves several users one after the other never
    carries one's marks to the next.
    """

    def __init__(self, most: int, requests: int = 10_000) -> None:
        self._most, self._requests = most, requests
        self._kept: OrderedDict[Hashable, tuple[Mark, ...]] = OrderedDict()
        self._lock = threading.Lock()
        self._here: ContextVar[tuple[Mark, ...]] = ContextVar("phaseguard_marks", default=())
        self._scoped: ContextVar[bool] = ContextVar("phaseguard_scoped", default=False)

    def add(self, passages: Iterable[str], query: str | None, request: Hashable | None) -> None:
        mark = Mark(tuple(dict.fromkeys(passages))[: self._most], query)
        if request is None:
            same = [m for m in self._here.get() if self._scoped.get() or m.query == query]
            self._here.set(self._bounded((*same, mark)))
            return
        with self._lock:
            self._kept[request] = self._bounded((*self._kept.pop(request, ()), mark))
            while len(self._kept) > self._requests:
                self._kept.popitem(last=False)

    def _bounded(self, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
        """The newest marks with at most ``most`` passages together."""
        kept: list[Mark] = []
        left = self._most
        for mark in reversed(marks):
            if left > 0:
                kept.append(Mark(mark.passages[:left], mark.query))
                left -= len(mark.passages)
        return tuple(reversed(kept))

    def standing_in(self, text: str, request: Hashable | None) -> tuple[str, ...]:
        """Marked passages that stand in a text, in the order they were marked."""
        with self._lock:
            kept = () if request is None else self._kept.get(request, ())
        here = self._here.get()
        if not self._scoped.get():
            here = tuple(mark for mark in here if mark.query is not None and mark.query in text)
        passages = dict.fromkeys(passage for mark in (*kept, *here) for passage in mark.passages)
        return tuple(dict.fromkeys(part for passage in passages for part in _standing(passage, text)))

    @contextmanager
    def scope(self) -> Iterator[None]:
        here, scoped = self._here.set(()), self._scoped.set(True)
        try:
            yield
        finally:
            self._scoped.reset(scoped)
            self._here.reset(here)

    def forget(self, request: Hashable) -> None:
        with self._lock:
            self._kept.pop(request, None)


def _standing(passage: str, text: str) -> Iterator[str]:
    """The passage, or those of its lines that stand in a text: packing cuts, re-joins and escapes passages."""
    if passage in text:
        yield passage
        return
    lines = (line.strip() for line in passage.splitlines())
    yield from (line for line in lines if len(line) >= _LEAST_LINE and line in text)
