"""The block map: what it protects, and that the order of the questions does not matter."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from normalize_mixtures import mixtures

from phaseguard.normalize import BlockMap
from phaseguard.normalize.prose import Kind, classify

thorough = settings(max_examples=100, deadline=None)


def kinds(blocks: BlockMap, order: list[int]) -> dict[int, list[Kind]]:
    return {number: [segment.kind for segment in blocks.segments(number)] for number in order}


@thorough
@given(mixtures(), st.randoms(use_true_random=False))
def test_blocks_are_judged_alike_in_any_order(text: str, rng: random.Random) -> None:
    blocks = BlockMap(text)
    forward = list(range(blocks.count))
    shuffled = rng.sample(forward, len(forward))
    assert kinds(BlockMap(text), forward) == kinds(BlockMap(text), shuffled) == kinds(blocks, forward[::-1])


@thorough
@given(mixtures())
def test_segments_lie_in_their_blocks_in_order(text: str) -> None:
    blocks = BlockMap(text)
    end = 0
    for number in range(blocks.count):
        for segment in blocks.segments(number):
            assert end <= segment.start <= segment.end <= len(text)
            end = segment.end
    assert not text[: blocks.lead].strip("\ufeff \t\r\n")


@thorough
@given(mixtures())
def test_open_gaps_are_not_protected_and_closed_ones_are(text: str) -> None:
    blocks = BlockMap(text)
    opened = {b.start for b in blocks.breaks(0, len(text))}
    for number in range(blocks.count - 1):
        gap = blocks.gap(number)
        assert blocks.protected(gap.start, gap.end) == (gap.start not in opened)


def test_long_lists_are_read_alike_from_every_place() -> None:
    text = "".join(f"- point {n}\n\n  more about point {n}\n\n      code {n}\n\n" for n in range(300))
    whole = BlockMap(text)
    expected = kinds(whole, list(range(whole.count)))
    for number in (0, 1, 450, 451, 899):
        assert BlockMap(text).segments(number)[0].kind is expected[number][0]
    assert expected[451] == [Kind.PROSE] or expected[452] == [Kind.PROSE]


@pytest.mark.parametrize("text", ["", " ", "\n", "\n\n", " \n \n", "\ufeff", "\r\n", "\r", "\t", "a"])
def test_tiny_texts(text: str) -> None:
    blocks = BlockMap(text)
    assert list(blocks.breaks(0, len(text))) == []
    assert blocks.protected(0, len(text)) in (True, False)
    assert blocks.opening == (text == "a")


def test_a_range_without_breaks_is_empty() -> None:
    blocks = BlockMap("One.\n\nTwo.\n\nThree.\n")
    assert [b.start for b in blocks.breaks(5, 99)] == [10]
    assert list(blocks.breaks(11, 99)) == []
    assert list(blocks.breaks(0, 5)) == []


@pytest.mark.parametrize(
    "text",
    [
        "You are an expert.\n",
        "# Report\n\nText.\n",
        "- one\n- two\n",
        "[1] A passage.\n",
        "**Note:** read.\n",
    ],
)
def test_texts_that_open_with_prose(text: str) -> None:
    assert BlockMap(text).opening


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: a\n---\n",
        "import os\n",
        "    code\n",
        "```\na\n```\n",
        "{}\n",
        "| a |\n|---|\n",
        "# a\n\nx = 1\n",
    ],
)
def test_texts_that_open_with_a_zone(text: str) -> None:
    assert not BlockMap(text).opening


BLOCKS = {
    Kind.PROSE: [
        "The supplier must pay within 30 days.",
        "Question: who wrote it?\nAnswer:",
        "System: You are an expert.\nUser: Who are you?",
        "# Heading",
        "Delivery\n========",
        "- one\n- two\n  - three",
        "1. one\n2. two",
        "[1] The code is PROVOCATIVE-8417.",
        "Source: guide.pdf | Page 3",
        "He said (quietly) that it works; she agreed, of course.",
        "Use `a = b; c()` to set it, then call `run()`.",
        "中文段落，没有空格。",
        "وصلت القطع متأخرة.",
        "Returns the value of the field, or None if there is none.",
        "For each of them:",
        "import duties rise again this year, says the report.",
        "In 2024, sales were 1,250,000 units, up from 980,000.",
    ],
    Kind.SOLID: ["> quoted", "| a | b |\n|---|---|\n| 1 | 2 |", "<context>", "<doc>\nProse here.\n</doc>"],
    Kind.RULE: ["==========", "---", "- - - -", "━━━━━━"],
    Kind.ZONE: [
        "x = 1",
        "def f(a, b):",
        "foo(bar)",
        "return x + 1",
        "if (a > b) {",
        "SELECT a FROM t",
        "key: value",
        "name: a\nports:\n  - 80",
        "id,name,qty\n1,bolt,12",
        "a  b  c\n1  2  3",
        "a\tb",
        "2024-05-01 10:00:00 started",
        "ERROR: failed",
        "127.0.0.1 - - [10/Oct/2000] \"GET / HTTP/1.0\" 200",
        "From: a@b.c\nTo: d@e.f",
        "<div>text</div>",
        "\\section{Intro}",
        "$ make all",
        ">>> print(1)",
        "@decorator",
        "#!/bin/sh",
        "# one\n# two",
        "12 34 56\n78 90 12",
        "├── app.py",
        "~~~~~~~~",
        "[core]",
        "-- \nAnna",
        "git commit -m \"a\"",
        "FROM python:3.11",
        "CMakeLists.txt:12: warning",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "block"), [(kind, block) for kind, blocks in BLOCKS.items() for block in blocks]
)
def test_blocks_are_judged(kind: Kind, block: str) -> None:
    assert classify(block) is kind
    assert classify(block.replace("\n", "\r\n")) is kind
