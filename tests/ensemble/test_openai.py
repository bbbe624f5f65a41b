"""The adapter for openai clients: what it sends, and what it reads out of completions."""

from __future__ import annotations

import asyncio
from math import log
from types import SimpleNamespace as Made
from typing import Any

import pytest

from phaseguard.ensemble import Answer, Ensemble
from phaseguard.ensemble.openai import async_openai_ask, openai_ask
from phaseguard.errors import AllCallsFailedError
from tests.ensemble.scripted import COMMON, PROMPT, WHERE

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
        ({"messages": MESSAGES, "model": "x", "seed": 1}, {"model": "m", "messages": MESSAGES, "seed": 1}),
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


@pytest.mark.parametrize("reply", [Made(choices=[]), Made(choices=None), Made(), completion(None)])
def test_what_holds_no_text_is_a_failed_call(reply: Any) -> None:
    with pytest.raises(AllCallsFailedError, match="The completion has no"):
        Ensemble(openai_ask(client(reply, [])), **COMMON).ask(PROMPT, **WHERE)


def test_an_ensemble_asks_through_both_clients() -> None:
    sent: list[dict[str, Any]] = []
    for ask in (openai_ask(client(completion(), sent)), async_openai_ask(async_client(completion(), sent))):
        verdict = Ensemble(ask, **COMMON, stop="all").ask(MESSAGES, **WHERE)
        assert (verdict.answer, verdict.support) == ("A17", 4)
    assert len({request["messages"][0]["content"] for request in sent}) == 4
    assert len(sent) == 8
