"""Repeating a passage: to the letter, in front of the question, inside the raw window, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaseguard import align_prompt
from phaseguard.errors import InputError
from tests.align.helpers import PARAGRAPHS, V4, decoded_at, official_ids, profile
from tests.align.test_contracts import conversations, documents, keys_in

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEY = "Unit 7 opens with PROVOCATIVE-8417."
OTHER = "Unit 9 opens with ALPHA-90210."
ASKED = "What opens unit 7?"
RAG = "\n\n".join([PARAGRAPHS[1], KEY, *PARAGRAPHS[2:6], OTHER, *PARAGRAPHS[6:12], ASKED])


def outcomes(out: Any) -> dict[str, str]:
    return {repetition.text: repetition.outcome for repetition in out.report.repeated}


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize("strong", [None, {1}])
def test_a_passage_is_repeated_to_the_letter_in_front_of_the_question(
    strong: set[int] | None, isolate: bool
) -> None:
    given: dict[str, Any] = {"key_passages": [KEY], "strong": strong, "isolate": isolate, "repeat": True}
    out = align_prompt(RAG, **given)
    assert out.prompt.endswith(f"\n\n{KEY}\n\n{ASKED}")
    assert outcomes(out) == {KEY: "repeated"}
    assert (out.report.repeated[0].message, out.report.repeated[0].block) == (0, None)
    assert out.report.verified
    assert out.restore() == RAG
    report = out.report
    assert report.tokens_after == report.tokens_normalized + report.tokens_repeated + report.tokens_added
    ids = official_ids(out.prompt)
    assert len(ids) == report.tokens_after
    assert KEY in decoded_at(ids, len(ids) - V4.window, V4.window)
    assert KEY not in decoded_at(official_ids(RAG), report.tokens_before - V4.window, V4.window)
    assert len(report.passages) == 1, "the copy is read raw and needs no phase"
    again = align_prompt(out.prompt, **given)
    assert again.prompt == out.prompt
    assert outcomes(again) == {KEY: "in-window"}
    assert again.report.tokens_repeated == 0


def test_visible_pads_right_in_front_of_the_question_hide_no_copy() -> None:
    asked = "Which is the safe code? Answer K-8417 or B-12."
    given: dict[str, Any] = {"key_passages": [KEY, asked], "pads": "visible", "repeat": True}
    behind_pads = 0
    for words in range(4):
        text = "\n\n".join([PARAGRAPHS[1], KEY, *PARAGRAPHS[2:11], "Aside" + " so" * words, asked])
        out = align_prompt(text, strong={3}, **given)
        behind_pads += out.prompt.rsplit(KEY, 1)[1] != f"\n\n{asked}"
        assert align_prompt(out.prompt, strong={3}, **given).prompt == out.prompt
    assert behind_pads >= 2


def test_nothing_is_repeated_unless_asked_for() -> None:
    out = align_prompt(RAG, key_passages=[KEY])
    assert (out.report.repeated, out.report.tokens_repeated) == ((), 0)
    assert out.prompt.count(KEY) == 1


def test_what_the_window_holds_already_is_not_repeated() -> None:
    text = "\n\n".join([*PARAGRAPHS[1:6], KEY, ASKED])
    out = align_prompt(text, key_passages=[KEY], repeat=True, isolate=False)
    assert out.prompt == text
    assert outcomes(out) == {KEY: "in-window"}


@pytest.mark.parametrize("window", [5, 26])
def test_a_named_passage_that_does_not_fit_is_refused(window: int) -> None:
    with pytest.raises(InputError, match=f"'Unit 7 opens.*does not fit .*last {window} tokens.* of 2 key"):
        align_prompt(RAG, key_passages=[KEY, OTHER], repeat=True, profile=V4.with_(window=window))
    alone = align_prompt(RAG, key_passages=[OTHER], repeat=True, profile=V4.with_(window=26))
    assert outcomes(alone) == {OTHER: "repeated"}


def test_found_passages_that_do_not_fit_are_left_out_and_the_last_ones_stay() -> None:
    narrow = V4.with_(window=26)
    question = "What opens unit 7 and unit 9?"
    out = align_prompt(RAG, query=question, repeat=True, profile=narrow)
    assert outcomes(out) == {KEY: "does-not-fit", OTHER: "repeated"}
    assert out.prompt.endswith(f"\n\n{OTHER}\n\n{ASKED}")
    assert out.prompt.count(KEY) == 1
    assert any("not repeated" in note for note in out.report.notes)
    tiny = align_prompt(RAG, query=question, repeat=True, profile=V4.with_(window=5))
    assert set(outcomes(tiny).values()) == {"does-not-fit"}
    assert tiny.prompt.count(KEY) == tiny.prompt.count(OTHER) == 1
    assert tiny.restore() == RAG


def test_a_copy_that_has_no_place_alone_may_have_one_in_front_of_another() -> None:
    result = '{"text": "Unit 7 opens with ALPHA-5.\\n\\n"}'
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Look for unit 7."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
        {"role": "user", "content": "\n\n".join([KEY, *PARAGRAPHS[2:9], ASKED])},
    ]
    out = align_prompt(messages, key_passages=[result, KEY], repeat=True)
    assert set(outcomes(out).values()) == {"repeated"}
    assert align_prompt(out.prompt, key_passages=[result, KEY], repeat=True).prompt == out.prompt


def test_messages_are_repeated_in_the_last_user_message_alone() -> None:
    messages = [
        {"role": "system", "content": RAG.removesuffix(ASKED)},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
    ]
    out = align_prompt(messages, key_passages=[KEY], repeat=True)
    assert out.prompt[3]["content"] == [{"type": "text", "text": f"{KEY}\n\n{ASKED}"}]
    assert out.prompt[1:3] == messages[1:3]
    assert (out.report.repeated[0].message, out.report.repeated[0].block) == (3, 0)
    assert out.restore() == messages
    assert align_prompt(out.prompt, key_passages=[KEY], repeat=True).prompt == out.prompt
    frozen = align_prompt(messages, key_passages=[KEY], repeat=True, frozen=4)
    assert outcomes(frozen) == {KEY: "no-place"}
    assert frozen.prompt == messages


def test_a_copy_never_splits_code() -> None:
    code = "```python\nx = 1\n\n\ny = 2\n```"
    text = "\n\n".join([KEY, *PARAGRAPHS[1:9], "Please say what this does:", code])
    out = align_prompt(text, key_passages=[KEY], repeat=True, isolate=False)
    assert code in out.prompt
    assert out.restore() == text
    assert align_prompt(out.prompt, key_passages=[KEY], repeat=True, isolate=False).prompt == out.prompt


def test_passages_found_by_the_question_are_repeated_once() -> None:
    out = align_prompt(RAG, repeat=True)
    found = [passage.text for passage in out.report.passages]
    assert KEY in found
    assert outcomes(out)[KEY] == "repeated"
    again = align_prompt(out.prompt, repeat=True)
    assert again.prompt == out.prompt
    assert [passage.text for passage in again.report.passages] == found


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"repeat": "yes"}, "True or False"),
        ({"profile": "llama-3"}, "raw window"),
        ({"profile": profile()}, "raw window"),
    ],
)
def test_what_cannot_be_repeated_is_refused(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        align_prompt(RAG, key_passages=[KEY], **{"repeat": True, **arguments})


@given(
    documents(),
    documents(),
    st.sampled_from([5, 40, 128]),
    st.sampled_from(["off", "safe", "full"]),
    st.sampled_from(["auto", "visible"]),
    st.booleans(),
    st.sampled_from([None, {3}]),
)
@SETTINGS
def test_documents_with_copies_are_proven_undone_and_stable(
    text: str, more: str, window: int, level: str, pads: str, by_query: bool, strong: Any
) -> None:
    text = f"{text}{more}What is the access code of unit 7?"
    keys = keys_in(text)
    if not keys:
        return
    options: dict[str, Any] = {"profile": V4.with_(window=window), "level": level, "pads": pads}
    options |= {"key_passages": None if by_query else keys, "strong": strong, "repeat": True}
    try:
        out = align_prompt(text, **options)
    except InputError:
        assert not by_query, "what the question finds is left out"
        return
    assert out.report.verified
    assert out.restore() == text
    ids = official_ids(out.prompt)
    assert len(ids) == out.report.tokens_after
    for passage, outcome in outcomes(out).items():
        if outcome == "repeated":
            assert passage in decoded_at(ids, len(ids) - window, window)
    again = align_prompt(out.prompt, **options)
    assert again.prompt == out.prompt
    assert "repeated" not in outcomes(again).values()


@given(conversations(), st.booleans())
@SETTINGS
def test_earlier_messages_take_no_copy(messages: list[dict[str, Any]], by_query: bool) -> None:
    keys = None if by_query else keys_in(messages[:1] + [m for m in messages if m["role"] == "user"][:1])
    if keys == []:
        return
    plain = align_prompt(messages, key_passages=keys)
    try:
        out = align_prompt(messages, key_passages=keys, repeat=True)
    except InputError:
        assert not by_query, "what the question finds is left out"
        return
    assert out.report.verified
    assert out.restore() == messages
    assert out.prompt[:-1] == plain.prompt[:-1]
    assert align_prompt(out.prompt, key_passages=keys, repeat=True).prompt == out.prompt


def test_the_readme_example_holds() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = readme.split("**Repeating**")[1]
    code = section.split("```python\n")[1].split("```")[0]
    assert "repeat=True" in code
    exec(code, {"align_prompt": align_prompt})
