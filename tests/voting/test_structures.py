"""Tool calls as answers: the same calls are one answer, other calls are another."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.voting import Ballot, Form, calls_text, group

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
arguments = st.dictionaries(
    st.text(max_size=3),
    scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=2), scalars),
)
calls = st.lists(st.tuples(st.text(max_size=4), arguments), max_size=3)


@given(calls, st.randoms())
def test_key_order_spacing_and_a_mapping_or_its_text_make_no_difference(value: Any, random: Any) -> None:
    written = []
    for name, given_arguments in value:
        keys = list(given_arguments)
        random.shuffle(keys)
        shuffled = {key: given_arguments[key] for key in keys}
        written.append((name, json.dumps(shuffled, indent=random.choice([None, 2]))))
    text = calls_text(value)
    assert calls_text(written) == text
    assert json.loads(text) == [[name, given_arguments] for name, given_arguments in value]


@given(calls, calls)
def test_other_calls_are_another_answer(one: Any, other: Any) -> None:
    same = calls_text(one) == calls_text(other)
    assert same == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", {}),
        (" \n", {}),
        ('{"a": 1', '{"a": 1'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ("SELECT 1", "SELECT 1"),
        ("17", "17"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_what_is_no_object_stays_the_text_that_it_is(text: str, kept: Any) -> None:
    assert json.loads(calls_text([("f", text)])) == [["f", kept]]


def grouped(answers: list[str], form: Form | None = None) -> list[int]:
    ballots = [Ballot(number, answer) for number, answer in enumerate(answers)]
    return [len(one.ballots) for one in group(ballots, form or Form()).groups]


def test_ballots_group_tool_calls_by_value() -> None:
    same = [
        calls_text([("set", '{"row": 1.0, "code": "A"}')]),
        calls_text([("set", {"code": "A", "row": 1})]),
    ]
    assert grouped([*same, calls_text([("set", {"code": "a", "row": 1})]), calls_text([("set", "")])]) == [
        2,
        1,
        1,
    ]


def test_calls_in_another_order_are_the_same_only_when_asked() -> None:
    both = [("f", {"x": 1}), ("g", {"y": [1, 2]})]
    answers = [calls_text(both), calls_text(both[::-1])]
    assert grouped(answers) == [1, 1]
    assert grouped(answers, Form("set")) == [2]
    assert grouped([calls_text(both), calls_text(both[:1])], Form("set")) == [1, 1]
