"""The adapter for openai clients: what it sends, and what it reads out of completions."""

from __future__ import annotations

import asyncio
from math import log
from types import SimpleNamespace as Made
from typing import Any

import pytest
from pydantic import BaseModel

from phaseguard.ensemble import Answer, Ensemble, Verdict
from phaseguard.ensemble.openai import async_openai_ask, openai_ask
from phaseguard.errors import AllCallsFailedError
from phaseguard.testing import Completion, ScriptedEngine, Server
from tests.ensemble.scripted import COMMON, PROMPT, WHERE
from tests.testing.clients import MODEL
from tests.testing.clients import async_client as async_connected
from tests.testing.clients import client as connected

MESSAGES = [{"role": "user", "content": PROMPT}]


def completion(text: Any = "A17", logprobs: Any = None, usage: Any = None) -> Any:
    return Made(choices=[Made(message=Made(content=text), logprobs=logprobs)], usage=usage)


def client(reply: Any, sent: list[dict[str, Any]]) -> Any:
    def create(**request: Any) -> Any:
        sent.append(request)
        return reply

    return Made(chat=Made(completions=Made(create=create)))


def async_client(reply: Any, sent: list[dict[str, Any]]) -> Any:
    plain = client(reply, sent)

    async def create(**request: Any) -> Any:
        await asyncio.sleep(0)
        return plain.chat.completions.create(**request)

    return Made(chat=Made(completions=Made(create=create)))


@pytest.mark.parametrize(
    ("prompt", "request_"),
    [
        (PROMPT, {"model": "m", "messages": MESSAGES}),
        (MESSAGES, {"model": "m", "messages": MESSAGES}),
        (
            {"messages": MESSAGES, "model": "x", "seed": 1, "stream": True},
            {"model": "m", "messages": MESSAGES, "seed": 1},
        ),
    ],
)
def test_requests(prompt: Any, request_: dict[str, Any]) -> None:
    sent: list[dict[str, Any]] = []
    one = openai_ask(client(completion(), sent), model="m")(prompt)
    other = asyncio.run(_awaited(async_openai_ask(async_client(completion(), sent), model="m"), prompt))
    assert sent == [request_, request_]
    assert one.text == other.text == "A17"


async def _awaited(ask: Any, prompt: Any) -> Answer:
    answer: Answer = await ask(prompt)
    return answer


def test_what_a_completion_says_is_read() -> None:
    logprobs = Made(content=[Made(logprob=log(0.5)), Made(logprob=log(0.8))])
    details = Made(cached_tokens=64)
    usage = Made(completion_tokens=2, prompt_tokens=90, prompt_tokens_details=details)
    reply = completion("A17", logprobs, usage)
    answer = openai_ask(client(reply, []))(PROMPT)
    assert answer == Answer("A17", pytest.approx(0.4), 2, 90, 64, reply)
    deepseek = Made(completion_tokens=2, prompt_tokens=90, prompt_cache_hit_tokens=32)
    bare = openai_ask(client(completion("A17", Made(content=None), deepseek), []))(PROMPT)
    assert (bare.probability, bare.cached_tokens) == (None, 32)


def message(**said: Any) -> Any:
    return Made(choices=[Made(message=Made(**{"content": None, **said}), logprobs=None)], usage=None)


def function(name: str, arguments: str) -> Any:
    return Made(function=Made(name=name, arguments=arguments))


def test_tool_calls_are_an_answer_with_or_without_text_beside_them() -> None:
    calls = [function("open", '{"door": 2, "code": "A17"}'), Made(custom=Made(name="run", input="ls"))]
    for content in (None, "", "Let me open it."):
        reply = message(content=content, tool_calls=calls)
        answer = openai_ask(client(reply, []))(PROMPT)
        assert answer.text == '[["open",{"code":"A17","door":2}],["run","ls"]]'
        assert answer.raw is reply


def test_tool_calls_of_several_layouts_are_counted_by_value() -> None:
    written = [
        '{"door": 2, "code": "A17"}',
        '{"code":"A17","door":2.0}',
        '{"door": 3}',
        '{"code": "A17", "door": 2}',
    ]
    replies = iter(message(tool_calls=[function("open", one)]) for one in written)
    create = Made(create=lambda **_: next(replies))
    verdict = Ensemble(openai_ask(Made(chat=Made(completions=create))), **COMMON, stop="all").ask(
        PROMPT, **WHERE
    )
    assert (verdict.support, verdict.counted) == (3, 4)
    assert verdict.answer == '[["open",{"code":"A17","door":2}]]'


def test_a_refusal_is_a_failed_call_that_says_so() -> None:
    with pytest.raises(AllCallsFailedError, match=r"InputError: The model refused: I cannot\."):
        Ensemble(openai_ask(client(message(refusal="I cannot."), [])), **COMMON).ask(PROMPT, **WHERE)


def test_json_that_a_schema_asked_for_is_counted_by_value() -> None:
    written = [
        '{"a": 1, "b": [1, 2]}',
        '{"b": [1, 2.0],\n "a": 1}',
        '{"b": [2, 1], "a": 1}',
        '{"a":1,"b":[1,2]}',
    ]
    replies = iter(map(completion, written))
    create = Made(create=lambda **_: next(replies))
    verdict = Ensemble(openai_ask(Made(chat=Made(completions=create))), **COMMON, stop="all").ask(
        PROMPT, **WHERE
    )
    assert (verdict.support, verdict.counted) == (3, 4)


class Code(BaseModel):
    code: str
    door: int


@pytest.mark.parametrize("awaited", [False, True])
def test_a_class_as_response_format_is_parsed_and_counted_by_value(awaited: bool) -> None:
    written = ['{"code": "A17", "door": 2}', '{"door":2,"code":"A17"}', '{"door": 3, "code": "A17"}']
    engine = ScriptedEngine([Completion(text) for text in written])
    options: dict[str, Any] = {"model": MODEL, "response_format": Code}
    more = {**COMMON, "layouts": 3, "stop": "all"}
    with Server(engine) as server:
        if awaited:
            verdict = asyncio.run(_parsed(server, options, more))
        else:
            with connected(server) as made:
                verdict = Ensemble(openai_ask(made, **options), **more).ask(PROMPT, **WHERE)
        assert server.calls[0].body["response_format"]["type"] == "json_schema"
    assert (verdict.support, verdict.counted) == (2, 3)
    assert verdict.votes[0].reply is not None
    assert verdict.votes[0].reply.raw.choices[0].message.parsed == Code(code="A17", door=2)


async def _parsed(server: Server, options: dict[str, Any], more: dict[str, Any]) -> Verdict:
    async with async_connected(server) as made:
        return await Ensemble(async_openai_ask(made, **options), **more, concurrency=1).aask(PROMPT, **WHERE)


def test_fields_that_the_client_does_not_name_are_sent_all_the_same() -> None:
    payload = {"messages": MESSAGES, "thinking": {"type": "disabled"}, "top_k": 1, "seed": 3}
    with Server(ScriptedEngine("A17")) as server, connected(server) as made:
        openai_ask(made, model=MODEL, extra_body={"top_k": 2})(payload)
        body = server.calls[0].body
    assert body == {**payload, "model": MODEL, "top_k": 2}


@pytest.mark.parametrize("reply", [Made(choices=[]), Made(choices=None), Made(), completion(None)])
def test_what_holds_no_text_is_a_failed_call(reply: Any) -> None:
    with pytest.raises(AllCallsFailedError, match=r"has no (choices|text)"):
        Ensemble(openai_ask(client(reply, [])), **COMMON).ask(PROMPT, **WHERE)


def test_an_ensemble_asks_through_both_clients() -> None:
    sent: list[dict[str, Any]] = []
    for ask in (openai_ask(client(completion(), sent)), async_openai_ask(async_client(completion(), sent))):
        verdict = Ensemble(ask, **COMMON, stop="all").ask(MESSAGES, **WHERE)
        assert (verdict.answer, verdict.support) == ("A17", 4)
    assert len({request["messages"][0]["content"] for request in sent}) == 4
    assert len(sent) == 8
