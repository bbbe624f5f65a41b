"""Groups by meaning."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import Ballot, Grouping, group_by_embedding, group_by_judge

words = st.lists(st.sampled_from("abcdef") | st.none(), max_size=7)
pairs = st.sets(st.sampled_from(list(combinations("abcdef", 2))))


def cast_of(answers) -> list[Ballot]:
    return [Ballot(layout, answer) for layout, answer in enumerate(answers)]


def said(found: Grouping) -> set[frozenset[int]]:
    return {frozenset(ballot.layout for ballot in one.ballots) for one in found.groups}


def components(answers, alike) -> set[frozenset[int]]:
    """Layouts that hang together, by walking along pairs until nothing new is met."""
    whole = set()
    for start, answer in enumerate(answers):
        met, new = set(), {start} if answer else set()
        while new:
            met |= new
            new = {
                other
                for other, said in enumerate(answers)
                for one in met
                if said and (said == answers[one] or tuple(sorted((said, answers[one]))) in alike)
            } - met
        if met:
            whole.add(frozenset(met))
    return whole


@given(words, pairs)
def test_a_judge_joins_all_that_hangs_together(answers, alike):
    found = group_by_judge(cast_of(answers), lambda one, other: tuple(sorted((one, other))) in alike)
    assert said(found) == components(answers, alike)
    assert found.may_merge
    assert len(found.missing) == answers.count(None)
    assert [one.strongest for one in found.groups] == sorted(one.strongest for one in found.groups)


def test_components_differ_when_a_pair_is_forgotten():
    chain = {("a", "b"), ("b", "c")}
    assert components("abc", chain) == {frozenset({0, 1, 2})}
    assert components("abc", chain - {("b", "c")}) == {frozenset({0, 1}), frozenset({2})}


@given(words, pairs)
def test_a_judge_is_asked_once_a_pair_and_the_stronger_layout_stands_first(answers, alike):
    asked = []

    def same(one: str, other: str) -> bool:
        asked.append((one, other))
        return tuple(sorted((one, other))) in alike

    group_by_judge(cast_of(answers), same)
    assert len({frozenset(pair) for pair in asked}) == len(asked)
    assert all(answers.index(one) < answers.index(other) for one, other in asked)


def test_a_judge_is_not_asked_what_the_form_or_others_already_say():
    asked = []
    group_by_judge(cast_of(["A", "a", "b", "c"]), lambda *pair: not asked.append(pair))
    assert asked == [("A", "b"), ("A", "c")]


ANGLES = {"a": 0, "b": 20, "c": 40, "d": 90, "e": 180}


def embed(texts):
    turned = np.deg2rad([ANGLES[text] for text in texts])
    return 5 * np.stack([np.cos(turned), np.sin(turned)], axis=1)


@given(st.lists(st.sampled_from("abcde"), max_size=6), st.integers(1, 179))
def test_embeddings_are_joined_within_an_angle(answers, degrees):
    threshold = float(np.cos(np.deg2rad(degrees + 0.5)))
    alike = {
        (one, other) for one, other in combinations("abcde", 2) if ANGLES[other] - ANGLES[one] <= degrees
    }
    assert said(group_by_embedding(cast_of(answers), embed, threshold=threshold)) == components(
        answers, alike
    )


def test_nearness_is_passed_on():
    assert said(group_by_embedding(cast_of("ac"), embed)) == {frozenset({0}), frozenset({1})}
    assert said(group_by_embedding(cast_of("acb"), embed)) == {frozenset({0, 1, 2})}


def test_nothing_to_compare_asks_no_model():
    found = group_by_embedding(cast_of(["a", "A", None]), lambda texts: pytest.fail("it was asked"))
    assert said(found) == {frozenset({0, 1})}
    assert found.may_merge


def test_a_vector_of_zeros_is_near_nothing():
    found = group_by_embedding(cast_of("ab"), lambda texts: np.zeros((2, 3)), threshold=0.1)
    assert len(found.groups) == 2


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        (np.ones((3, 2)), "shape .3, 2. for 2 texts"),
        (np.ones(2), "shape .2,. for 2 texts"),
        ([[1.0, np.nan], [1.0, 0.0]], "not finite"),
    ],
)
def test_wrong_vectors_are_refused(vectors, says):
    with pytest.raises(InputError, match=says):
        group_by_embedding(cast_of("ab"), lambda texts: vectors)


@pytest.mark.parametrize("threshold", [-1, 1.01, float("nan")])
def test_wrong_thresholds_are_refused(threshold):
    with pytest.raises(InputError, match="cosine"):
        group_by_embedding(cast_of("ab"), embed, threshold=threshold)
