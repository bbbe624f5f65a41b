"""Ensembles over real HTTP: the server is phaseguard.testing's, the clients are openai's."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import openai
import pytest

from phaseguard.ensemble import Answer, Ensemble, Verdict
from phaseguard.ensemble.openai import async_openai_ask, openai_ask
from phaseguard.errors import AllCallsFailedError, InputError
from phaseguard.testing import (
    Call,
    Completion,
    Fault,
    LabEngine,
    ScriptedEngine,
    Server,
    assert_phases,
    lab_ask,
)
from tests.ensemble.labmodel import LOAD, TOKENIZER, cases, profile_of
from tests.ensemble.scripted import COMMON, LAYOUTS, PROMPT, WHERE
from tests.testing.clients import MODEL, async_client, client

CASES = cases(LOAD, 12)
SAID = Completion("A17", tokens=("A", "17"), logprobs=(-0.1, -0.1), prompt_tokens=9)
MISSING: dict[str, tuple[Fault, type[Exception]]] = {
    "429": (Fault.rate_limited(), openai.RateLimitError),
    "500": (Fault.status(500, retry_after=0.01), openai.InternalServerError),
    "truncate": (Fault("truncate"), openai.APIConnectionError),
    "disconnect": (Fault("disconnect"), openai.APIConnectionError),
    "not-json": (Fault("not-json"), json.JSONDecodeError),
    "empty-choices": (Fault("empty-choices"), InputError),
}
RETRIED = ("429", "500", "truncate", "disconnect")


def lab() -> Any:
    return {"profile": profile_of("csa4-s0", LOAD), "tokenizer": TOKENIZER}


def layout_of(call: Call) -> int:
    return next(layout.number for layout in LAYOUTS.layouts if layout.prompt == call.texts[0])


def where(case: Any) -> Any:
    return {"key_passages": [case.record], "answer": case.answer_text}


@dataclass(frozen=True)
class Ended:
    """What an ensemble said or raised, and how often each layout was asked for it."""

    verdict: Any
    asked: Mapping[int, int]


async def every_way(server: Server, retries: int) -> list[Ended]:
    """A plain client in order and in threads, and an async one."""
    chosen: dict[str, Any] = {**COMMON, "stop": "all"}
    with client(server, retries=retries) as plain:
        async with async_client(server, retries) as awaited:
            sync = Ensemble(openai_ask(plain, model=MODEL), **chosen)
            other = Ensemble(async_openai_ask(awaited, model=MODEL), **chosen)
            return [
                await ended(server, asyncio.to_thread(sync.ask, PROMPT, **WHERE)),
                await ended(server, sync.aask(PROMPT, **WHERE)),
                await ended(server, other.aask(PROMPT, **WHERE)),
            ]


async def ended(server: Server, question: Coroutine[Any, Any, Verdict]) -> Ended:
    server.reset()
    (found,) = await asyncio.gather(question, return_exceptions=True)
    return Ended(found, Counter(map(layout_of, server.calls)))


def test_over_http_the_lab_model_says_what_it_says_in_process() -> None:
    options = {"model": MODEL, "logprobs": True}
    with Server(LabEngine("csa4-s0")) as server, client(server) as asking:
        over_http = Ensemble(openai_ask(asking, **options), **lab(), stop="all")
        in_process = Ensemble(lab_ask("csa4-s0"), **lab(), stop="all")
        for case in CASES:
            server.reset()
            found, expected = (
                over_http.ask(case.prompt, **where(case)),
                in_process.ask(case.prompt, **where(case)),
            )
            assert (found.answer, found.support, found.cost.tokens) == (
                expected.answer,
                expected.support,
                expected.cost.tokens,
            )
            assert len(server.calls) == len(found.votes) == 4
            for vote, same, call in zip(found.votes, expected.votes, server.calls, strict=True):
                assert (vote.phase, vote.answer, vote.tokens) == (same.phase, same.answer, same.tokens)
                assert vote.reply is not None
                assert same.reply is not None
                assert vote.reply.probability == pytest.approx(same.reply.probability)
                assert call.texts == (found.layouts.layouts[vote.layout].prompt,)
                assert_phases(call, case.record, {_phase(vote.phase, case)}, **lab())


def _phase(answer: int | None, case: Any) -> int:
    """Where a record starts whose answer stands at a phase."""
    assert answer is not None
    return int((answer - (case.value - case.start)) % 4)


@pytest.mark.parametrize("name", MISSING)
async def test_a_fault_is_a_missing_ballot_with_its_error(name: str) -> None:
    fault, error = MISSING[name]

    def second(call: Call) -> Fault | None:
        return fault if layout_of(call) == 1 else None

    with Server(ScriptedEngine(SAID), faults=second) as server:
        for end in await every_way(server, retries=0):
            verdict = end.verdict
            assert (verdict.answer, verdict.support, verdict.counted) == ("A17", 3, 3)
            assert [vote.answer for vote in verdict.votes] == ["A17", None, "A17", "A17"]
            assert isinstance(verdict.votes[1].error, error)
            assert [vote.error for vote in verdict.votes if vote.layout != 1] == [None] * 3
            assert (verdict.cost.calls, len(verdict.votes)) == (4, 4)
            assert end.asked == {0: 1, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("name", RETRIED)
async def test_what_the_client_retries_is_no_missing_ballot(name: str) -> None:
    fault, _ = MISSING[name]

    def first_try(call: Call) -> Fault | None:
        return fault if layout_of(call) == 1 and call.headers["x-stainless-retry-count"] == "0" else None

    with Server(ScriptedEngine(SAID), faults=first_try) as server:
        for end in await every_way(server, retries=1):
            verdict = end.verdict
            assert (verdict.support, verdict.counted, verdict.cost.calls) == (4, 4, 4)
            assert [vote.error for vote in verdict.votes] == [None] * 4
            assert end.asked == {0: 1, 1: 2, 2: 1, 3: 1}


@pytest.mark.parametrize("name", MISSING)
async def test_when_all_fail_the_error_carries_them(name: str) -> None:
    fault, error = MISSING[name]
    with Server(ScriptedEngine(SAID), faults=lambda _: fault) as server:
        for end in await every_way(server, retries=0):
            raised = end.verdict
            assert isinstance(raised, AllCallsFailedError)
            assert [type(vote.error) is error or isinstance(vote.error, error) for vote in raised.votes] == [
                True
            ] * 4
            assert error.__name__ in str(raised)
            assert end.asked == {0: 1, 1: 1, 2: 1, 3: 1}


async def test_refusals_of_the_server_are_errors_of_the_calls() -> None:
    with Server(ScriptedEngine(SAID), models=["other"]) as server:
        for end in await every_way(server, retries=2):
            raised = end.verdict
            assert isinstance(raised, AllCallsFailedError)
            assert "`test-model` does not exist" in str(raised)
            assert end.asked == {0: 1, 1: 1, 2: 1, 3: 1}


async def test_without_logprobs_a_vote_by_probability_is_refused() -> None:
    def bare(call: Call) -> Fault | None:
        return Fault("no-logprobs") if layout_of(call) == 2 else None

    with Server(ScriptedEngine(SAID), faults=bare) as server:
        async with async_client(server) as asking:
            ask = async_openai_ask(asking, model=MODEL, logprobs=True)
            majority = await Ensemble(ask, **COMMON, stop="all").aask(PROMPT, **WHERE)
            assert [vote.reply and vote.reply.probability is None for vote in majority.votes] == [
                False,
                False,
                True,
                False,
            ]
            with pytest.raises(InputError, match="probabilit"):
                await Ensemble(ask, **COMMON, rule="probability", stop="all").aask(PROMPT, **WHERE)


async def test_timeouts_of_the_ensemble_and_of_the_client() -> None:
    def late(call: Call) -> Fault | None:
        return Fault.delay(600) if layout_of(call) in {1, 2} else None

    with Server(ScriptedEngine(SAID), faults=late) as server:
        for timeouts, error in (({"timeout": 0.3}, TimeoutError), ({}, openai.APITimeoutError)):
            own = {} if timeouts else {"timeout": 0.3}
            async with async_client(server, **own) as asking:
                ensemble = Ensemble(async_openai_ask(asking, model=MODEL), **COMMON, stop="all", **timeouts)
                verdict = await ensemble.aask(PROMPT, **WHERE)
            assert [isinstance(vote.error, error) for vote in verdict.votes] == [False, True, True, False]
            assert verdict.support == 2
            await asyncio.to_thread(server.wait_idle)
            assert sorted(layout_of(server.calls[number]) for number in server.dropped) == [1, 2]
            server.reset()


class Together:
    """Answers once so many requests have come, those of some layouts never."""

    def __init__(self, wait_for: int, hang: frozenset[int] = frozenset()) -> None:
        self.wait_for, self.hang = wait_for, hang
        self.come = 0
        self.all_come = asyncio.Event()

    async def reply(self, body: Mapping[str, Any], path: str) -> Completion:
        self.come += 1
        layout = layout_of(Call(0, path, body))
        if self.come >= self.wait_for:
            self.all_come.set()
        if layout:
            await self.all_come.wait()
        if layout in self.hang:
            await asyncio.Event().wait()
        return SAID


def tasks() -> set[Any]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_calls_no_longer_needed_are_cancelled_and_the_server_sees_it() -> None:
    before = tasks()
    with Server(Together(4, hang=frozenset({2, 3}))) as server:
        async with async_client(server) as asking:
            verdict = await Ensemble(async_openai_ask(asking, model=MODEL), **COMMON).aask(PROMPT, **WHERE)
            assert tasks() == before
            assert (verdict.answer, verdict.support, verdict.ended) == ("A17", 2, "settled")
            assert (verdict.cancelled, verdict.cost.calls, len(verdict.votes), verdict.unused) == (
                2,
                4,
                2,
                (),
            )
            await asyncio.to_thread(server.wait_idle)
        assert sorted(layout_of(server.calls[number]) for number in server.dropped) == [2, 3]


@pytest.mark.parametrize("hanging", [{0}, {1, 2, 3}])
async def test_a_question_called_off_leaves_nothing_behind(hanging: set[int]) -> None:
    def hang(call: Call) -> Fault | None:
        return Fault.delay(600) if layout_of(call) in hanging else None

    before = tasks()
    with Server(ScriptedEngine(SAID), faults=hang) as server:
        async with async_client(server) as asking:
            ensemble = Ensemble(async_openai_ask(asking, model=MODEL), **COMMON, stop="all")
            question = asyncio.create_task(ensemble.aask(PROMPT, **WHERE))
            while not hanging <= set(map(layout_of, server.calls)):
                await asyncio.sleep(0.005)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
            assert tasks() == before
            await asyncio.to_thread(server.wait_idle)
        assert {layout_of(server.calls[number]) for number in server.dropped} == hanging
        assert len(server.dropped) == len(hanging)


class Crowd:
    """Answers with the code in the prompt; the first answer waits until a crowd of requests is open."""

    def __init__(self, size: int) -> None:
        self.size, self.open = size, 0
        self.enough = asyncio.Event()

    async def reply(self, body: Mapping[str, Any], path: str) -> Completion:
        self.open += 1
        if self.open == self.size:
            self.enough.set()
        await self.enough.wait()
        self.open -= 1
        return Completion(code_in(body["messages"][0]["content"]), prompt_tokens=9, completion_tokens=1)


def code_in(prompt: str) -> str:
    found = re.search(r"code is (A\d+)", prompt)
    assert found
    return found[1]


def unlucky(call: Call) -> Fault | None:
    """Every seventh request meets one of the faults."""
    faults = [fault for fault, _ in MISSING.values()]
    return faults[call.number // 7 % len(faults)] if call.number % 7 == 3 else None


@pytest.mark.parametrize(
    ("questions", "at_once"), [(60, 40), pytest.param(600, 250, marks=pytest.mark.slow, id="thousands")]
)
async def test_many_calls_at_once_lose_no_ballot_and_count_none_twice(questions: int, at_once: int) -> None:
    gate, before = asyncio.Semaphore(at_once), tasks()
    with Server(Crowd(at_once), faults=unlucky) as server:
        async with async_client(server) as asking:
            ask = async_openai_ask(asking, model=MODEL)

            async def gated(prompt: Any) -> Answer:
                async with gate:
                    return await ask(prompt)

            ensemble = Ensemble(gated, **COMMON, stop="all")
            asked = [
                ensemble.aask(
                    PROMPT.replace("A17", f"A{n}"), key_passages=[f"The code is A{n}."], answer=f"A{n}"
                )
                for n in range(questions)
            ]
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert tasks() == before
        assert (server.most_open, server.dropped) == (at_once, ())
        calls = server.calls
    assert len(calls) == 4 * questions
    compare(found, calls)
    for wrong in (calls[1:], (*calls, calls[0]), (*calls[1:], calls[1])):
        with pytest.raises(AssertionError):
            compare(found, wrong)
    for tampered in (found[::-1], [lose_a_vote(found[0]), *found[1:]], [found[0], found[0], *found[2:]]):
        with pytest.raises(AssertionError):
            compare(tampered, calls)


def compare(found: Sequence[Any], calls: Sequence[Call]) -> None:
    """Every call is one vote of its own question, with its answer or its fault, and every vote one call."""
    own: dict[str, dict[str, Call]] = defaultdict(dict)
    for call in calls:
        (prompt,) = call.texts
        assert prompt not in own[code_in(prompt)]
        own[code_in(prompt)][prompt] = call
    assert len(own) == len(found)
    for n, verdict in enumerate(found):
        mine = own[f"A{n}"]
        assert [vote.layout for vote in verdict.votes] == list(range(len(mine))) == [0, 1, 2, 3]
        failed = sum(unlucky(call) is not None for call in mine.values())
        assert sum(vote.error is not None for vote in verdict.votes) == failed
        if failed == 4:
            assert isinstance(verdict, AllCallsFailedError)
            continue
        assert (verdict.answer, verdict.support, verdict.counted) == (f"A{n}", 4 - failed, 4 - failed)
        for vote, layout in zip(verdict.votes, verdict.layouts.layouts, strict=True):
            assert (vote.error is None) == (unlucky(mine[layout.prompt]) is None)
            assert vote.answer == (None if vote.error else f"A{n}")


def lose_a_vote(verdict: Any) -> Any:
    if isinstance(verdict, AllCallsFailedError):
        return AllCallsFailedError("lost", verdict.votes[1:])
    return replace(verdict, votes=verdict.votes[1:])
