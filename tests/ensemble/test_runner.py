"""Asking: order of calls, failures, timeouts, budgets, cancellation; sync and async give the same verdict."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import phaseguard
from phaseguard import Ensemble, Verdict
from phaseguard.ensemble import Answer
from phaseguard.errors import AllCallsFailedError, InputError
from phaseguard.voting import Budget, Tie, group_by_judge
from tests.ensemble.scripted import COMMON, LAYOUTS, NUMBERS, PROMPT, WHERE, Clock, Scripted, Slow


def ensemble(ask: Any, **more: Any) -> Ensemble:
    return Ensemble(ask, **{**COMMON, **more})


def ask(replies: Any, **more: Any) -> Verdict:
    return ensemble(Scripted(replies), **more).ask(PROMPT, **WHERE)


def answers(verdict: Verdict) -> list[str | None]:
    return [vote.answer for vote in verdict.votes]


def test_layouts_are_asked_in_order_until_the_answer_is_clear() -> None:
    model = Scripted("ABAA")
    verdict = ensemble(model).ask(PROMPT, **WHERE)
    assert model.asked == [0, 1, 2]
    assert (verdict.answer, verdict.support, verdict.counted, verdict.ended) == ("A", 2, 3, "settled")
    assert answers(verdict) == ["A", "B", "A"]
    assert [vote.phase for vote in verdict.votes] == [3, 2, 1]
    assert [vote.strength for vote in verdict.votes] == pytest.approx([0.9, 0.8, 0.6])
    assert verdict.agreement == 2 / 3
    assert verdict.cost.calls == 3
    assert verdict.cost.tokens == sum(layout.tokens for layout in LAYOUTS.layouts[:3])
    assert verdict.layouts == LAYOUTS
    everything = ask("ABAA", stop="all")
    assert (everything.answer, everything.support, everything.ended) == ("A", 3, "all")


@pytest.mark.parametrize("rule", ["majority", "weighted"])
def test_stopping_early_never_changes_who_wins(rule: Any) -> None:
    for replies in product("ABC", repeat=4):
        whole, early = ask(replies, rule=rule, stop="all"), ask(replies, rule=rule)
        assert early.answer == whole.answer
        assert early.cost.calls <= whole.cost.calls


def test_two_strong_phases_that_agree_end_it() -> None:
    assert LAYOUTS.strong == {2, 3}
    verdict = ask("AABB", stop="agree", rule="weighted")
    assert (verdict.ended, verdict.cost.calls, verdict.answer) == ("agreement", 2, "A")
    other = ask("ABBB", stop="agree")
    assert (other.ended, other.cost.calls, other.answer) == ("all", 4, "B")


def test_a_probable_answer_ends_it() -> None:
    replies = [Answer("A", 0.4), Answer("B", 0.95), Answer("A", 0.5), Answer("A", 0.5)]
    verdict = ask(replies, stop=0.9)
    assert (verdict.answer, verdict.ended, verdict.cost.calls) == ("B", "probability", 2)
    assert (verdict.confidence.value, verdict.confidence.kind) == (0.95, "probability")
    assert "not measured" in verdict.confidence.meaning
    assert ask(replies, stop="all").answer == "A"
    assert ask(replies, stop="all", rule="probability").answer == "B"
    with pytest.raises(InputError, match="no probability"):
        ask("AAAA", stop=0.9)


def test_a_failed_call_is_a_missing_ballot() -> None:
    error = ConnectionError("reset")
    verdict = ask([error, "A", "B", "A"])
    assert answers(verdict) == [None, "A", "B", "A"]
    assert verdict.votes[0].error is error
    assert (verdict.answer, verdict.support, verdict.counted, verdict.agreement) == ("A", 2, 3, 2 / 3)
    assert verdict.confidence.kind == "agreement"
    assert "no probability of being right" in verdict.confidence.meaning


def test_all_failed_raises_with_every_error() -> None:
    errors = [ConnectionError("reset"), ValueError("bad"), ConnectionError("reset"), ValueError("worse")]
    with pytest.raises(
        AllCallsFailedError, match=r"None of 4 .*ConnectionError: reset; ValueError: bad"
    ) as seen:
        ask(errors)
    assert [vote.error for vote in seen.value.votes] == errors
    with pytest.raises(AllCallsFailedError, match="a reply without an answer"):
        ask(["", " ", "", ""])


@pytest.mark.parametrize("wrong", [None, 5, {"text": "A"}, b"A"])
def test_what_is_no_answer_is_a_failed_call(wrong: Any) -> None:
    verdict = ask([wrong, "A", "A", "A"])
    assert isinstance(verdict.votes[0].error, InputError)
    assert verdict.answer == "A"


def test_interrupting_is_not_a_failed_call() -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensemble(interrupted).ask(PROMPT, **WHERE)


def test_ties_go_to_the_strongest_layout_or_are_reported() -> None:
    assert ask("BAAB").answer == "B"
    verdict = ask("BAAB", report_ties=True)
    assert (verdict.answer, verdict.support, verdict.counted) == (None, 2, 4)
    assert isinstance(verdict.outcome, Tie)
    assert [candidate.answer for candidate in verdict.outcome.tied] == ["B", "A"]


def test_budgets() -> None:
    calls = ask("ABBB", budget=Budget(calls=2), stop="all")
    assert (calls.ended, calls.cost.calls, calls.answer) == ("budget", 2, "A")
    first, second = (layout.tokens for layout in LAYOUTS.layouts[:2])
    tokens = ask("ABBB", budget=Budget(tokens=first + second + 21), answer_tokens=10)
    assert (tokens.ended, tokens.cost.calls) == ("budget", 2)
    said = [Answer("A", tokens=500), "B", "B", "B"]
    counted = ask(said, budget=Budget(tokens=first + second + 21), answer_tokens=10)
    assert (counted.cost.calls, counted.cost.tokens) == (1, first + 500)
    seconds = ask("ABCA", budget=Budget(seconds=4.5), clock=Clock())
    assert (seconds.ended, seconds.cost.calls, seconds.cost.seconds) == ("budget", 2, 4)
    assert [vote.seconds for vote in seconds.votes] == [1, 1]
    for nothing in (Budget(calls=0), Budget(tokens=first - 1)):
        with pytest.raises(InputError, match="budget"):
            ask("AAAA", budget=nothing)


def test_a_vote_is_settled_within_the_calls_that_the_budget_allows() -> None:
    verdict = ask("ABBB", budget=Budget(calls=2))
    assert (verdict.answer, verdict.ended, verdict.cost.calls) == ("A", "settled", 1)
    assert ask("AAAA", budget=Budget(calls=3)).ended == "settled"


def test_the_endpoints_own_counts_are_taken() -> None:
    verdict = ask([Answer("A", tokens=7, prompt_tokens=100, cached_tokens=64, raw="x")] * 4)
    assert verdict.votes[0].tokens == 107
    assert verdict.votes[0].reply is not None
    assert (verdict.votes[0].reply.cached_tokens, verdict.votes[0].reply.raw) == (64, "x")


def test_answers_are_extracted_and_grouped() -> None:
    replies = ["The answer is 0.5.", "I think... The answer is 1/2", "no idea", "The answer is 7"]
    verdict = ask(replies, find_answer="answer-is", stop="all")
    assert (verdict.answer, verdict.support, verdict.counted) == ("0.5", 2, 3)
    assert answers(verdict) == ["0.5", "1/2", None, "7"]
    assert verdict.votes[2].reply is not None
    assert verdict.votes[2].reply.text == "no idea"
    judged = ask(
        ["in 1999", "1999", "x", "y"],
        grouping=lambda ballots: group_by_judge(ballots, lambda one, other: one[-4:] == other[-4:]),
    )
    assert (judged.answer, judged.support) == ("in 1999", 2)


def test_a_disputed_answer_gets_a_second_opinion() -> None:
    seen: list[Verdict] = []

    def think(verdict: Verdict) -> str:
        seen.append(verdict)
        return "The answer is C"

    more: dict[str, Any] = {"find_answer": ["answer-is", "whole"], "on_disagreement": think}
    verdict = ask("ABCD", **more)
    assert (verdict.answer, verdict.support, verdict.ended) == ("C", 1, "all")
    assert verdict.second == Answer("The answer is C")
    assert [one.answer for one in seen] == ["A"]
    assert verdict.confidence.value == 0.25
    assert ask("AAAB", **more).second is None
    assert len(seen) == 1
    kept = ask("ABCD", on_disagreement=lambda verdict: None)
    assert (kept.answer, kept.second) == ("A", None)
    assert ask("BAAB", on_disagreement=lambda verdict: "Z").answer == "Z", "half of the ballots is too few"
    new = ask("BAAB", report_ties=True, on_disagreement=lambda verdict: Answer("Z", 0.9))
    assert (new.answer, new.support, new.confidence.value) == ("Z", 0, 0.9)


def test_an_async_second_opinion() -> None:
    async def think(verdict: Verdict) -> str:
        await asyncio.sleep(0)
        return "D"

    slow = ensemble(Slow("ABCD", [0] * 4), on_disagreement=think)
    assert slow.ask(PROMPT, **WHERE).answer == "D"
    with pytest.raises(InputError, match="await"):
        ensemble(Scripted("ABCD"), on_disagreement=think).ask(PROMPT, **WHERE)


def test_the_first_layout_is_asked_alone_then_as_many_as_allowed() -> None:
    for concurrency in (1, 2, 3, 9):
        model = Slow("ABCD", [5, 5, 5, 5])
        verdict = ensemble(model, concurrency=concurrency, stop="all").ask(PROMPT, **WHERE)
        assert model.asked[0] == 0
        assert model.most == min(concurrency, 3)
        assert sorted(model.asked) == [0, 1, 2, 3]
        assert answers(verdict) == ["A", "B", "C", "D"]


def test_what_is_no_longer_needed_is_cancelled() -> None:
    model = Slow("AABB", [0, 0, None, None])
    tasks: list[int] = []

    async def main() -> Verdict:
        verdict = await ensemble(model, stop=["settled", "agree"]).aask(PROMPT, **WHERE)
        tasks.append(len(asyncio.all_tasks()))
        return verdict

    verdict = asyncio.run(main())
    assert (verdict.answer, verdict.cancelled, verdict.cost.calls) == ("A", 2, 4)
    assert sorted(model.cancelled) == [2, 3]
    assert tasks == [1], "only the caller's own task is left"
    assert model.running == 0


def test_answers_that_come_too_early_are_kept_but_do_not_count() -> None:
    verdict = ensemble(Slow("AABB", [0, 9, 0, 0])).ask(PROMPT, **WHERE)
    assert (verdict.answer, verdict.support, answers(verdict)) == ("A", 2, ["A", "A"])
    assert [vote.layout for vote in verdict.unused] == [2, 3]
    assert (verdict.cancelled, verdict.cost.calls) == (0, 4)


def test_cancelling_the_caller_cancels_its_calls() -> None:
    model = Slow("AAAA", [0, None, None, None])

    async def main() -> None:
        task = asyncio.create_task(ensemble(model, stop="all").aask(PROMPT, **WHERE))
        while model.running < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert sorted(model.cancelled) == [1, 2, 3]


def test_a_call_over_its_time_is_a_missing_ballot() -> None:
    verdict = ensemble(Slow("ABBB", [None, 0, 0, 0]), timeout=0.01).ask(PROMPT, **WHERE)
    assert (verdict.answer, answers(verdict)[:3]) == ("B", [None, "B", "B"])
    assert isinstance(verdict.votes[0].error, TimeoutError)
    assert "0.01 s" in str(verdict.votes[0].error)
    with pytest.raises(AllCallsFailedError, match="no answer within"):
        ensemble(Slow("AAAA", [None] * 4), timeout=0.01).ask(PROMPT, **WHERE)
    own = TimeoutError("the client's own")
    assert ensemble(Slow([own, *"BBB"], [0] * 4), timeout=60).ask(PROMPT, **WHERE).votes[0].error is own


def test_plain_functions_run_in_threads_and_may_be_left_behind() -> None:
    release = threading.Event()

    def model(prompt: str) -> str:
        if NUMBERS[prompt] == 1:
            release.wait(60)
        return "A"

    async def main() -> Verdict:
        try:
            return await ensemble(model, timeout=0.05, stop="all").aask(PROMPT, **WHERE)
        finally:
            release.set()

    verdict = asyncio.run(main())
    assert answers(verdict) == ["A", None, "A", "A"]
    with pytest.raises(InputError, match="cannot be interrupted"):
        ensemble(model, timeout=1).ask(PROMPT, **WHERE)


def test_functions_of_every_kind() -> None:
    async def model(prompt: str) -> str:
        return "A"

    def plain(prompt: str) -> Any:
        return model(prompt)

    for given_ in (model, plain):
        assert asyncio.run(ensemble(given_).aask(PROMPT, **WHERE)).answer == "A"
    assert ensemble(model).ask(PROMPT, **WHERE).answer == "A"
    with pytest.raises(AllCallsFailedError, match="async def"):
        ensemble(plain).ask(PROMPT, **WHERE)

    async def inside() -> Verdict:
        with pytest.raises(InputError, match="await aask"):
            ensemble(model).ask(PROMPT, **WHERE)
        return ensemble(Scripted("AAAA")).ask(PROMPT, **WHERE)

    assert asyncio.run(inside()).answer == "A"


def test_what_a_thread_returns_too_late_is_closed() -> None:
    made: list[Any] = []

    async def model(prompt: str) -> str:
        return "A"

    def plain(prompt: str) -> Any:
        time.sleep(0.02 * len(made))
        made.append(model(prompt))
        return made[-1]

    for _ in range(3):
        assert asyncio.run(ensemble(plain).aask(PROMPT, **WHERE)).answer == "A"
    assert {inspect.getcoroutinestate(one) for one in made} == {inspect.CORO_CLOSED}


def test_prompts_come_as_they_were_given() -> None:
    messages = [{"role": "user", "content": PROMPT}]
    for prompt in (PROMPT, messages, {"messages": messages, "temperature": 0}):
        kinds: list[type] = []

        def model(given_: Any, kinds: list[type] = kinds) -> str:
            kinds.append(type(given_))
            return "A"

        ensemble(model).ask(prompt, **WHERE)
        assert set(kinds) == {type(prompt)}


def test_many_at_once_lose_no_ballot() -> None:
    async def main() -> list[Verdict]:
        models = [Slow([f"{n}", "x", f"{n}", "y"], [n % 3, n % 5, n % 2, 0]) for n in range(200)]
        asked = (ensemble(model, stop="all").aask(PROMPT, **WHERE) for model in models)
        verdicts = await asyncio.gather(*asked)
        assert all(sorted(model.asked) == [0, 1, 2, 3] for model in models)
        return verdicts

    for n, verdict in enumerate(asyncio.run(main())):
        assert answers(verdict) == [f"{n}", "x", f"{n}", "y"]
        assert verdict.answer == f"{n}"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rule": "majorty"}, "Did you mean 'majority'"),
        ({"stop": "settle"}, "Did you mean 'settled'"),
        ({"stop": ["all", 0.9]}, "or 'all'"),
        ({"stop": []}, "or 'all'"),
        ({"stop": [0.5, 0.9]}, "one probability"),
        ({"stop": 0}, "probability above 0"),
        ({"stop": 1.5}, "probability above 0"),
        ({"stop": None}, "or 'all'"),
        ({"stop": ["settled", None]}, "or 'all'"),
        ({"rule": None}, "no rule None. Known names"),
        ({"rule": ["majority"]}, "no rule"),
        ({"grouping": "exact"}, "grouping='exact'"),
        ({"budget": 3}, r"budget=3: .*Budget\(calls=3\)"),
        ({"budget": None}, "budget=None"),
        ({"on_disagreement": "raise"}, "on_disagreement='raise'"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "30"}, "timeout='30'"),
        ({"concurrency": 0}, "concurrency"),
        ({"answer_tokens": -1}, "answer_tokens"),
        ({"find_answer": "answer"}, "preset"),
        ({"find_answer": 5}, "5 finds no answer"),
        ({"find_answer": ["boxed", None]}, "None finds no answer"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        ensemble(str, **arguments)
    with pytest.raises(InputError, match="give a function"):
        ensemble("gpt")


def test_rules_that_need_what_is_not_known_are_refused_before_the_first_call() -> None:
    model = Scripted("AAAA")
    for arguments in ({"rule": "weighted"}, {"stop": "agree"}):
        with pytest.raises(InputError, match="known"):
            ensemble(model, profile="deepseek-v4-flash", tokenizer=None, **arguments).ask(PROMPT, **WHERE)
    assert model.asked == []


def test_a_prompt_that_cannot_be_moved_is_asked_once_under_every_rule() -> None:
    for more in ({}, {"rule": "weighted"}, {"stop": "agree"}, {"stop": "all"}):
        verdict = ensemble(lambda prompt: "A", **more).ask(
            [{"role": "user", "content": PROMPT}], **WHERE, frozen=1
        )
        assert (verdict.answer, verdict.cost.calls, verdict.ended) == ("A", 1, "all")
        assert verdict.votes[0].phase is not None
    bare = ensemble(lambda prompt: "A", stop="agree").ask(PROMPT, key_passages=[])
    assert (bare.answer, bare.ended) == ("A", "settled")


def test_layouts_that_are_made_are_asked_as_they_are() -> None:
    model = Scripted("AABB")
    asking = ensemble(model, stop="all")
    made = asking.lay_out(PROMPT, **WHERE)
    assert asking.forecast(made) == asking.forecast(PROMPT, **WHERE)
    assert asking.ask(made).layouts is made
    assert asking.ask(asking.forecast(made).layouts).votes[2].answer == "B"
    with pytest.raises(InputError, match="query=: what is key"):
        asking.ask(made, query="Which?")


def test_nothing_else_in_the_package_asks_several_layouts() -> None:
    root = Path(phaseguard.__file__).parent
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    others = {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if not name.startswith("ensemble/")
    }
    imports = re.compile(
        r"from phaseguard\.ensemble\S* import(?! Prices$)|import phaseguard\.ensemble|\"phaseguard\.ensemble",
        re.MULTILINE,
    )
    using = {name for name, text in others.items() if imports.search(text)}
    asking = {name for name, text in others.items() if re.search(r"^[^\"`]*\bEnsemble\(", text, re.MULTILINE)}
    assert using == {"__init__.py", "cli_ask.py", "cli_ask_run.py", "testing/labmodel.py"}
    assert asking == {"cli_ask.py"}, "one command asks several layouts, the one that is for it"
    assert len(others) > 50


replies = st.lists(
    st.one_of(
        st.builds(Answer, st.sampled_from("ABC"), st.floats(0, 1)),
        st.builds(Answer, st.just(""), st.just(0.5)),
        st.just(ConnectionError("reset")),
    ),
    min_size=4,
    max_size=4,
)


@given(
    replies,
    st.lists(st.integers(0, 6), min_size=4, max_size=4),
    st.sampled_from(["majority", "weighted", "probability", "probability-sum"]),
    st.sampled_from(["all", "settled", "agree", 0.7, ("settled", "agree", 0.9)]),
    st.booleans(),
    st.integers(1, 5),
    st.none() | st.integers(1, 4),
)
def test_sync_and_async_give_the_same_verdict(
    script: Any, turns: Any, rule: Any, stop: Any, ties: bool, concurrency: int, calls: int | None
) -> None:
    more = {"rule": rule, "stop": stop, "report_ties": ties, "budget": Budget(calls=calls)}
    more |= {"on_disagreement": lambda verdict: "C", "clock": lambda: 0.0}
    outcomes: list[Any] = []
    for model in (Scripted(script), Slow(script, turns)):
        try:
            verdict = ensemble(model, concurrency=concurrency, **more).ask(PROMPT, **WHERE)
        except AllCallsFailedError as error:
            outcomes.append((str(error), error.votes))
        else:
            kept = (verdict.answer, verdict.support, verdict.counted, verdict.confidence, verdict.outcome)
            outcomes.append((*kept, verdict.ended, verdict.votes, verdict.second, verdict.agreement))
            ended = [vote.layout for vote in (*verdict.votes, *verdict.unused)]
            assert sorted(model.asked) == sorted(ended), "no answer is lost or counted twice"
            assert len(verdict.votes) + len(verdict.unused) + verdict.cancelled == verdict.cost.calls
            assert verdict.cost.calls <= (calls or 4)
    assert outcomes[0] == outcomes[1]


def test_the_comparison_can_fail() -> None:
    one, other = ask("AABB"), ask("ABAB")
    assert one.answer == other.answer
    assert one.votes != other.votes
