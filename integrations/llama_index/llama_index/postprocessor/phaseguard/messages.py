"""LlamaIndex's chat messages as OpenAI-style messages, and aligned contents back in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel

_OPENAI_KEYS = ("tool_calls", "tool_call_id", "name")
_BESIDE = ("tools", "response_format")
_NAMELESS = "unknown"  # LlamaIndex's default for an LLM that does not say its model's name


def to_payload(
    messages: Sequence[ChatMessage], model: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """What an OpenAI-compatible LLM would send for these messages.

    Args:
        messages: the final list, system prompt included.
        model: its name.
        options: what goes to the endpoint beside them; ``tools`` and ``response_format`` are read.

    >>> to_payload([ChatMessage("Hi")], "deepseek-v4-flash", {"temperature": 0})
    {'messages': [{'role': 'user', 'content': 'Hi'}], 'model': 'deepseek-v4-flash'}
    """
    payload: dict[str, Any] = {key: options[key] for key in _BESIDE if options.get(key)}
    payload["messages"] = [_to_openai(message) for message in messages]
    if model not in (None, _NAMELESS):
        payload["model"] = model
    return payload


def with_contents(messages: Sequence[ChatMessage], made: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """Copies with the texts of a payload's messages; one whose text did not change is the same object."""
    return [_with_content(one, new["content"]) for one, new in zip(messages, made, strict=True)]


def _to_openai(message: ChatMessage) -> dict[str, Any]:
    role = message.role.value
    made = {"role": "assistant" if role in ("model", "chatbot") else role, "content": _content(message)}
    made |= {
        key: _plain(message.additional_kwargs[key])
        for key in _OPENAI_KEYS
        if message.additional_kwargs.get(key)
    }
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    if calls:
        made["tool_calls"] = [_call(block) for block in calls]
    return made


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """One string where all is text, as the OpenAI classes send it; else a block each."""
    told = [block for block in message.blocks if not isinstance(block, ToolCallBlock)]
    if message.role.value in ("assistant", "tool", "system") or all(isinstance(b, TextBlock) for b in told):
        return "".join(block.text for block in told if isinstance(block, TextBlock))
    return [_block(block) for block in told]


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageBlock):  # that there is one matters, and not which
        return {"type": "image_url", "image_url": {"url": str(block.url or "")}}
    return {"type": block.block_type}


def _call(block: ToolCallBlock) -> dict[str, Any]:
    arguments = block.tool_kwargs
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": block.tool_call_id,
        "type": "function",
        "function": {"name": block.tool_name, "arguments": text},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _with_content(message: ChatMessage, new: Any) -> ChatMessage:
    if new == _content(message):
        return message
    texts = iter([new] if isinstance(new, str) else [one["text"] for one in new if one["type"] == "text"])
    blocks = []
    for block in message.blocks:
        if not isinstance(block, TextBlock):
            blocks.append(block)
        elif (text := next(texts, None)) is not None:  # several blocks that are sent as one string become one
            blocks.append(block.model_copy(update={"text": text}))
    return message.model_copy(update={"blocks": blocks})
