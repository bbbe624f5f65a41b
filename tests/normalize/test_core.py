"""The public edge: errors, levels, and the composition of edits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.normalize import LEVELS, normalize
from phaseguard.normalize.compose import compose, without_overlaps
from phaseguard.text import Edit, apply_edits, invert_edits, make_edit


def test_an_unknown_level_names_near_ones() -> None:
    with pytest.raises(InputError, match=r"'saef'.*Did you mean 'safe'"):
        normalize("a", "saef")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="full, off, safe"):
        normalize("a", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [None, b"bytes", 3, ["a"]])
def test_only_strings_are_taken(text: Any) -> None:
    with pytest.raises(InputError, match=type(text).__name__):
        normalize(text)


@pytest.mark.parametrize("level", LEVELS)
def test_the_empty_text(level: Any) -> None:
    assert normalize("", level).text == ""
    assert normalize("", level).level == level


def test_lone_surrogates_do_no_harm() -> None:
    assert normalize("a \ud800 b. \n").text == "a \ud800 b.\n"


@st.composite
def edits_of(draw: st.DrawFn, text: str) -> list[Edit]:
    marks = draw(st.lists(st.integers(0, len(text)), max_size=8).map(sorted))
    ranges = zip(marks[::2], marks[1::2], strict=False)
    made = [make_edit(text, a, b, draw(st.text("xyz", max_size=3)), "test") for a, b in ranges]
    return without_overlaps(edit for edit in made if edit.original or edit.replacement)


@given(st.text("abcdef", max_size=20), st.data())
def test_composed_edits_do_what_both_do(text: str, data: st.DataObject) -> None:
    first = data.draw(edits_of(text))
    middle = apply_edits(text, first)
    second = data.draw(edits_of(middle))
    both = compose(text, first, second)
    assert apply_edits(text, both) == apply_edits(middle, second)
    assert apply_edits(apply_edits(text, both), invert_edits(both)) == text


def test_the_parser_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys; from phaseguard.normalize import normalize;"
        "normalize('One. \\n\\n\\n\\n# Two\\n\\n- a \\n- b\\n\\n```\\nc\\n```\\n');"
        "sys.exit('markdown_it' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
