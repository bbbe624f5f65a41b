"""What earlier turns of a conversation were sent as: so that they are sent again to the letter."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

Messages = Sequence[Mapping[str, Any]]


class Memory:
    """Aligned messages by what was given, bounded.

    Marks of an earlier turn are gone when the next one comes, so what they did to it is looked up: a call's
    messages up to an assistant message are those of the call before, whose answer that message is. A first turn
    is never looked up, so no other conversation decides it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, tuple[Mapping[str, Any], ...]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, given: Messages, options: Mapping[str, Any], sent: Messages) -> None:
        """Remember what messages were sent as."""
        key = _digests(given, options)[-1]
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = tuple(sent)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def earlier(self, given: Messages, options: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """What the longest known beginning of a conversation was sent as; empty when none is known."""
        ends = [n for n, message in enumerate(given) if message.get("role") == "assistant" and n]
        if not ends:
            return ()
        digests = _digests(given[: ends[-1]], options)
        with self._lock:
            found = (self._kept.get(digests[end - 1]) for end in reversed(ends))
            return next((sent for sent in found if sent is not None), ())


def _digests(messages: Messages, options: Mapping[str, Any]) -> list[bytes]:
    """Of every beginning of a conversation, from one message on."""
    running = blake2b(_bytes(options), digest_size=16)
    found = []
    for message in messages:
        running.update(_bytes(message))
        found.append(running.digest())
    return found


def _bytes(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=repr).encode("utf-8", "surrogatepass") + b"\0"
