"""The parts of align on their own: answer spans, questions, pads, prompts, and proofs that fail."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard import align_prompt, load_tokenizer
from phaseguard.align.evidence import evidence_for
from phaseguard.align.pads import custom_alphabet, pad_alphabet
from phaseguard.align.passages import nearest
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.retrieve import question_of
from phaseguard.align.salience import find_answer_spans
from phaseguard.chat import PlainRenderer, Rendered
from phaseguard.errors import RenderError
from phaseguard.text import Edit, OffsetMap, Span, apply_edits, invert_edits, make_edit
from tests.align.helpers import V4, V41, profile, with_strengths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The access code is PROVOCATIVE-8417.", ["PROVOCATIVE-8417"]),
        ("Invoice INV-2024/0093 of 1,250.00 is due.", ["INV-2024/0093", "1,250.00"]),
        ("It is due 2024-05-01 at 14:30.", ["2024-05-01", "14:30"]),
        ("See commit 3f2a9c1b77 in src/app/main.py.", ["3f2a9c1b77", "src/app/main.py"]),
        (
            "Mail jane.doe@example.com or https://a.example/x?y=1.",
            ["jane.doe@example.com", "https://a.example/x?y=1"],
        ),
        ("Set `max_retries` to 15.", ["max_retries", "15"]),
        ("uuid 550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("It costs $4.50, or 50% more than 1 000 €.", ["$4.50", "50%", "1 000"]),
        ('She said "never again" twice.', ["never again"]),
        ("合同编号是ABC-123，金额为３０万元。", ["ABC-123", "３０"]),
        ("密码是「さくら」です。", ["さくら"]),
        ("Open C:\\Users\\me\\a.txt now.", ["C:\\Users\\me\\a.txt"]),
        ("The host is 192.168.1.1:8080.", ["192.168.1.1:8080"]),
        ("They met Jane Smith of Contoso.", ["Jane Smith of Contoso"]),
        ("the supplier must indemnify the customer", ["supplier", "indemnify", "customer"]),
        ("so it is", ["so it is"]),
        ("x = -3", ["-3"]),
        ("at 2026-03-04T12:13:14.222Z it failed", ["2026-03-04T12:13:14.222Z"]),
        (
            "Write to “Legal Department, Hafenstraße 47, 20457 Hamburg” only.",
            ["Legal Department, Hafenstraße 47, 20457 Hamburg"],
        ),
        ("案号（2023）沪0115民初88213号。", ["（2023）沪0115民初88213号"]),
        ("Call +49 30 1234567 or (030) 12.", ["+49 30 1234567", "030", "12"]),
        ("Ask Dr. Smith, Ref. No. INV-2231-A.", ["Smith", "INV-2231-A"]),
        ('The id is "ABC-1".', ["ABC-1"]),
        ("Pay to DE89 3704 0044 0532 0130 00 now.", ["DE89 3704 0044 0532 0130 00"]),
        ("Код «Берёза-42» верен.", ["Берёза-42"]),
    ],
)
def test_answer_spans(text: str, expected: list[str]) -> None:
    found = find_answer_spans(text, Span(0, len(text)))
    assert [answer.span.of(text) for answer in found] == expected


@given(st.text(alphabet="aA1-_./:\"'`$% \n合é", max_size=40))
@settings(max_examples=300, deadline=None)
def test_answer_spans_are_disjoint_and_inside(text: str) -> None:
    found = find_answer_spans(text, Span(0, len(text)))
    assert all(0 <= a.span.start <= a.span.end <= len(text) for a in found)
    assert all(a.span.end <= b.span.start for a, b in pairwise(found))
    assert len(found) >= 1


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "The parties agree (Contract No. MSA-2024-00871-B) as follows. Payment is due.\n\n"
            "What is the contract number?",
            ["The parties agree (Contract No. MSA-2024-00871-B) as follows."],
        ),
        (
            "Some things are so. Ben's phone is +49 30 1234567. Anna likes tea. What is Ben's phone number?",
            ["Ben's phone is +49 30 1234567."],
        ),
        (
            "Phone: +49 30 1234567\nMail: a@b.example\n\nWhat is the phone number of Ben?",
            ["Phone: +49 30 1234567"],
        ),
        ("What is the code?\n\nThe code is A-1.\n\nQuestion: What is the code?", ["The code is A-1."]),
        ("Tea is nice.\n\nWhat is the phone number of Ben?", []),
    ],
)
def test_passages_for_a_question(prompt: str, expected: list[str]) -> None:
    out = align_prompt(prompt, strong={1})
    assert [passage.text for passage in out.report.passages] == expected
    assert all("question" in passage.why for passage in out.report.passages)


@pytest.mark.parametrize("strong", range(4))
@pytest.mark.parametrize(
    "prompt",
    [
        'Answer from the documents.\n\n<documents>\n<document index="1">\nFirst.\n\nSecond.\n\n'
        "The key is X-1.\n</document>\n</documents>\n\nWhich key?",
        "<context>\nThe key is X-1.\n</context>\n\nWhich key?",
        'Here is the record:\n\n{"b": "X-1"}\n\nWhat is b?',
        "Analyse this log.\n\n2024-01-01 00:00:01 INFO start\n2024-01-01 00:00:02 ERROR X-1 failed\n\n"
        "Which key?",
        "| a | b |\n|---|---|\n| 1 | X-1 |\n\nWhich?",
        "```\nX-1\n```\n\nWhich?",
        "- X-1\n- b\n\nWhich?",
    ],
)
def test_a_message_that_opens_with_a_zone_takes_a_pad_in_front(prompt: str, strong: int) -> None:
    out = align_prompt(prompt, key_passages=["X-1"], strong={strong})
    assert out.report.verified
    assert out.report.passages[0].spans[0].phase_after == strong
    assert prompt.split("\n\n", 1)[1] in out.prompt
    assert align_prompt(out.prompt, key_passages=["X-1"], strong={strong}).prompt == out.prompt


@pytest.mark.parametrize(
    "first", ["---\ntitle: a\n---\n", "#!/bin/sh\n", "<?xml version='1.0'?>\n", "\ufeff"]
)
def test_what_must_be_first_stays_first(first: str) -> None:
    for strong in range(4):
        out = align_prompt(first + "X-1 = 5", key_passages=["X-1"], strong={strong}, level="off")
        assert out.prompt.startswith(first)


def test_the_question_of_a_message() -> None:
    material = "Some material. " * 100
    for text, expected in (
        ("What is it?", "What is it?"),
        (f"{material}\n\nWhat is it?", "What is it?"),
        (f"What is it?\n\n{material}", "What is it?"),
        (f"{material}\n\nQuestion: name it", "Question: name it"),
        (f"{material}\n\nname it", "name it"),
        ("Name it\n\nand say why", "Name it\n\nand say why"),
        (material, ""),
    ):
        assert question_of(text).of(text) == expected


@pytest.mark.parametrize("name", ["deepseek-v4", "cl100k_base", "o200k_base"])
@pytest.mark.parametrize("kind", ["invisible", "visible"])
def test_every_tokenizer_has_pads_of_every_length(name: str, kind: str) -> None:
    tokenizer = load_tokenizer(name)
    alphabet = pad_alphabet(tokenizer, 7, kind)
    wanted = range(1, 8) if kind == "visible" else range(1, 4)
    assert set(wanted) <= set(alphabet.by_tokens)
    for tokens, pads in alphabet.by_tokens.items():
        for pad in pads:
            added = len(tokenizer.encode(f"end.\n\n{pad.text}Next")) - len(tokenizer.encode("end.\n\nNext"))
            assert added == tokens == pad.tokens
            assert pad.text.isspace() == (kind == "invisible")


def test_spaces_alone_cannot_steer() -> None:
    with pytest.raises(Exception, match="adds 1 to 3 tokens"):
        custom_alphabet(load_tokenizer("deepseek-v4"), ["\n"], 3)


def test_prompts_of_three_kinds_are_read_and_written() -> None:
    class SdkMessage:
        def model_dump(self, **_: Any) -> dict[str, Any]:
            return {"role": "assistant", "content": "Yes."}

    sdk = SdkMessage()
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, "b", {"type": "image_url"}]}, sdk]
    prompt = Prompt.read(messages)
    assert [(f.key, f.text, f.editable) for f in prompt.fields] == [
        (FieldKey(0, 0), "a", True),
        (FieldKey(0, 1), "b", True),
        (FieldKey(1), "Yes.", False),
    ]
    changed = prompt.with_texts({FieldKey(0, 0): "A"})
    assert changed[0]["content"] == [{"type": "text", "text": "A"}, "b", {"type": "image_url"}]
    assert changed[1] is sdk


def test_nearest_text_prefers_shared_words() -> None:
    assert "beta gamma" in nearest("beta gamma delta", ["alpha\nbeta gamma\nzeta"])
    assert nearest("x", [""]) == ""
    assert "1,386,420" in nearest(
        "判决被告支付原告人民币1386420元", ["原告起诉。\n判决被告支付原告人民币1,386,420元。"]
    )


def test_evidence_tells_what_is_known() -> None:
    assert evidence_for(V4).provenance.kind == "none"
    assert evidence_for(V41).provenance.kind == "reported"
    assert evidence_for(V41.with_strong([0])).provenance.kind == "stated"
    known = evidence_for(with_strengths(4, {"1": [0.2, 0.9, 0.5, 0.85]}))
    assert known.is_strong(1, 1) is True
    assert known.is_strong(1, 3) is True, "the intervals do not tell it from the best"
    assert known.is_strong(1, 0) is False
    assert known.values(1, 1.0)[1] > known.values(1, 1.0)[3] > known.values(1, 1.0)[0]
    assert known.strength(9, 2) == 0.5


edits_of = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.text("xy", max_size=3)), max_size=5)


@given(st.text("abc", max_size=25), edits_of)
@settings(max_examples=300, deadline=None)
def test_edits_undo_and_offsets_agree(text: str, steps: list[tuple[int, int, str]]) -> None:
    edits: list[Edit] = []
    at = 0
    for gap, length, replacement in steps:
        start = at + gap + (1 if edits else 0)
        if start + length > len(text):
            break
        edits.append(make_edit(text, start, start + length, replacement, "test"))
        at = start + length
    changed = apply_edits(text, edits)
    assert apply_edits(changed, invert_edits(edits)) == text
    offsets = OffsetMap(edits)
    covered = {i for edit in edits for i in range(edit.start, edit.end)}
    for i, character in enumerate(text):
        if i not in covered:
            assert changed[offsets.forward(i)] == character
            assert offsets.backward(offsets.forward(i)) == i


class _Fickle:
    """A renderer that adds a word whenever it sees a pad: what is sent is not what was planned."""

    name = "fickle"

    def render(self, messages: Any, options: Any) -> Rendered:
        rendered = PlainRenderer().render(messages, options)
        if (
            " \n" in rendered.text
            or "\t\n" in rendered.text
            or ". ." in rendered.text
            or "\n.\n" in rendered.text
        ):
            return dataclasses.replace(rendered, text="so " + rendered.text)
        return rendered


class _Miscounting:
    """A tokenizer whose quick count is one token off for one kind of pad."""

    def __init__(self, wrong: str) -> None:
        self._real, self._wrong = load_tokenizer("deepseek-v4"), wrong
        self.name, self.digest, self.reader = "miscounting", "0" * 16 + wrong, "tokenizers"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def encode_ids(self, texts: Any) -> Any:
        found = self._real.encode_ids(texts)
        return [
            np.insert(ids, len(ids) // 2, 5).astype(np.uint32) if self._wrong in text else ids
            for ids, text in zip(found, texts, strict=True)
        ]


TEXT = "First things first.\n\nThe code is A-17.\n\nSecond things.\n\nThe other is B-18.\n\nWhich?"


def test_a_failed_proof_returns_the_normalized_prompt_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from phaseguard.align import setting

    monkeypatch.setattr(setting, "load_renderer", lambda *a, **k: _Fickle())
    for strong in range(4):
        out = align_prompt(TEXT + "  ", key_passages=["A-17"], profile=profile(chat="plain"), strong={strong})
        aligned = out.report.passages[0].spans[0].phase_after == strong
        assert out.prompt == TEXT + "  " or out.prompt == TEXT
        assert out.report.pads == ()
        if not aligned:
            assert not out.report.verified
            assert "did not encode as planned" in out.report.warnings[0]
        assert out.restore() == TEXT + "  "


@pytest.mark.parametrize("strong", range(4))
@pytest.mark.parametrize("wrong", ["\n \n", "\n\n \n", "\t \n"])
def test_a_pad_that_does_something_else_is_repaired(
    strong: int, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from phaseguard.align import setting

    monkeypatch.setattr(setting, "load_tokenizer", lambda *a, **k: _Miscounting(wrong))
    out = align_prompt(TEXT, key_passages=["A-17", "B-18"], strong={strong})
    assert out.report.verified
    assert [span.phase_after for p in out.report.passages for span in p.spans] == [strong, strong]


def test_chat_and_tokenizer_must_belong_together() -> None:
    with pytest.raises(RenderError, match="belong together"):
        align_prompt(TEXT, key_passages=["A-17"], profile=profile("cl100k_base"), strong={1})
