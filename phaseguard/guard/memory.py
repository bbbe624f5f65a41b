"""What earlier turns of a conversation were sent as, so that they are sent again to the letter."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.text import Edit, apply_edits

Steps = tuple[tuple[Edit, ...], ...]
MessageEdits = Mapping[int, Steps]  # by block, -1 for a content that is a string
# what the text in front of a message depends on, and whose conversation it is
_OPTIONS = (
    "tools",
    "functions",
    "response_format",
    "thinking",
    "reasoning_effort",
    "chat_template_kwargs",
    "documents",
    "user",
    "safety_identifier",
    "prompt_cache_key",
)
_MOST_MESSAGES = 8192  # a few hundred bytes each
_NO_MORE_SENT = ("cache_control",)  # set on other blocks each turn, and no part of the prompt


@dataclass(frozen=True, slots=True)
class Sent:
    """What a message was sent as.

    Attributes:
        edits: what was done to it.
        named: the key passages that a caller named in it.
        out: digest of the conversation up to it, as it was sent.
        final: whether it is what was sent itself: it stands behind what was edited, so nothing is left to do.
    """

    edits: MessageEdits
    named: frozenset[str]
    out: bytes
    final: bool


@dataclass(frozen=True, slots=True)
class Recalled:
    """The first ``count`` messages of a prompt as they were sent before, and the digest of that."""

    count: int
    edits: Mapping[FieldKey, Steps]
    out: bytes


class Memory:
    """The edits of messages, by all that stands in front of them as given and as sent; bounded, no texts.

    A conversation's history holds the texts as given, and what decided how an earlier turn was aligned
    (marks, a query) is gone. So the edits are looked up: of a message up to the last assistant message, which
    answers what was sent before it, and of any in a prompt that is itself what was sent. The last turn is
    decided by its own marks alone, never by another conversation's. Where two conversations with the same
    messages were aligned differently, neither is recalled.
    """

    def __init__(self, most: int = _MOST_MESSAGES) -> None:
        self._most = most
        self._sent: OrderedDict[tuple[bytes, bytes], Sent | None] = OrderedDict()
        self._lock = threading.Lock()

    def recall(
        self, thread: Thread, *, frozen: int, stop: int, holds: Callable[[int, frozenset[str]], bool]
    ) -> Recalled:
        """The longest beginning that is known.

        Args:
            thread: the conversation.
            frozen: leading messages that were sent as they are.
            stop: from this message on only what is final counts.
            holds: whether what was done to a message, for these named passages, is still wanted.
        """
        edits: dict[FieldKey, Steps] = {}
        out, sure = thread.root, (0, thread.root)
        with self._lock:
            for number, given in enumerate(thread.given):
                if number < frozen or number not in thread.editable:
                    out, certain = thread.beyond(out, number), number < max(frozen, stop)
                else:
                    key = given, out
                    sent = self._sent.get(key)
                    if sent is None or not holds(number, sent.named) or (number >= stop and sent.edits):
                        break
                    self._sent.move_to_end(key)
                    edits.update({FieldKey(number, block): steps for block, steps in sent.edits.items()})
                    out, certain = sent.out, number < stop or sent.final
                if (
                    certain
                ):  # what was sent as it is belongs to what was sent only when that goes on behind it
                    sure = number + 1, out
        return Recalled(sure[0], edits, sure[1])

    def keep(
        self,
        thread: Thread,
        recalled: Recalled,
        edits: Mapping[FieldKey, Steps],
        named: Callable[[int], frozenset[str]],
    ) -> None:
        """Remember what the messages behind the recalled ones were sent as.

        Args:
            thread: the conversation as given.
            recalled: what was known of it.
            edits: what was done to it.
            named: the passages that the caller named in a message.
        """
        out, kept = recalled.out, []
        for number in range(recalled.count, len(thread.given)):
            if number not in thread.editable:
                out = thread.beyond(out, number)
                continue
            mine = {key.block: steps for key, steps in edits.items() if key.message == number and any(steps)}
            before, out = out, thread.beyond(out, number, mine)
            here = named(number)
            kept.append(((thread.given[number], before), Sent(mine, here, out, final=False)))
            if out != thread.given[number]:
                kept.append(((out, before), Sent({}, here, out, final=True)))
        with self._lock:
            for key, sent in kept:
                self._sent[key] = _both(self._sent[key], sent) if key in self._sent else sent
                self._sent.move_to_end(key)
            while len(self._sent) > self._most:
                self._sent.popitem(last=False)


def _both(one: Sent | None, other: Sent) -> Sent | None:
    """What two calls with the same messages sent, if that is the same."""
    if one is None or (one.edits, one.out) != (other.edits, other.out):
        return None
    return replace(one, named=one.named | other.named, final=one.final or other.final)


class Thread:
    """A conversation by digests: ``given[k]`` stands for its first k + 1 messages, ``root`` for none.

    Attributes:
        editable: the messages that may ever be edited.
    """

    def __init__(self, prompt: Prompt, options: Mapping[str, Any], profile: str) -> None:
        chosen = [options.get(key) for key in _OPTIONS]
        self._prompt = prompt
        self.editable = frozenset(field.key.message for field in prompt.fields if field.editable)
        self._texts = {field.key: field.text for field in prompt.fields}
        self._own = [self._digest(number, {}) for number in range(len(prompt.messages))]
        self.root = _hash(_dumped([profile, chosen]))
        self.given: list[bytes] = []
        for own in self._own:
            self.given.append(_hash((self.given[-1] if self.given else self.root) + own))

    def beyond(self, before: bytes, number: int, edits: MessageEdits | None = None) -> bytes:
        """The digest behind a message that is sent with these edits, from the one in front of it."""
        return _hash(before + (self._digest(number, edits) if edits else self._own[number]))

    def _digest(self, number: int, edits: MessageEdits) -> bytes:
        message = self._prompt.messages[number]
        content = message.get("content")
        rest = {key: value for key, value in message.items() if key != "content" and value is not None}
        digest = blake2b(_dumped(rest), digest_size=16)
        blocks = [content] if isinstance(content, str) else content or ()
        for place, block in enumerate(blocks):
            at = FieldKey(number, -1 if isinstance(content, str) else place)
            if at in self._texts:
                text = self._texts[at]
                for step in edits.get(at.block, ()):
                    text = apply_edits(text, step)
                digest.update(b"\0%d:" % len(text))
                digest.update(text.encode("utf-8", "surrogatepass"))
            else:
                digest.update(b"\0" + _dumped(block))
        return digest.digest()


def _dumped(value: Any) -> bytes:
    return json.dumps(_plain(value), sort_keys=True, default=repr).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items() if key not in _NO_MORE_SENT}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    return value


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def with_edits(prompt: Prompt, edits: Mapping[FieldKey, Steps]) -> Any:
    """A prompt of the given kind with these edits."""
    texts = {field.key: field.text for field in prompt.fields}
    changed = {}
    for key, steps in edits.items():
        for step in steps:
            texts[key] = apply_edits(texts[key], step)
        changed[key] = texts[key]
    return prompt.with_texts(changed)
