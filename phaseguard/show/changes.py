r"""What normalizing would change, as lines for a log and as a unified diff."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from phaseguard.show.words import quoted
from phaseguard.text import Edit


def change_lines(name: str, text: str, edits: Sequence[Edit]) -> Iterator[str]:
    r"""One line an edit: ``path:line: rule: what``; lines are those of ``text``.

    >>> from phaseguard.text import make_edit
    >>> list(change_lines("a.md", "Hi. \n", [make_edit("Hi. \n", 3, 4, "", "trailing-blanks")]))
    ["a.md:1: trailing-blanks: drop ' '"]
    """
    breaks = [at for at, char in enumerate(text) if char == "\n"]
    for edit in edits:
        line = bisect_right(breaks, edit.start + _same(edit) - 1) + 1
        yield f"{name}:{line}: {edit.reason}: {_what(edit)}"


def _same(edit: Edit) -> int:
    """Characters at the beginning that the edit keeps: the line to point at is the one behind them."""
    pairs = enumerate(zip(edit.original, edit.replacement, strict=False))
    shorter = min(len(edit.original), len(edit.replacement))
    return next((at for at, (old, new) in pairs if old != new), shorter)


def _what(edit: Edit) -> str:
    if not edit.replacement:
        return f"drop {quoted(edit.original)}"
    if not edit.original:
        return f"insert {quoted(edit.replacement)}"
    return f"{quoted(edit.original)} becomes {quoted(edit.replacement)}"


def unified_diff(name: str, old: str, new: str) -> str:
    r"""A unified diff with three lines of context, that ``patch`` can apply; empty when nothing differs.

    >>> unified_diff("a.md", "Hi. \n", "Hi.\n").splitlines()[2:]
    ['@@ -1 +1 @@', '-Hi. ', '+Hi.']
    """
    # str.splitlines would also cut at form feeds and U+2028, which no diff tool takes for line ends
    lines = difflib.unified_diff(_lines(old), _lines(new), name, name)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
