"""Checks of OpenAI-style messages, so that a fault is named before an encoder trips over it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.chat.base import Message
from phaseguard.errors import RenderError, did_you_mean


@dataclass(frozen=True, slots=True)
class ContentText:
    """One text of a payload: a message's string content, or one of its text blocks (``block``)."""

    message: int
    block: int | None
    text: str


def texts_of(messages: Sequence[Message]) -> Iterator[ContentText]:
    """Yield every text of messages that passed :func:`check_messages`, in order.

    >>> [t.text for t in texts_of([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])]
    ['hi']
    """
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, str):
            yield ContentText(index, None, content)
        elif content is not None:
            for number, block in enumerate(content):
                if block["type"] == "text":
                    yield ContentText(index, number, block["text"])


def check_messages(messages: object, roles: Collection[str], blocks: Collection[str] | None) -> None:
    """Raise unless ``messages`` is a list of message mappings that an encoder can be given.

    Args:
        messages: what the caller gave.
        roles: the roles that the encoding knows.
        blocks: the content block types that it knows; None accepts any.

    Raises:
        RenderError: says which message is wrong, and what to do.

    >>> check_messages([{"role": "usr", "content": "hi"}], {"user", "system"}, None)
    Traceback (most recent call last):
    ...
    phaseguard.errors.RenderError: Message 0 has the unknown role 'usr'. Did you mean 'user'?
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise RenderError(
            f"Messages must be a list of dicts with 'role' and 'content', not {type(messages).__name__}."
        )
    if not messages:
        raise RenderError("The list of messages is empty: give at least one message.")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise RenderError(
                f"Message {index} is a {type(message).__name__}: give a dict with 'role' and 'content'."
            )
        _check_role(index, message, roles)
        _check_content(index, message, blocks)
        _check_tool_calls(index, message)


def _check_role(index: int, message: Mapping[str, Any], roles: Collection[str]) -> None:
    role = message.get("role")
    if role is None:
        raise RenderError(f"Message {index} has no role: add 'role', one of {', '.join(sorted(roles))}.")
    if not isinstance(role, str):
        raise RenderError(f"The role of message {index} is a {type(role).__name__}: give a string.")
    if role not in roles:
        hint = "Use 'system'." if role == "developer" else did_you_mean(role, roles)
        raise RenderError(f"Message {index} has the unknown role {role!r}. {hint}")


def _check_content(index: int, message: Mapping[str, Any], blocks: Collection[str] | None) -> None:
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        if message["role"] == "assistant" and message.get("tool_calls"):
            return
        raise RenderError(
            f"Message {index} ({message['role']}) has no content: give a string, or a list of blocks. "
            "Only an assistant message with tool_calls may go without."
        )
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise RenderError(
            f"The content of message {index} is a {type(content).__name__}: give a string or blocks."
        )
    for number, block in enumerate(content):
        _check_block(f"Block {number} of message {index}", block, blocks)


def _check_block(where: str, block: object, blocks: Collection[str] | None) -> None:
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise RenderError(f'{where} must be a dict, such as {{"type": "text", "text": "..."}}.')
    kind = block["type"]
    if blocks is not None and kind not in blocks:
        raise RenderError(
            f"{where} has the type {kind!r}, unknown to this chat encoding. {did_you_mean(kind, blocks)}"
        )
    if kind == "text" and not isinstance(block.get("text"), str):
        raise RenderError(f"{where} is a text block without a string under 'text': add it.")


def _check_tool_calls(index: int, message: Mapping[str, Any]) -> None:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, Sequence) or isinstance(calls, str | bytes):
        raise RenderError(f"'tool_calls' of message {index} is a {type(calls).__name__}: give a list.")
    for number, call in enumerate(calls):
        if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
            raise RenderError(
                f"Tool call {number} of message {index} must be a dict with 'id', 'type' and 'function'."
            )


def surrogate_fault(messages: Sequence[Message]) -> str | None:
    """Say which text holds a lone surrogate, which no encoder can encode; None when none does."""
    for item in texts_of(messages):
        try:
            item.text.encode()
        except UnicodeEncodeError as fault:
            where = "" if item.block is None else f", block {item.block}"
            return (
                f"Message {item.message}{where} holds a lone surrogate at character {fault.start}, "
                "which has no UTF-8 form: remove it, or decode the text again with errors='replace'."
            )
    return None
