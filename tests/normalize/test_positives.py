"""A normalizer that does nothing would pass every negative: decoration put into real prose must go."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from normalize_mixtures import PADS, render

from phaseguard.normalize import BlockMap, normalize
from phaseguard.normalize.prose import Kind

BLANKS = [" ", "\t", "   \t"]


def prose_of(topics: dict[str, str]) -> list[str]:
    """Documents of at least three paragraphs each, made of the prose paragraphs of the topics."""
    documents = []
    for topic in topics.values():
        paragraphs = [p for p in topic.split("\n\n") if p[:1].isalpha() and len(p) > 120 and "\n   " not in p]
        if len(paragraphs) >= 3:
            documents.append("\n\n".join(p.strip("\n") for p in paragraphs) + "\n")
    return documents


def test_most_prose_of_real_documents_is_open(prose: dict[str, str]) -> None:
    documents = prose_of(prose)
    assert len(documents) > 30
    found = sum(len(list(BlockMap(d).breaks(0, len(d)))) for d in documents)
    possible = sum(d.count("\n\n") for d in documents)
    assert found >= 0.9 * possible


def test_injected_blanks_and_blank_lines_are_removed(prose: dict[str, str]) -> None:
    rng = random.Random(2)
    removed = injected = 0
    for clean in map(_settled, prose_of(prose)):
        dirty = []
        for line in clean.split("\n"):
            hit = bool(line) and rng.random() < 0.3
            dirty.append(line + rng.choice(BLANKS[:1]) * hit)
            injected += hit
        gaps = "\n".join(dirty).split("\n\n")
        text = gaps[0]
        for gap in gaps[1:]:
            hit = rng.random() < 0.5
            text += ("\n\n\n" + rng.choice(["", " ", "\t"]) + "\n" if hit else "\n\n") + gap
            injected += hit
        out = normalize(text)
        removed += len(out.edits)
        assert out.restore() == text
    assert removed >= 0.9 * injected


def _settled(text: str) -> str:
    return normalize(text).text


def test_carriage_returns_leave_prose(prose: dict[str, str]) -> None:
    before = after = 0
    for clean in map(_settled, prose_of(prose)):
        out = normalize(clean.replace("\n", "\r\n")).text
        before += clean.count("\n")
        after += out.count("\r")
        assert out.replace("\r\n", "\n") == clean
    assert after <= 0.1 * before


def test_rules_between_paragraphs_get_one_length(prose: dict[str, str]) -> None:
    same = total = 0
    for document in map(_settled, prose_of(prose)):
        paragraphs = document.rstrip("\n").split("\n\n")
        outs = {
            normalize(("\n\n" + joint + "\n\n").join(paragraphs)).text
            for joint in ("=" * 7, "=" * 40, "=" * 79)
        }
        total += 1
        same += len(outs) == 1
    assert same >= 0.7 * total


def test_zero_width_noise_is_removed_from_words(prose: dict[str, str]) -> None:
    kept = total = 0
    for clean in map(_settled, prose_of(prose)):
        noisy = clean.replace("the", "th\u200be").replace(" and ", " a\ufeffnd ")
        out = normalize(noisy).text
        total += noisy.count("\u200b") + noisy.count("\ufeff")
        kept += out.count("\u200b") + out.count("\ufeff")
    assert kept <= 0.1 * total


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  \n\n\nHello there.\n", "Hello there.\n"),
        ("Hello there.\n\n\n\n", "Hello there.\n\n"),
        ("Hello there.\n   ", "Hello there.\n"),
        ("Hello there.  ", "Hello there."),
        ("# Title  \n\n\n\nBody here.\n", "# Title\n\nBody here.\n"),
        ("- one \n- two  \n- three\n", "- one\n- two\n- three\n"),
        ("Look:\n\n\n\n```\na\n\n\nb\n```\n\n\n\nDone.\n", "Look:\n\n```\na\n\n\nb\n```\n\nDone.\n"),
        ("One.\n \t \nTwo.\n", "One.\n\nTwo.\n"),
        ("One.\r\n\r\n\r\nTwo.\r\n", "One.\n\nTwo.\n"),
    ],
)
def test_small_texts(text: str, expected: str) -> None:
    assert normalize(text).text == expected


def test_reasons_are_the_rules_names() -> None:
    text = "Ab\u200bc d. \n\n\n\nEf g.\r\n\r\nHi j.\n\n==========\n\nKl m.\n"
    assert {edit.reason for edit in normalize(text).edits} == {
        "zero-width", "trailing-blanks", "surplus-blank-lines", "line-endings", "lone-rule",
    }  # fmt: skip


def test_prose_blocks_stay_prose_when_decorated(prose: dict[str, str]) -> None:
    for document in map(_settled, prose_of(prose)):
        wide = document.replace("\n\n", "\n \t\n\n")
        one, two = BlockMap(document), BlockMap(wide)
        kinds = [[s.kind for s in m.segments(n)] for m in (one, two) for n in range(m.count)]
        assert kinds[: one.count] == kinds[one.count :]
        assert all(a.end < b.start for a, b in pairwise(one.breaks(0, len(document))))
        assert Kind.PROSE in {kind for kinds_ in kinds for kind in kinds_}


def test_pads_at_breaks_of_real_documents_are_removed(prose: dict[str, str]) -> None:
    rng = random.Random(4)
    tried = 0
    for topic in map(_settled, rng.sample(sorted(prose.values()), 60)):
        for found in rng.sample(breaks := list(BlockMap(topic).breaks(0, len(topic))), min(3, len(breaks))):
            padded = topic[: found.end] + rng.choice(PADS) + topic[found.end :]
            assert normalize(padded).text == topic
            assert render(padded) == render(topic)
            tried += 1
    assert tried > 60
