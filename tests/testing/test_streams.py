"""Answers in parts, read by the openai client, sync and async."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall
from tests.testing.clients import ASKED, MODEL, async_client, client

SAID = Completion(
    "It is A-17.", tokens=("It", " is", " A-17", "."), logprobs=(-0.1, -0.2, -0.3, -0.4), prompt_tokens=7
)


def joined(chunks: list[Any]) -> str:
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


@pytest.mark.parametrize("answer", ["It is PROVOCATIVE-8417, of  course.\n", "", "é中\u200d🎉", SAID.text])
def test_content_comes_in_parts_and_whole(answer: str) -> None:
    with Server(ScriptedEngine(answer)) as server, client(server) as asking:
        chunks = list(asking.chat.completions.create(**ASKED, stream=True))
    assert joined(chunks) == answer
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert len(chunks) > 4 or len(answer) < 9
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_and_logprobs_come_when_they_are_asked_for() -> None:
    with Server(ScriptedEngine(SAID)) as server:
        async with async_client(server) as asking:
            stream = await asking.chat.completions.create(
                **ASKED, stream=True, stream_options={"include_usage": True}, logprobs=True
            )
            chunks = [chunk async for chunk in stream]
    assert joined(chunks) == "It is A-17."
    told = [c.choices[0].logprobs.content for c in chunks if c.choices and c.choices[0].logprobs]
    assert [(token.token, token.logprob) for (token,) in told] == [
        ("It", -0.1),
        (" is", -0.2),
        (" A-17", -0.3),
        (".", -0.4),
    ]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (7, 4)


def test_tool_calls_come_in_parts() -> None:
    calls = (ToolCall("look_up", '{"codes": [17, 8417]}'), ToolCall("stop", "{}"))
    with Server(ScriptedEngine(Completion(None, calls))) as server, client(server) as asking:
        chunks = list(asking.chat.completions.create(**ASKED, stream=True))
    found: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for part in chunk.choices[0].delta.tool_calls or ():
            call = found.setdefault(part.index, {"id": part.id or "", "name": "", "arguments": ""})
            assert part.function is not None
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
    assert list(found.values()) == [
        {"id": "call_0_0", "name": "look_up", "arguments": '{"codes": [17, 8417]}'},
        {"id": "call_0_1", "name": "stop", "arguments": "{}"},
    ]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert joined(chunks) == ""


def test_the_clients_own_accumulator_reads_it() -> None:
    with (
        Server(ScriptedEngine(SAID)) as server,
        client(server) as asking,
        asking.chat.completions.stream(**ASKED) as stream,
    ):
        whole = stream.get_final_completion()
    assert whole.choices[0].message.content == "It is A-17."


def test_events_on_the_wire() -> None:
    body = json.dumps({**ASKED, "stream": True}).encode()
    with (
        Server(ScriptedEngine("é")) as server,
        urllib.request.urlopen(f"{server.url}/chat/completions", body, timeout=10) as response,
    ):
        assert response.headers["Content-Type"] == "text/event-stream"
        text = response.read().decode()
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert [json.loads(event.removeprefix("data: "))["object"] for event in events[:-2]] == [
        "chat.completion.chunk"
    ] * 3


def test_legacy_streams() -> None:
    with Server(ScriptedEngine(SAID)) as server, client(server) as asking:
        stream = asking.completions.create(
            model=MODEL, prompt="Which?", stream=True, logprobs=0, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    *parts, last = chunks
    assert "".join(chunk.choices[0].text for chunk in parts) == "It is A-17."
    assert [chunk.choices[0].finish_reason for chunk in parts] == [None, None, None, "stop"]
    assert parts[0].choices[0].logprobs is not None
    assert parts[0].choices[0].logprobs.token_logprobs == [-0.1, -0.2, -0.3, -0.4]
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == 11


def test_a_stream_can_be_left() -> None:
    with Server(ScriptedEngine("word " * 50)) as server, client(server) as asking:
        stream = asking.chat.completions.create(**ASKED, stream=True)
        next(iter(stream))
        stream.close()
        server.wait_idle()
        assert asking.chat.completions.create(**ASKED).choices[0].finish_reason == "stop"
