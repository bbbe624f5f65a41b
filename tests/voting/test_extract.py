"""How answers are taken out of longer text."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import extract

PRESETS = ["answer-is", "boxed", "hashes", "last-line", "fence", "json", "whole"]

EXTRACTED = [
    ("answer-is", "The answer is Paris. It lies on the Seine.", "Paris"),
    ("answer-is", "The answer is 5. No: the answer is 3.14.", "3.14"),
    ("answer-is", "The answer is St. Louis.", "St. Louis"),
    ("answer-is", "**Answer:** B\nBecause of A.", "B"),
    ("answer-is", "**Final Answer**: X", "X"),
    ("answer-is", "Answer:\n\n42\n", "42"),
    ("answer-is", "The answer to the question is:\n7", "7"),
    ("answer-is", "The answer is **42**.", "**42**"),
    ("answer-is", "The answer is B. Because of A.", "B"),
    ("answer-is", "My answer depends.", None),
    ("answer-is", "<think>The answer is 5.</think> I do not know", None),
    ("answer-is", "<think>The answer is 5.</think> The answer is 6.", "6"),
    ("boxed", r"a \boxed{1} b \boxed{\frac{1}{2}} c", r"\frac{1}{2}"),
    ("boxed", r"\fbox{ x }", "x"),
    ("boxed", r"\boxed{\{1\}}", r"\{1\}"),
    ("boxed", r"\boxed{1", None),
    ("boxed", "1", None),
    ("hashes", "6 x 7 = 42\n#### 1,000 \n", "1,000"),
    ("hashes", "a #### b", None),
    pytest.param("hashes", "\n" * 100_000 + "#### 7" + " " * 100_000, "7", id="hashes among many blanks"),
    ("last-line", "a\n\nb\n \n", "b"),
    ("last-line", " \n", None),
    ("fence", "x\n```py\na\nb\n```\nand ```c```", "a\nb"),
    ("fence", "```\n```", None),
    ("fence", "no", None),
    ("fence", "1. So:\n   ```\n   a\n   ```\n", "a"),
    ("fence", "```\r\na\r\n```\r\n", "a"),
    ("fence", "```\na\n```\n~~~\nb", "a"),
    ("fence", "````\n```\na\n```\n````", "```\na\n```"),
    ("fence", "```a\n" * 20_000, None),
    ("json", 'Here: {"a": [1]} ok [2] {bad', "[2]"),
    ("json", '```json\n{"a": 1}\n```\n{"b": 2}', '{"a": 1}'),
    ("json", 'Some {set} and {"a": "}"}.', '{"a": "}"}'),
    ("json", "{" * 3000, None),
    ("whole", "<think>x {1}</think>\nParis", "Paris"),
    (["boxed", "answer-is", "last-line"], "So.\nThe answer is 3.\nBye", "3"),
    (["boxed", "last-line"], "So.\nBye", "Bye"),
    ([], "x", None),
    (re.compile(r"code (?P<x>\w)(?P<answer>\d+)"), "code a1, code b23", "23"),
    (re.compile(r"code (\d+)"), "code 1, code 23", "23"),
    (re.compile(r"\d+"), "1 2 3", "3"),
    (re.compile(r"\d+|(x)"), "x 3", None),
    (re.compile("x"), "y", None),
    (str.upper, "x", "X"),
    (lambda text: None, "x", None),
]


@pytest.mark.parametrize(("how", "text", "answer"), EXTRACTED)
def test_answers_are_extracted(how, text, answer):
    assert extract(text, how) == answer


def test_unknown_presets_are_refused():
    with pytest.raises(InputError, match=r"Did you mean 'boxed'.*re\.compile"):
        extract("x", "boxd")
    with pytest.raises(InputError, match="None finds no answer"):
        extract("x", ["boxed", None])


@pytest.mark.parametrize("how", PRESETS)
@given(text=st.text(st.sampled_from('ab \n{}[]"\\`~#:.,12') | st.characters(), max_size=60))
def test_an_answer_is_part_of_the_text_without_blanks_around(how, text):
    answer = extract(text, how)
    if answer is not None:
        assert answer == answer.strip() != ""
        if how != "fence":  # a fence in a list loses its indentation
            assert answer in text


@given(
    st.sampled_from(["Paris", "3.14", "a, b and c", "x = {1}"]),
    st.sampled_from(
        [
            ("answer-is", "Well. The answer is {}."),
            ("answer-is", "**Answer:** {}\nDone."),
            ("boxed", "So \\boxed{{{}}} it is"),
            ("hashes", "Well\n#### {}\n"),
            ("last-line", "Well\n{}\n"),
            ("fence", "Well\n```\n{}\n```"),
            ("whole", "{}"),
        ]
    ),
    st.sampled_from(["", "The answer is 1. ", "#### 2\n", "```\n3\n```\n", "<think>no</think>"]),
)
def test_what_stands_before_does_not_change_the_last_answer(answer, preset, before):
    how, frame = preset
    if how == "whole" and before != "<think>no</think>":
        before = ""
    assert extract(before + frame.format(answer), how) == answer


@given(
    st.dictionaries(
        st.text(max_size=4), st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=3)
    )
)
def test_json_is_found_between_words(value):
    assert json.loads(extract(f"It is {json.dumps(value)} so", "json")) == value


def test_a_function_may_raise_its_own_error():
    with pytest.raises(ZeroDivisionError):
        extract("x", lambda text: str(1 / 0))
