"""What a server was asked: every request, which are being answered, and which were given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_SECRET = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"})
HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it came.

    Attributes:
        number: from 0, in order of arrival.
        path: such as ``/v1/chat/completions``.
        body: the JSON object that was sent; empty when there was none.
        headers: by name in lower case; the values of those that carry secrets are hidden.
        at: seconds since the server started.

    >>> Call(0, "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}).texts
    ('Hi',)
    """

    number: int
    path: str
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its messages, or the prompt of a legacy completion."""
        contents = [message.get("content") for message in self.body.get("messages") or ()]
        contents += [self.body.get("prompt")]
        found: list[str] = []
        for content in contents:
            blocks = [content] if isinstance(content, str) else content or ()
            found += [block if isinstance(block, str) else block.get("text", "") for block in blocks]
        return tuple(found)


class CallLog:
    """The calls of a server; written by its thread, read by any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._start = time.monotonic()
        self._calls: list[Call] = []
        self._dropped: list[int] = []
        self._open = self._most_open = 0

    def add(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Call:
        """Record a request."""
        kept = {key.lower(): HIDDEN if key.lower() in _SECRET else value for key, value in headers.items()}
        with self._changed:
            call = Call(len(self._calls), path, body, kept, time.monotonic() - self._start)
            self._calls.append(call)
        return call

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While a request is being answered."""
        with self._changed:
            self._open += 1
            self._most_open = max(self._most_open, self._open)
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()

    def drop(self, call: Call) -> None:
        """The client has left before it had the answer."""
        with self._changed:
            self._dropped.append(call.number)

    def reset(self, timeout: float) -> None:
        """Forget all calls, once no request is being answered.

        Raises:
            TimeoutError: as :meth:`wait_idle`.
        """
        self.wait_idle(timeout)
        with self._changed:
            self._calls.clear()
            self._dropped.clear()
            self._most_open = 0

    def wait_idle(self, timeout: float) -> None:
        """Wait until no request is being answered.

        Raises:
            TimeoutError: when one still is after ``timeout`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._open, timeout):
                raise TimeoutError(f"{self._open} requests are still being answered after {timeout} s.")

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls."""
        with self._changed:
            return tuple(self._calls)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of calls whose client left before it had the answer."""
        with self._changed:
            return tuple(self._dropped)

    @property
    def most_open(self) -> int:
        """Most requests that were being answered at once."""
        with self._changed:
            return self._most_open
