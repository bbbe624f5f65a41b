"""Each fault as the openai client meets it: raised, or retried by it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import openai
import pytest

from phaseguard.errors import InputError
from phaseguard.testing import Completion, Fault, ScriptedEngine, Server
from tests.testing.clients import ASKED, async_client, by_number, client

SAID = Completion("A-17", tokens=("A", "-17"), logprobs=(-0.1, -0.2), prompt_tokens=7)
RETRIED: dict[str, tuple[Fault, type[Exception]]] = {
    "429": (Fault.rate_limited(), openai.RateLimitError),
    "500": (Fault.status(500, retry_after=0.01), openai.InternalServerError),
    "503": (Fault.status(503, retry_after=0.01), openai.InternalServerError),
    "truncate": (Fault("truncate"), openai.APIConnectionError),
    "disconnect": (Fault("disconnect"), openai.APIConnectionError),
}


@pytest.mark.parametrize("name", RETRIED)
def test_what_a_client_retries(name: str) -> None:
    fault, error = RETRIED[name]
    with Server(ScriptedEngine(SAID), faults=by_number({0: fault, 1: fault})) as server:
        with client(server) as asking, pytest.raises(error):
            asking.chat.completions.create(**ASKED)
        with client(server, retries=1) as asking:
            assert asking.chat.completions.create(**ASKED).choices[0].message.content == "A-17"
        assert [call.headers["x-stainless-retry-count"] for call in server.calls] == ["0", "0", "1"]
        assert server.dropped == ()


def test_an_error_has_openais_form_and_says_when_to_come_back() -> None:
    with (
        Server(ScriptedEngine(SAID), faults=by_number({0: Fault.rate_limited(30)})) as server,
        client(server) as asking,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        asking.chat.completions.create(**ASKED)
    assert caught.value.response.headers["Retry-After"] == "30"
    assert (caught.value.code, caught.value.type) == ("rate_limit_exceeded", "requests")


async def test_what_is_left_out() -> None:
    faults = by_number({0: Fault("empty-choices"), 1: Fault("no-logprobs"), 2: Fault("no-usage")})
    with Server(ScriptedEngine(SAID), faults=faults) as server:
        async with async_client(server) as asking:
            empty, bare, free, whole = [
                await asking.chat.completions.create(**ASKED, logprobs=True) for _ in range(4)
            ]
    assert empty.choices == []
    assert bare.choices[0].logprobs is None
    assert free.usage is None
    assert free.choices[0].logprobs == whole.choices[0].logprobs is not None
    assert empty.usage == bare.usage == whole.usage is not None


@pytest.mark.parametrize("kind", ["not-json", "truncate", "empty-choices"])
def test_streams_go_wrong_too(kind: Any) -> None:
    with (
        Server(ScriptedEngine("word " * 20), faults=lambda _: Fault(kind)) as server,
        client(server) as asking,
    ):
        stream = asking.chat.completions.create(**ASKED, stream=True)
        said, raised = [], None
        try:
            for chunk in stream:
                said.append(chunk.choices)  # noqa: PERF401 - what came before the error counts
        except Exception as error:  # noqa: BLE001 - each client has one of its own for a cut stream
            raised = error
        assert server.dropped == ()
    if kind == "empty-choices":
        assert raised is None
        assert said == [[]] * (1 + 21 + 1)
    else:
        assert raised is not None
        assert isinstance(raised, json.JSONDecodeError) == (kind == "not-json")
        assert len(said) == 11


def test_a_body_that_is_no_json() -> None:
    with (
        Server(ScriptedEngine(SAID), faults=lambda _: Fault("not-json")) as server,
        client(server) as asking,
        pytest.raises(json.JSONDecodeError),
    ):
        asking.chat.completions.create(**ASKED)


async def test_a_late_answer_is_waited_for_or_given_up() -> None:
    faults = by_number({0: Fault.delay(0.2), 1: Fault.delay(600), 2: Fault.delay(600)})
    with Server(ScriptedEngine(SAID), faults=faults) as server:
        async with async_client(server) as asking:
            began = time.monotonic()
            assert (await asking.chat.completions.create(**ASKED)).choices
            assert time.monotonic() - began >= 0.2
            with pytest.raises(openai.APITimeoutError):
                await asking.chat.completions.create(**ASKED, timeout=0.1)
            given_up = asyncio.create_task(asking.chat.completions.create(**ASKED))
            while len(server.calls) < 3:
                await asyncio.sleep(0.01)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            await asyncio.to_thread(server.wait_idle)
        assert server.dropped == (1, 2)


async def test_a_server_closes_although_requests_are_open() -> None:
    with Server(ScriptedEngine(SAID), faults=lambda _: Fault.delay(600)) as server:
        async with async_client(server) as asking:
            waiting = [asyncio.create_task(asking.chat.completions.create(**ASKED)) for _ in range(20)]
            while len(server.calls) < 20:
                await asyncio.sleep(0.01)
            assert server.most_open == 20
            with pytest.raises(TimeoutError, match="20 requests"):
                server.wait_idle(timeout=0.01)
            await asyncio.to_thread(server.__exit__, None, None, None)
            ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(one) for one in ended} == {openai.APIConnectionError}
    assert server.dropped == ()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "truncated"}, "Did you mean 'truncate'"),
        ({"kind": "status", "code": 200}, "from 400 to 599"),
        ({"kind": "delay", "seconds": -1}, "seconds=-1"),
        ({"kind": "status", "retry_after": float("nan")}, "retry_after=nan"),
    ],
)
def test_arguments(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Fault(**wrong)
