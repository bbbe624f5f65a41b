"""Spans, edits and offset maps: every change of a text is a list of edits that can be undone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phaseguard.errors import EditError


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of character offsets, ``text[start:end]``.

    >>> Span(4, 9).of("The access code")
    'acces'
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        try:
            fits = 0 <= self.start <= self.end
        except TypeError:
            fits = False
        if not fits:
            raise EditError(f"Span({self.start}, {self.end}) is not a range: give 0 <= start <= end.")

    def of(self, text: str) -> str:
        """Return the characters of ``text`` in this span."""
        return text[self.start : self.end]

    def overlaps(self, other: Span) -> bool:
        """Whether the two spans share a character."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: Span) -> bool:
        """Whether every character of ``other`` lies in this span."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Edit:
    """``text[start:end]`` (which was ``original``) became ``replacement``, because of ``reason``.

    Offsets are characters of the text before the edits.
    """

    start: int
    end: int
    replacement: str
    reason: str
    original: str


def make_edit(text: str, start: int, end: int, replacement: str, reason: str) -> Edit:
    """Build an :class:`Edit` of ``text``, remembering what it replaces.

    >>> make_edit("a  b", 1, 3, " ", "inner-blanks")
    Edit(start=1, end=3, replacement=' ', reason='inner-blanks', original='  ')
    """
    return Edit(start, end, replacement, reason, text[start:end])


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Apply edits given in ascending order, without overlap.

    Raises:
        EditError: when edits overlap, leave the text, or replace other characters than they remember.

    >>> apply_edits("a  b", [make_edit("a  b", 1, 3, " ", "inner-blanks")])
    'a b'
    """
    parts: list[str] = []
    at = 0
    for edit in edits:
        if edit.start < at or edit.end < edit.start or edit.end > len(text):
            raise EditError(f"Edit at {edit.start}:{edit.end} overlaps the one before it or leaves the text.")
        if text[edit.start : edit.end] != edit.original:
            raise EditError(f"Edit at {edit.start}:{edit.end} was made for another text.")
        parts += (text[at : edit.start], edit.replacement)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def invert_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that lead from the changed text back to the original.

    >>> edits = [make_edit("a  b", 1, 3, " ", "inner-blanks")]
    >>> apply_edits(apply_edits("a  b", edits), invert_edits(edits))
    'a  b'
    """
    inverse: list[Edit] = []
    shift = 0
    for edit in edits:
        start = edit.start + shift
        inverse.append(
            Edit(start, start + len(edit.replacement), edit.original, edit.reason, edit.replacement)
        )
        shift += len(edit.replacement) - (edit.end - edit.start)
    return tuple(inverse)


class OffsetMap:
    """Maps character offsets of a text to the text that its edits make.

    >>> omap = OffsetMap([make_edit("a  b", 1, 3, " ", "inner-blanks")])
    >>> omap.forward(3), omap.backward(2)
    (2, 3)
    """

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._there = _Segments(edits)
        self._back = _Segments(invert_edits(edits))

    def forward(self, offset: int) -> int:
        """Offset in the edited text; an offset inside a replaced run maps to the replacement's start."""
        return self._there.map(offset)

    def backward(self, offset: int) -> int:
        """Offset in the original text; an offset inside a replacement maps to the replaced run's start."""
        return self._back.map(offset)

    def forward_span(self, span: Span) -> Span:
        """The span in the edited text that holds what is left of ``span``."""
        start = self.forward(span.start)
        return Span(start, max(start, self.forward(span.end)))


class _Segments:
    """Sorted starts of the runs that the edits replace, with the shift that holds behind each."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = tuple(edits)
        self._starts = [edit.start for edit in self._edits]
        self._shifts = [0]
        for edit in self._edits:
            self._shifts.append(self._shifts[-1] + len(edit.replacement) - (edit.end - edit.start))

    def map(self, offset: int) -> int:
        done = bisect_right(self._starts, offset)
        if done:
            edit = self._edits[done - 1]
            if offset < edit.end:
                return edit.start + self._shifts[done - 1]
        return offset + self._shifts[done]
