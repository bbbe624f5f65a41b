"""LlamaIndex's chat messages as OpenAI-style messages, and aligned contents back in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel

from phaseguard import PhaseGuard

_OPENAI_KEYS = ("tool_calls", "tool_call_id", "name")


def aligned(
    guard: PhaseGuard, messages: Sequence[ChatMessage], model: str | None, options: Mapping[str, Any]
) -> list[ChatMessage]:
    """Copies of messages with aligned texts; one whose text did not change is the same object.

    Args:
        guard: the application's guard.
        messages: the final list, system prompt included.
        model: its name.
        options: what goes to the endpoint beside them, such as ``tools``.
    """
    payload = {key: options[key] for key in ("tools", "response_format") if options.get(key)}
    payload |= {"messages": [_to_openai(message) for message in messages]}
    if model is not None:
        payload["model"] = model
    made = guard.align_payload(payload).prompt["messages"]
    return [_with_content(one, new["content"]) for one, new in zip(messages, made, strict=True)]


def _to_openai(message: ChatMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role.value, "content": _content(message)}
    made |= {
        key: _plain(message.additional_kwargs[key])
        for key in _OPENAI_KEYS
        if message.additional_kwargs.get(key)
    }
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    if calls and "tool_calls" not in made:
        made["tool_calls"] = [_call(block) for block in calls]
    if made["role"] in ("model", "chatbot"):
        made["role"] = "assistant"
    return made


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    """One string where all is text, as the OpenAI classes send it; else a block each."""
    told = [block for block in message.blocks if not isinstance(block, ToolCallBlock)]
    if message.role.value in ("assistant", "tool", "system") or all(isinstance(b, TextBlock) for b in told):
        return "".join(block.text for block in told if isinstance(block, TextBlock))
    return [
        {"type": "text", "text": block.text} if isinstance(block, TextBlock) else {"type": block.block_type}
        for block in told
    ]


def _call(block: ToolCallBlock) -> dict[str, Any]:
    import json  # noqa: PLC0415

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
    old = _content(message)
    if new == old or new is None:
        return message
    texts = iter([new] if isinstance(new, str) else [one["text"] for one in new if one["type"] == "text"])
    blocks = []
    for block in message.blocks:
        if not isinstance(block, TextBlock):
            blocks.append(block)
        elif (text := next(texts, None)) is not None:  # several blocks that are sent as one string become one
            blocks.append(block.model_copy(update={"text": text}))
    return message.model_copy(update={"blocks": blocks})
