"""Strings, message lists and payloads seen as one thing: messages with texts that may be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phaseguard.errors import InputError

Kind = Literal["text", "messages", "payload"]
EDITABLE_ROLES = frozenset({"system", "developer", "user", "tool", "function"})
TOOL_ROLES = frozenset({"tool", "function"})


@dataclass(frozen=True, slots=True, order=True)
class FieldKey:
    """Which text of a prompt: message index, and block index when the content is a list (-1 otherwise)."""

    message: int
    block: int = -1

    @property
    def block_or_none(self) -> int | None:
        """The block index as renderers and reports give it."""
        return None if self.block < 0 else self.block


@dataclass(frozen=True, slots=True)
class TextField:
    """One text of a prompt.

    Attributes:
        key: where it stands.
        role: role of its message.
        text: its characters.
        editable: whether phaseguard may change it: assistant and frozen messages never change.
    """

    key: FieldKey
    role: str
    text: str
    editable: bool

    @property
    def is_tool(self) -> bool:
        """Tool results are not normalized and take pads only at their start."""
        return self.role in TOOL_ROLES


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of any of the three kinds; nothing in it is ever mutated.

    >>> prompt = Prompt.read([{"role": "user", "content": "Hi"}])
    >>> prompt.kind, prompt.fields[0].text, prompt.with_texts({FieldKey(0): "Ho"})
    ('messages', 'Hi', [{'role': 'user', 'content': 'Ho'}])
    """

    kind: Kind
    given: Any
    messages: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any]
    fields: tuple[TextField, ...]

    @classmethod
    def read(cls, prompt: Any, *, frozen: int = 0) -> Prompt:
        """Read a prompt; the first ``frozen`` messages are never edited.

        Raises:
            InputError: when it is none of the three kinds, or empty.
        """
        kind, messages, options = _open(prompt)
        if not isinstance(frozen, int) or isinstance(frozen, bool) or not 0 <= frozen <= len(messages):
            raise InputError(
                f"frozen={frozen!r}: give how many leading messages to leave alone, 0 to {len(messages)}."
            )
        fields = tuple(
            field
            for index, message in enumerate(messages)
            for field in _texts(index, message, editable=index >= frozen)
        )
        if not any(field.text for field in fields):
            raise InputError("The prompt is empty: give a text, or messages with text content.")
        return cls(kind, prompt, messages, options, fields)

    def with_texts(self, texts: Mapping[FieldKey, str]) -> Any:
        """A prompt of the given kind in which the named texts are replaced; all else is kept as it is."""
        if self.kind == "text":
            return texts.get(FieldKey(0), self.given)
        given = self.given if self.kind == "messages" else self.given["messages"]
        messages = [
            _replaced(index, original, message, texts)
            for index, (original, message) in enumerate(zip(given, self.messages, strict=True))
        ]
        return messages if self.kind == "messages" else {**self.given, "messages": messages}


def _open(prompt: Any) -> tuple[Kind, tuple[Mapping[str, Any], ...], Mapping[str, Any]]:
    if isinstance(prompt, str):
        return "text", ({"role": "user", "content": prompt},), {}
    if isinstance(prompt, Mapping):
        if "messages" not in prompt:
            raise InputError("A payload needs a 'messages' key; a single message belongs into a list.")
        return (
            "payload",
            _messages(prompt["messages"], "The 'messages' of a payload are a list"),
            {k: v for k, v in prompt.items() if k != "messages"},
        )
    return "messages", _messages(prompt, "A prompt is a string, a list of messages or a payload"), {}


def _messages(given: Any, wanted: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise InputError(f"{wanted}, not {type(given).__name__}.")
    if not given:
        raise InputError("The prompt has no messages.")
    return tuple(_message(index, message) for index, message in enumerate(given))


def _message(index: int, message: Any) -> Mapping[str, Any]:
    if hasattr(message, "model_dump"):  # an SDK's own message object, as found in chat histories
        message = message.model_dump(exclude_none=True)
    if not isinstance(message, Mapping):
        raise InputError(
            f"Message {index} is {type(message).__name__}, not a dict with 'role' and 'content'."
        )
    if not isinstance(message.get("role"), str):
        raise InputError(f"Message {index} has no 'role'.")
    return message


def _texts(index: int, message: Mapping[str, Any], *, editable: bool) -> list[TextField]:
    role, content = message["role"], message.get("content")
    editable = editable and role in EDITABLE_ROLES
    if isinstance(content, str):
        return [TextField(FieldKey(index), role, content, editable)]
    if content is None:
        return []
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InputError(
            f"Message {index}: content is {type(content).__name__}, not a string or a list of blocks."
        )
    return [
        TextField(FieldKey(index, number), role, text, editable)
        for number, block in enumerate(content)
        if (text := _block_text(block)) is not None
    ]


def _block_text(block: Any) -> str | None:
    """A text block's text; None for blocks that are kept as they are."""
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") in ("text", "input_text"):
        text = block.get("text")
        return text if isinstance(text, str) else None
    return None


def _replaced(index: int, original: Any, message: Mapping[str, Any], texts: Mapping[FieldKey, str]) -> Any:
    content = message.get("content")
    if isinstance(content, str):
        new: Any = texts.get(FieldKey(index), content)
        if new == content:
            return original
        copy = getattr(original, "model_copy", None)
        return {**message, "content": new} if copy is None else copy(update={"content": new})
    if content is None:
        return original
    blocks = [
        _replaced_block(block, texts.get(FieldKey(index, number))) for number, block in enumerate(content)
    ]
    return original if blocks == list(content) else {**message, "content": blocks}


def _replaced_block(block: Any, text: str | None) -> Any:
    if text is None or text == _block_text(block):
        return block
    return text if isinstance(block, str) else {**block, "text": text}
