"""Answers in parts: the events of a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from phaseguard.testing.completion import Completion
from phaseguard.testing.wire import Head, Json, chat_logprobs, legacy_choice, tool_calls, usage

_PART = re.compile(r"\s*\S{1,8}|\s+")
DONE = b"data: [DONE]\n\n"


def event(body: Json) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def parts(completion: Completion) -> tuple[str, ...]:
    """The answer's text in parts: its tokens, or words and pieces of long ones.

    >>> parts(Completion("It is PROVOCATIVE-8417."))
    ('It', ' is', ' PROVOCAT', 'IVE-8417', '.')
    """
    return completion.tokens or tuple(_PART.findall(completion.text or ""))


def chat_events(head: Head, completion: Completion, request: Mapping[str, Any]) -> Iterator[Json]:
    """The role, parts of the content and of the tool calls, the end, and the usage when it is asked for."""

    def chunk(delta: Json, finish: str | None = None, logprobs: Json | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        made = head.body("chat.completion.chunk") | {"choices": [choice]}
        return made | ({"usage": None} if _wants_usage(request) else {})

    yield chunk({"role": "assistant", "content": None if completion.text is None else ""})
    given = chat_logprobs(completion, request)
    for n, part in enumerate(parts(completion)):
        one = given and {"content": given["content"][n : n + 1], "refusal": None}
        yield chunk({"content": part}, logprobs=one)
    for n, call in enumerate(tool_calls(completion, head.number)):
        arguments = call["function"]["arguments"]
        opened = {**call, "index": n, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [opened]})
        for part in _PART.findall(arguments):
            yield chunk({"tool_calls": [{"index": n, "function": {"arguments": part}}]})
    yield chunk({}, completion.finished)
    if _wants_usage(request):
        yield head.body("chat.completion.chunk") | {"choices": [], "usage": usage([completion])}


def legacy_events(head: Head, completion: Completion, request: Mapping[str, Any]) -> Iterator[Json]:
    """The same of a legacy completion; log probabilities come with the first part, all at once."""
    whole = legacy_choice(0, completion, request)
    echoed = "".join(completion.echo.tokens) if completion.echo and request.get("echo") else ""
    said = [text for text in (echoed, *parts(completion)) if text] or [""]
    for n, text in enumerate(said):
        last = n == len(said) - 1
        choice = {
            "index": 0,
            "text": text,
            "logprobs": None if n else whole["logprobs"],
            "finish_reason": completion.finished if last else None,
        }
        yield head.body("text_completion", "cmpl") | {"choices": [choice]}
    if _wants_usage(request):
        yield head.body("text_completion", "cmpl") | {"choices": [], "usage": usage([completion])}


def _wants_usage(request: Mapping[str, Any]) -> bool:
    return bool((request.get("stream_options") or {}).get("include_usage"))
