"""When a vote is settled, against every way in which it can go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import (
    Ballot,
    Decision,
    Group,
    Grouping,
    Pending,
    Stop,
    decide,
    decide_or_tie,
    group,
    settled,
)
from phaseguard.voting.ballots import in_order

Check = Callable[[Grouping, Sequence[Pending]], Stop | None]
NAMES = "ABCDEFGH"
TIE = "tie"


class Enumeration:
    """All votes of some layouts: any answer, known or new, or none, with any of some probabilities.

    A check is compared at every point of every vote with what can still come of it. Answers are numbered as
    they appear, which covers every sequence up to their names.
    """

    def __init__(self, check: Check, order: Sequence[int], rule="majority", *, ties=False, **options) -> None:
        self.check, self.order, self.rule, self.ties = check, order, rule, ties
        self.strengths: Sequence[float] | None = options.get("strengths")
        self.probabilities: Sequence[float | None] = options.get("probabilities", [None])
        self.faults: list[str] = []
        self.points = self.stops = 0
        self._walk([])

    def _strength(self, layout: int) -> float | None:
        return self.strengths[layout] if self.strengths else None

    def _walk(self, cast: list[Ballot]) -> set[str | None]:
        """Compare from here on; return every outcome that can be."""
        if len(cast) == len(self.order):
            outcomes = {self._outcome(group(cast))}
        else:
            layout = self.order[len(cast)]
            seen = len({ballot.answer for ballot in cast} - {None})
            outcomes = self._walk([*cast, Ballot(layout, None, strength=self._strength(layout))])
            for answer in NAMES[: seen + 1]:
                for probability in self.probabilities:
                    ballot = Ballot(layout, answer, strength=self._strength(layout), probability=probability)
                    outcomes |= self._walk([*cast, ballot])
        self._compare(cast, outcomes)
        return outcomes

    def _outcome(self, found: Grouping) -> str | None:
        if not found.groups:
            return None
        result = decide_or_tie(found, self.rule) if self.ties else decide(found, self.rule)
        return result.answer if isinstance(result, Decision) else TIE

    def _compare(self, cast: list[Ballot], outcomes: set[str | None]) -> None:
        self.points += 1
        pending = [Pending(layout, self._strength(layout)) for layout in self.order[len(cast) :]]
        stop = self.check(group(cast), pending)
        expected = next(iter(outcomes)) if len(outcomes) == 1 else None
        says = None if stop is None else stop.group.answer if stop.group else TIE
        self.stops += says is not None
        if says != expected:
            self.faults.append(f"{[(one.layout, one.answer) for one in cast]}: {says}, not {expected}")


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("ballots", range(1, 9))
def test_a_majority_is_settled_exactly_when_no_further_ballots_can_change_it(ballots, ties):
    found = Enumeration(
        lambda cast, pending: settled(cast, pending, report_ties=ties), range(ballots), ties=ties
    )
    assert found.faults == []
    assert found.stops > 0


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("order", [*permutations(range(4)), (5, 0, 3, 1, 4, 2), (5, 4, 3, 2, 1, 0)])
def test_layouts_may_answer_in_any_order(order, ties):
    check = lambda cast, pending: settled(cast, pending, report_ties=ties)  # noqa: E731
    assert Enumeration(check, order, ties=ties).faults == []


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "strengths",
    [(0.9, 0.6, 0.5, 0.4, 0.3, 0.2), (0.3, 0.1, 0.2, 0.1, 0.2, 0.1), (5, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1),
     (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (1e9, 1e-9, 1e-9, 1, 1, 1)],
)  # fmt: skip
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (3, 5, 1, 0, 2, 4)])
def test_weighted_votes_are_settled_exactly(strengths, order, ties):
    def check(cast, pending):
        return settled(cast, pending, "weighted", report_ties=ties)

    assert Enumeration(check, order, "weighted", ties=ties, strengths=strengths).faults == []


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rule", ["probability", "probability-sum"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_probabilities_are_settled_exactly(rule, order, ties):
    def check(cast, pending):
        return settled(cast, pending, rule, report_ties=ties)

    assert Enumeration(check, order, rule, ties=ties, probabilities=[0.0, 0.5, 1.0]).faults == []


def leader_at_once(cast: Grouping, pending: Sequence[Pending]) -> Stop | None:
    return Stop("settled", decide(cast).winner.group) if cast.groups else None


def last_answer(cast: Grouping, pending: Sequence[Pending]) -> Stop | None:
    return Stop("settled", cast.groups[-1]) if settled(cast, pending) else None


WRONG: dict[str, Check] = {
    "one ballot too early": lambda cast, pending: settled(cast, pending[1:]),
    "one ballot too late": lambda cast, pending: settled(cast, [*pending, Pending(99)]),
    "never": lambda cast, pending: None,
    "a leader is enough": leader_at_once,
    "the last answer": last_answer,
    "ties stay open": lambda cast, pending: settled(cast, pending, report_ties=True),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_enumeration_sees_wrong_stops(wrong):
    assert Enumeration(WRONG[wrong], range(4)).faults


def test_the_enumeration_is_complete():
    """Sequences of n ballots, each an answer or none, up to names: the Bell number of n + 1."""
    bell = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147]
    for ballots in range(5):
        points = Enumeration(WRONG["never"], range(ballots)).points
        assert points == sum(bell[1 : ballots + 2])


def leader_kept(cast: Sequence[Group], order: Sequence[int], at: int, leader: set[int]) -> bool:
    """Whether the winner holds the leader's ballots however the rest goes; a ballot may join any groups."""
    if at == len(order):
        winner = decide(Grouping(tuple(cast))).winner.group
        return leader <= {ballot.layout for ballot in winner.ballots}
    if not leader_kept(cast, order, at + 1, leader):
        return False
    for size in range(len(cast) + 1):
        for joined in combinations(cast, size):
            ballots = in_order(
                [*(one for group in joined for one in group.ballots), Ballot(order[at], "new")]
            )
            rest = [group for group in cast if group not in joined]
            groups = sorted([*rest, Group(ballots[0].layout, tuple(ballots))], key=lambda one: one.strongest)
            if not leader_kept(groups, order, at + 1, leader):
                return False
    return True


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (2, 4, 0, 3, 1)])
@given(answers=st.lists(st.sampled_from("ABC"), min_size=1, max_size=5))
def test_groups_that_may_merge_are_settled_exactly(order, answers):
    exact = group(Ballot(layout, answer) for layout, answer in zip(order, answers, strict=False))
    cast = Grouping(exact.groups, may_merge=True)
    leader = {ballot.layout for ballot in decide(cast).winner.group.ballots}
    stop = settled(cast, [Pending(layout) for layout in order[len(answers) :]])
    assert (stop is not None) == leader_kept(cast.groups, order, len(answers), leader)
    if stop:
        assert {ballot.layout for ballot in stop.group.ballots} == leader


def test_two_answers_that_may_become_one_are_not_settled():
    exact = group(Ballot(layout, answer) for layout, answer in enumerate("AAABB"))
    merging = Grouping(exact.groups, may_merge=True)
    tied = Grouping(group([Ballot(0, "A"), Ballot(1, "B")]).groups, may_merge=True)
    assert settled(exact, [Pending(5)], report_ties=True) is None
    assert settled(exact, [Pending(5)]) == settled(merging, [Pending(5)]) == Stop("settled", exact.groups[0])
    assert settled(tied, [Pending(2)], report_ties=True) is None
    assert settled(tied, [], report_ties=True) == Stop("settled")
    three = group(Ballot(layout, answer) for layout, answer in enumerate("AABBAC"))
    assert settled(three, [Pending(6)]) is not None
    assert settled(Grouping(three.groups, may_merge=True), [Pending(6)]) is None


@given(st.lists(st.sampled_from(["A", "a.", "B", "C", None]), min_size=1, max_size=8))
def test_asking_until_it_is_settled_gives_the_full_vote_and_no_earlier_point_does_for_certain(answers):
    cast = [Ballot(layout, answer) for layout, answer in enumerate(answers)]
    pending = [Pending(layout) for layout in range(len(answers))]
    stops = [settled(group(cast[:n]), pending[n:]) for n in range(len(cast) + 1)]
    first = next((n for n, stop in enumerate(stops) if stop), None)
    if first is None:
        assert set(answers) == {None}
    else:
        assert all(stops[first:])  # once settled, settled for good
        assert stops[first].group.key == decide(group(cast)).winner.group.key


def test_what_weighing_needs_is_asked_for():
    one = group([Ballot(0, "A", strength=0.5)])
    with pytest.raises(InputError, match="pending ballot of layout 1 has no strength"):
        settled(one, [Pending(1)], "weighted")
    with pytest.raises(InputError, match="layout 0 has no probability"):
        settled(one, [], "probability")
    with pytest.raises(InputError, match="Did you mean 'weighted'"):
        settled(one, [], "weightd")
    with pytest.raises(InputError, match="above 0"):
        Pending(1, 0.0)
