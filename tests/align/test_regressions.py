"""Contracts that once broke, each by the smallest prompt that showed it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from phaseguard import PassageSpan, align_prompt
from phaseguard.align import setting
from phaseguard.align.salience import find_answer_spans
from phaseguard.chat import load_renderer
from phaseguard.errors import EditError, InputError
from phaseguard.text import Span
from tests.align.helpers import PARAGRAPHS, profile

LLAMA3 = Path(__file__).parents[1] / "chat" / "templates" / "llama3.jinja"


def document(seed: int, code: str) -> str:
    before, after = random.Random(seed).sample(PARAGRAPHS, 2)
    return f"{before}\n\nThe code is {code}.\n\n{after}"


@pytest.mark.parametrize("budget", [None, 3])
@pytest.mark.parametrize("strong", range(4))
def test_a_later_system_message_leaves_earlier_messages_as_they_are(strong: int, budget: int | None) -> None:
    """V4 hoists it in front of them; its pads must not count for messages that came before it."""
    for seed in range(5):
        codes = [f"Kx-{seed}7{n}" for n in range(4)]
        roles = ("system", "user", "system", "user")
        messages = [{"role": r, "content": document(seed, c)} for r, c in zip(roles, codes, strict=True)]
        given: dict[str, Any] = {"strong": {strong}, "max_added_tokens": budget}
        whole = align_prompt(messages, key_passages=codes, **given)
        assert whole.report.verified
        for stop in (1, 2, 3):
            part = align_prompt(messages[:stop], key_passages=codes[:stop], **given)
            assert part.prompt == whole.prompt[:stop]


@pytest.fixture
def llama3(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that strips every message, without tokens that DeepSeek's vocabulary does not have."""
    renderer = load_renderer("jinja", template=LLAMA3)
    monkeypatch.setattr(setting, "load_renderer", lambda *a, **k: renderer)


@pytest.mark.usefixtures("llama3")
@pytest.mark.parametrize("strong", range(4))
def test_where_blanks_are_stripped_other_pads_open_a_message(strong: int) -> None:
    codes = [f"Kx-{n}77{n}" for n in range(20)]
    messages = [{"role": "user", "content": f"Code {code} here.\n\nWhat now?"} for code in codes]
    out = align_prompt(messages, key_passages=codes, profile=profile(chat="jinja"), strong={strong})
    assert out.report.verified
    assert {span.phase_after for p in out.report.passages for span in p.spans} == {strong}


@pytest.mark.usefixtures("llama3")
@pytest.mark.parametrize("strong", range(4))
def test_a_pad_at_a_stripped_edge_changes_no_earlier_message(strong: int) -> None:
    for seed in range(5):
        first = document(seed, "Kx-1") + "\n\n" + document(seed + 1, "Kx-2")
        messages = [{"role": "user", "content": first}, {"role": "user", "content": "Kx-3 is it\n\nWhich?"}]
        given: dict[str, Any] = {"profile": profile(chat="jinja"), "strong": {strong}}
        whole = align_prompt(messages, key_passages=["Kx-1", "Kx-2", "Kx-3"], **given)
        part = align_prompt(messages[:1], key_passages=["Kx-1", "Kx-2"], **given)
        assert part.prompt == whole.prompt[:1]


TEXT = "The door code is A-17.\n\nThe vault code is Kx-8417.\n\nWhich is the vault code?"


@pytest.mark.parametrize(
    "arguments",
    [
        {"pads": None},
        {"pads": 5},
        {"pads": {" \n", ". .\n\n"}},
        {"answer": 5},
        {"answer": object()},
        {"key_passages": [PassageSpan(0, 5.5)]},  # type: ignore[arg-type]
        {"key_passages": [PassageSpan(None, 5)]},  # type: ignore[arg-type]
        {"key_passages": [PassageSpan(0, 5, "x")]},  # type: ignore[arg-type]
        {"key_passages": [Span(0, 5.5)]},  # type: ignore[arg-type]
        {"profile": "llama-3", "strong": {1, "x"}},
    ],
)
def test_arguments_of_another_type_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        align_prompt(TEXT, **{"key_passages": ["Kx-8417"], "strong": {1}, **arguments})


def test_a_span_of_nothing_is_an_error_of_ours() -> None:
    with pytest.raises(EditError):
        Span(0, None)  # type: ignore[arg-type]


def test_phases_may_be_numpy_integers() -> None:
    out = align_prompt(TEXT, key_passages=["Kx-8417"], strong=set(np.arange(1, 2)))
    assert out.report.passages[0].spans[0].phase_after == 1
    assert json.dumps(out.report.to_dict())


class SdkMessage(BaseModel):
    """What an SDK returns as a message."""

    role: str
    content: str


def test_message_objects_come_back_as_such() -> None:
    prompt = [SdkMessage(role="user", content=TEXT + "  \n\n\n\nSay it.")]
    out = align_prompt(prompt, key_passages=["Kx-8417"], strong={1})
    assert out.report.normalize_edits
    assert out.restore() == prompt
    assert type(out.prompt[0]) is SdkMessage


@pytest.mark.parametrize(
    "unit", ["a", "a-", "a.", "a/", "a@b.", "7", "1 000 ", "x()", "C:\\a", "http://", "_"]
)
def test_answer_spans_of_a_long_run_take_linear_time(unit: str) -> None:
    """Time is told by the quadratic way taking minutes; nothing is measured."""
    text = unit * (300_000 // len(unit))
    assert find_answer_spans(text, Span(0, len(text)))


def test_sentences_of_a_long_line_take_linear_time() -> None:
    out = align_prompt("The code is here. " * 20_000, query="code", strong={1})
    assert [passage.text for passage in out.report.passages] == ["The code is here."] * 3


def test_between_two_quoted_words_stands_no_quotation():
    text = 'An "UnboundLocalError" is a subclass of "NameError" and "no such name" is its text.'
    found = [(a.span.of(text), a.kind) for a in find_answer_spans(text, Span(0, len(text)))]
    assert ("no such name", "quotation") in found
    assert not any("subclass" in span or span.strip() != span for span, _ in found), found
    assert {"UnboundLocalError", "NameError"} <= {span for span, _ in found}


@pytest.mark.parametrize(("budget", "isolate"), [(1, True), (2, True), (2, False)])
def test_a_pad_in_front_of_indented_text_counts_against_the_budget(budget: int, isolate: bool) -> None:
    text = "    return code\n\nThe code is K-1.\n\nHe said C-333 at once.\n"
    options = {"strong": [2], "max_added_tokens": budget, "isolate": isolate}
    out = align_prompt(text, key_passages=["K-1", "C-333"], **options)
    assert out.report.pads[0].offset == 0
    assert align_prompt(out.prompt, key_passages=["K-1", "C-333"], **options).prompt == out.prompt


@pytest.mark.parametrize("answer", ["A-17", "A-17 More text follows here.", "A-17\n\nMore text."])
@pytest.mark.parametrize("asked", ["Look it up.", "Look it up now.", "Look it up now now.", "Look."])
@pytest.mark.parametrize("options", [{}, {"isolate": True, "strong": [2, 3]}], ids=["auto", "both"])
def test_pads_that_cut_the_first_token_of_a_tool_result_isolate_it(
    answer: str, asked: str, options: dict[str, Any]
) -> None:
    """The encoding writes ``<tool_result>`` in front, and its ``>`` is one token with the answer's ``A``."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": asked},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": answer},
    ]
    out = align_prompt(messages, key_passages=["A-17"], **options)
    assert out.report.verified
    assert align_prompt(out.prompt, key_passages=["A-17"], **options).prompt == out.prompt
