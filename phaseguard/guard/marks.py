"""What retrieval marked as key, for the running request alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from phaseguard.errors import InputError

_MOST_REQUESTS = 10_000  # requests that are never forgotten must not fill the memory


@dataclass(eq=False, slots=True)
class _Held:
    """Marks of a context and its copies; ``used`` once a prompt was aligned with them."""

    query: str | None
    passages: tuple[str, ...]
    used: bool = False


@dataclass(eq=False, slots=True)
class _Scope:
    """Marks of an explicit scope: shared by every context that was copied inside it."""

    passages: tuple[str, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)


# by the marks they belong to; one variable for all, since contexts never let go of one
_HERE: ContextVar[tuple[tuple[object, _Held | _Scope], ...]] = ContextVar("phaseguard_marks", default=())


class Marks:
    """Marks by request, bounded; they never reach another request.

    With a request's key they are kept until it is forgotten. Inside an explicit scope they belong to it. Else
    they belong to the context that runs, and count only for a prompt in which their query stands; marks for
    another query, or made once a prompt was aligned with those before, take the place of those before: so a
    thread that serves one user after the other does not mix their marks, unless the next one asks the very
    same question over the same passages, and marks none: a scope rules that out too.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, passages: Iterable[str], query: str | None, request: Hashable | None) -> bool:
        """Mark passages; False when they could never be found again: no query, no request, no scope.

        Raises:
            InputError: when a passage or the query is no string.
        """
        new = _checked(passages)
        if query is not None and not isinstance(query, str):
            raise InputError(f"query is {type(query).__name__}: give a string, or None.")
        query = " ".join(query.split()) if query else None
        if request is not None:
            with self._lock:
                self._kept[request] = self._joined(new, self._kept.pop(request, ()))
                while len(self._kept) > _MOST_REQUESTS:
                    self._kept.popitem(last=False)
            return True
        here = self._here()
        if isinstance(here, _Scope):
            with here.lock:
                here.passages = self._joined(new, here.passages)
            return True
        old = here.passages if here and here.query == query and not here.used else ()
        self._set(_Held(query, self._joined(new, old)))
        return bool(query)

    def of(
        self, request: Hashable | None, stands: Callable[[str], bool], *, use: bool = False
    ) -> tuple[str, ...]:
        """The marks of a request, the newest retrieval first.

        Args:
            request: its key; None for the one that runs here.
            stands: whether a query is asked in the prompt.
            use: whether a prompt is aligned with them, so that the next mark begins anew.
        """
        if request is not None:
            with self._lock:
                return self._kept.get(request, ())
        here = self._here()
        if isinstance(here, _Scope):
            return here.passages
        if here is None or not here.query or not stands(here.query):
            return ()
        here.used |= use
        return here.passages

    @contextmanager
    def scope(self) -> Iterator[None]:
        """New marks inside, the old ones again behind it."""
        token = _HERE.set((*self._others(), (self, _Scope())))
        try:
            yield
        finally:
            _HERE.reset(token)

    def forget(self, request: Hashable) -> None:
        """Drop the marks of a request."""
        with self._lock:
            self._kept.pop(request, None)

    def _joined(self, new: tuple[str, ...], old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*new, *old)))[: self._most]

    def _here(self) -> _Held | _Scope | None:
        return next((held for owner, held in _HERE.get() if owner is self), None)

    def _others(self) -> Iterator[tuple[object, _Held | _Scope]]:
        return (item for item in _HERE.get() if item[0] is not self)

    def _set(self, held: _Held) -> None:
        _HERE.set((*self._others(), (self, held)))


def _checked(passages: Iterable[str]) -> tuple[str, ...]:
    given = (passages,) if isinstance(passages, str) else tuple(passages)
    for number, passage in enumerate(given):
        if not isinstance(passage, str):
            raise InputError(f"passages[{number}] is {type(passage).__name__}: mark strings.")
    return tuple(passage for passage in dict.fromkeys(given) if passage.strip())
