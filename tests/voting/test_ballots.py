"""Ballots, and the groups of those that say the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import Ballot, Form, Grouping, answer_probability, group

ANSWERS = [
    "Paris",
    " PARIS.",
    "**paris**",
    "London",
    "0.5",
    "1/2",
    "50%",
    "007",
    "7",
    '{"a": 1}',
    '{"a":1.0}',
]
ballots = st.lists(st.sampled_from(ANSWERS) | st.none() | st.just(" \n"), max_size=8).map(
    lambda answers: [Ballot(layout, answer) for layout, answer in enumerate(answers)]
)


def faults(cast: list[Ballot], found: Grouping, form) -> list[str]:
    """What is wrong with a grouping, by looking at every pair of ballots."""
    wrong = []
    held = [ballot for one in found.groups for ballot in one.ballots] + list(found.missing)
    if sorted(held, key=lambda ballot: ballot.layout) != sorted(cast, key=lambda ballot: ballot.layout):
        wrong.append("a ballot is lost, or counted twice")
    place = {ballot.layout: number for number, one in enumerate(found.groups) for ballot in one.ballots}
    for one in cast:
        for other in cast:
            if one.missing or other.missing:
                continue
            same = place.get(one.layout) == place.get(other.layout)
            if same != (form(one.answer) == form(other.answer)):
                wrong.append(f"layouts {one.layout} and {other.layout}")
    if any(not ballot.missing for ballot in found.missing):
        wrong.append("an answer counts as missing")
    return wrong


@given(ballots, st.sampled_from([Form(), Form("text"), str.strip, len]))
def test_equal_answers_are_together_and_others_are_not(cast, form):
    found = group(cast, form)
    assert faults(cast, found, form) == []
    assert found.counted == len(cast) - len(found.missing)


@given(ballots, st.randoms())
def test_the_order_of_ballots_does_not_matter(cast, random):
    shuffled = list(cast)
    random.shuffle(shuffled)
    assert group(shuffled) == group(iter(cast))


@given(ballots)
def test_groups_stand_in_order_of_their_strongest_layouts(cast):
    found = group(cast)
    strongest = [one.strongest for one in found.groups]
    assert strongest == sorted(strongest)
    for one in found.groups:
        layouts = [ballot.layout for ballot in one.ballots]
        assert layouts == sorted(layouts)
        assert one.strongest == layouts[0]


def test_wrong_groupings_are_seen():
    cast = [Ballot(0, "A"), Ballot(1, "a"), Ballot(2, "B"), Ballot(3, None)]
    right = group(cast)
    first, second = right.groups
    assert faults(cast, right, Form()) == []
    assert faults(cast, Grouping((first,), right.missing), Form())
    assert faults(cast, Grouping((first, second, second), right.missing), Form())
    assert faults(cast, group(cast, len), Form()) == [
        "layouts 0 and 2", "layouts 1 and 2", "layouts 2 and 0", "layouts 2 and 1"
    ]  # fmt: skip
    assert faults(cast, group(cast, str), Form()) == ["layouts 0 and 1", "layouts 1 and 0"]
    assert "an answer counts as missing" in faults(cast, Grouping((first,), (cast[2], cast[3])), Form())


def test_an_answer_is_shown_as_most_wrote_it():
    assert group([Ballot(0, "paris"), Ballot(1, "Paris"), Ballot(2, "Paris")]).groups[0].answer == "Paris"
    assert group([Ballot(1, "Paris"), Ballot(0, "paris")]).groups[0].answer == "paris"


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_a_blank_answer_is_none(answer):
    assert Ballot(0, answer).missing
    assert not Ballot(0, "0").missing


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"layout": -1}, "numbered from 0"),
        ({"strength": 0.0}, "above 0"),
        ({"strength": math.inf}, "above 0"),
        ({"strength": math.nan}, "above 0"),
        ({"probability": -0.1}, "between 0 and 1"),
        ({"probability": 1.1}, "between 0 and 1"),
        ({"probability": math.nan}, "between 0 and 1"),
    ],
)
def test_wrong_ballots_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        Ballot(**{"layout": 3, "answer": "x"} | wrong)


def test_two_ballots_of_one_layout_are_refused():
    with pytest.raises(InputError, match="Two ballots have layout 1"):
        group([Ballot(1, "x"), Ballot(0, "y"), Ballot(1, None)])


@given(st.lists(st.floats(-50, 0), min_size=1, max_size=8))
def test_the_probability_of_an_answer_is_the_product_over_its_tokens(logprobs):
    expected = math.prod(math.exp(one) for one in logprobs)
    assert answer_probability(logprobs) == pytest.approx(expected, rel=1e-9)


def test_rounding_above_nothing_is_forgiven_and_no_more():
    assert answer_probability([5e-7]) == 1.0
    assert answer_probability([-math.inf, -1.0]) == 0.0
    with pytest.raises(InputError, match="at most 0"):
        answer_probability([-1.0, 0.5])
    with pytest.raises(InputError, match="at most 0"):
        answer_probability([math.nan])
    with pytest.raises(InputError, match="without tokens"):
        answer_probability([])
