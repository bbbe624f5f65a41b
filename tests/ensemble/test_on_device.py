"""Ensembles over on-device models: what a vote and a probability are worth there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from phaseguard.ensemble import Ensemble, Verdict
from phaseguard.testing import lab_ask
from tests.ensemble.labmodel import LOAD, TOKENIZER, cases, profile_of

CASES = cases(LOAD, 60)


def verdicts(name: str, *, isolate: Any = "auto", **more: Any) -> list[Verdict]:
    chosen = {"profile": profile_of(name, LOAD), "tokenizer": TOKENIZER, "isolate": isolate}
    ensemble = Ensemble(lab_ask(name), **chosen, **more)
    return [ensemble.ask(c.prompt, key_passages=[c.record], answer=c.answer_text) for c in CASES]


def accuracy(found: list[Verdict]) -> float:
    return sum(v.answer == case.answer_text for v, case in zip(found, CASES, strict=True)) / len(CASES)


def calls(found: list[Verdict]) -> float:
    return sum(verdict.cost.calls for verdict in found) / len(found)


@pytest.mark.parametrize(("name", "vote", "sure"), [("chunk4-s0", 0.95, 0.99), ("csa4-s0", 0.87, 0.94)])
def test_votes_and_probabilities(name: str, vote: float, sure: float) -> None:
    whole, early = verdicts(name, stop="all"), verdicts(name)
    assert accuracy(whole) >= vote
    assert [verdict.answer for verdict in early] == [verdict.answer for verdict in whole]
    assert calls(early) <= 3.5 < calls(whole) == 4
    probable = verdicts(name, rule="probability", stop=0.9)
    assert accuracy(probable) >= sure
    assert calls(probable) <= 1.6


def test_agreement_tells_right_answers_from_wrong_ones() -> None:
    found = verdicts("csa4-s0", stop="all")
    agreement = {
        right: [
            v.agreement
            for v, case in zip(found, CASES, strict=True)
            if (v.answer == case.answer_text) is right
        ]
        for right in (True, False)
    }
    assert agreement[False], "some answers are wrong"
    mean = {right: sum(values) / len(values) for right, values in agreement.items()}
    assert mean[True] > mean[False] + 0.2


def test_every_vote_is_proven_and_says_where_its_answer_stood() -> None:
    for verdict, case in zip(verdicts("chunk4-s0", stop="all"), CASES, strict=True):
        assert {vote.phase for vote in verdict.votes} == {0, 1, 2, 3}
        for vote, layout in zip(verdict.votes, verdict.layouts.layouts, strict=True):
            assert layout.aligned.report.verified
            assert layout.restore() == case.prompt
            ids = TOKENIZER.encode(layout.prompt).ids
            at = layout.aligned.report.passages[0].spans[0].index_after
            assert ids[at : at + len(case.answer)].tolist() == case.answer.tolist()
            assert at % 4 == vote.phase


def test_plain_models_answer_the_same_in_threads() -> None:
    chosen: dict[str, Any] = {"profile": profile_of("csa4-s0", LOAD), "tokenizer": TOKENIZER}
    ensemble = Ensemble(lab_ask("csa4-s0"), **chosen, clock=lambda: 0.0)
    for case in CASES[:5]:
        where: Any = {"key_passages": [case.record], "answer": case.answer_text}
        one, other = ensemble.ask(case.prompt, **where), asyncio.run(ensemble.aask(case.prompt, **where))
        assert (one.answer, one.votes, one.ended) == (other.answer, other.votes, other.ended)
