"""The contracts of normalizing, on mixtures of everything that people paste into prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from normalize_mixtures import DECORATION, PADS, mixtures, render

from phaseguard.normalize import LEVELS, BlockMap, Level, normalize
from phaseguard.text import apply_edits, invert_edits

levels = st.sampled_from(LEVELS)
thorough = settings(max_examples=150, deadline=None)


def without_decoration(text: str) -> str:
    return "".join(char for char in text if char not in DECORATION)


@thorough
@given(mixtures(), levels)
def test_undo_gives_the_original_back(text: str, level: Level) -> None:
    out = normalize(text, level)
    assert out.restore() == text
    assert apply_edits(text, out.edits) == out.text
    assert apply_edits(out.text, invert_edits(out.edits)) == text
    assert all(edit.reason and text[edit.start : edit.end] == edit.original for edit in out.edits)


@thorough
@given(mixtures(), levels)
def test_normalizing_twice_changes_nothing_more(text: str, level: Level) -> None:
    once = normalize(text, level).text
    assert normalize(once, level).edits == ()


@thorough
@given(mixtures(), levels)
def test_all_other_characters_stay_in_order(text: str, level: Level) -> None:
    assert without_decoration(normalize(text, level).text) == without_decoration(text)


@thorough
@given(mixtures())
def test_off_does_nothing(text: str) -> None:
    assert normalize(text, "off").text == text


@thorough
@given(mixtures())
def test_a_safe_edit_touches_only_what_it_names(text: str) -> None:
    for edit in normalize(text).edits:
        if edit.reason in {"trailing-blanks", "line-endings", "surplus-blank-lines"}:
            assert not edit.original.strip(" \t\r\n\u200b\u200c\u200d\u2060\ufeff")
            assert edit.replacement in {"", "\n", "\n\n"}


@thorough
@given(mixtures())
def test_breaks_are_separators(text: str) -> None:
    previous = 0
    for found in BlockMap(text).breaks(0, len(text)):
        separator = text[found.start : found.end]
        assert previous <= found.start
        assert not separator.strip()
        assert separator.count("\n") >= 2
        assert separator.startswith("\n")
        assert separator.endswith("\n")
        assert text[found.start - 1] != "\n"
        assert not text[found.end : found.end + 1].isspace() or text[found.end] in " \t"
        previous = found.end


@thorough
@given(mixtures(), st.integers(0, 400), st.integers(0, 400))
def test_breaks_of_a_range_are_those_that_lie_in_it(text: str, start: int, stop: int) -> None:
    every = [b for b in BlockMap(text).breaks(0, len(text)) if b.start >= start and b.end <= stop]
    assert list(BlockMap(text).breaks(start, stop)) == every


@thorough
@given(mixtures(), st.data())
def test_a_pad_at_a_break_is_removed_and_moves_no_break(text: str, data: st.DataObject) -> None:
    text = normalize(text).text
    breaks = list(BlockMap(text).breaks(0, len(text)))
    for number, found in enumerate(breaks):
        pad = data.draw(st.sampled_from(PADS))
        padded = text[: found.end] + pad + text[found.end :]
        assert normalize(padded).text == text
        moved = [
            (b.start + len(pad) * (n > number), b.end + len(pad) * (n >= number))
            for n, b in enumerate(breaks)
        ]
        assert [(b.start, b.end) for b in BlockMap(padded).breaks(0, len(padded))] == moved
        assert render(padded) == render(text)


@thorough
@given(mixtures(), st.sampled_from(["\n \n", "\n\t\n"]))
def test_another_separator_at_a_break_is_brought_back(text: str, separator: str) -> None:
    text = normalize(text).text
    for found in BlockMap(text).breaks(0, len(text)):
        if text[found.start : found.end] == "\n\n":
            assert normalize(text[: found.start] + separator + text[found.end :]).text == text


@thorough
@given(mixtures(), st.sampled_from(PADS))
def test_a_pad_in_front_is_removed(text: str, pad: str) -> None:
    text = normalize(text).text
    if BlockMap(text).opening:
        assert normalize(pad + text).text == text
        assert render(pad + text) == render(text)
        assert BlockMap(pad + text).opening


@thorough
@given(mixtures(), st.data())
def test_pads_at_many_breaks_are_removed(text: str, data: st.DataObject) -> None:
    text = padded = normalize(text).text
    for found in reversed(list(BlockMap(text).breaks(0, len(text)))):
        pad = data.draw(st.sampled_from(("", *PADS)))
        padded = padded[: found.end] + pad + padded[found.end :]
    assert normalize(padded).text == text


@thorough
@given(mixtures())
def test_safe_leaves_fences_alone(text: str) -> None:
    fence = "```python\nif x:  \n    y = 1 \n\n\n\n\tz = 2\r\n```"
    out = normalize(f"Prose here.\n\n{fence}\n\n{text}").text
    assert fence in out


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(mixtures(), levels)
def test_contracts_hold_on_many_more(text: str, level: Level) -> None:
    out = normalize(text, level)
    assert out.restore() == text
    assert normalize(out.text, level).edits == ()
    assert without_decoration(out.text) == without_decoration(text)


def test_dots_are_pads_not_rules() -> None:
    text = "One.\n\n. . . . . .\n\nTwo.\n"
    assert normalize(text, "full").text == text


def test_a_protected_range_is_where_nothing_may_change() -> None:
    text = "Prose with `code  span` in it.\n\n```\na\n\n\nb\n```\n\nMore prose.\n"
    blocks = BlockMap(text)
    inside = text.index("a\n\n")
    assert blocks.protected(inside, inside + 4)
    assert blocks.protected(text.index("code"), text.index("span"))
    assert not blocks.protected(0, 5)
    assert not blocks.protected(text.index("More"), len(text) - 1)
    assert re.search("`", text)
