"""Stopping before a vote is settled: strong phases agree, an answer is sure, or the budget is spent."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import (
    Ballot,
    Budget,
    Cost,
    Pending,
    Stop,
    agreeing,
    decide,
    group,
    probable,
    settled,
    spent,
)

phased = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3) | st.none()), max_size=6)


@given(phased, st.sets(st.integers(0, 3), min_size=1), st.integers(1, 4))
def test_phases_that_agree_are_counted_once_each(cast, strong, needed):
    found = group(Ballot(layout, answer, phase=phase) for layout, (answer, phase) in enumerate(cast))
    if needed > len(strong):
        with pytest.raises(InputError, match=f"{needed} strong phases cannot agree: there are {len(strong)}"):
            agreeing(found, strong, needed=needed)
        return
    phases = {answer: {phase for said, phase in cast if said == answer} & strong for answer, _ in cast}
    most = max(map(len, phases.values()), default=0)
    stop = agreeing(found, strong, needed=needed)
    if most < needed:
        assert stop is None
    else:
        assert stop.reason == "agreement"
        assert stop.group.answer == next(answer for answer, met in phases.items() if len(met) == most)


def test_agreement_of_no_phase_is_no_agreement():
    with pytest.raises(InputError, match="0 strong phases cannot agree"):
        agreeing(group([Ballot(0, "A", phase=1)]), {1, 2}, needed=0)


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 10)), max_size=6),
    st.integers(1, 10),
)
def test_the_first_sure_answer_stops(cast, threshold):
    found = group(Ballot(layout, said, probability=sure / 10) for layout, (said, sure) in enumerate(cast))
    stop = probable(found, threshold / 10)
    best = max((sure for _, sure in cast), default=0)
    assert (stop is not None) == (best >= threshold)
    if stop:
        assert stop.reason == "probability"
        assert stop.group.answer == decide(found, "probability").answer


@pytest.mark.parametrize("threshold", [0, -1, 1.5, nan])
def test_thresholds_are_probabilities(threshold):
    with pytest.raises(InputError, match="above 0 and at most 1"):
        probable(group([]), threshold)


def test_no_ballots_stop_nothing_but_a_budget():
    nothing = group([Ballot(0, None)])
    assert settled(nothing, [Pending(1)]) is None
    assert settled(nothing, []) is None
    assert agreeing(nothing, {1, 2}) is None
    assert probable(nothing) is None
    assert spent(Cost(1), Budget(calls=1)) == Stop("budget")


limits = st.none() | st.integers(0, 4)


@given(st.tuples(limits, limits, limits), *[st.tuples(*[st.integers(0, 3)] * 3)] * 2)
def test_a_budget_is_spent_when_the_next_call_goes_over_any_limit(most, so_far, following):
    over = any(
        limit is not None and one + other > limit
        for limit, one, other in zip(most, so_far, following, strict=True)
    )
    assert (spent(Cost(*so_far), Budget(*most), Cost(*following)) is not None) == over


def test_costs_add_up_and_the_next_call_is_one_call_unless_said():
    assert sum([Cost(1, 10, 0.5), Cost(2, 5, 0.25)], Cost()) == Cost(3, 15, 0.75)
    assert spent(Cost(2), Budget(calls=3)) is None
    assert spent(Cost(3), Budget(calls=3)) == Stop("budget")
    assert spent(Cost(99, 10**9, inf), Budget()) is None


@pytest.mark.parametrize("name", ["calls", "tokens", "seconds"])
@pytest.mark.parametrize("limit", [-1, nan])
def test_budgets_below_nothing_are_refused(name, limit):
    with pytest.raises(InputError, match=rf"Budget of {limit} {name}"):
        Budget(**{name: limit})
