"""Edits of edits: two passes over a text, told as one list against its first form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from phaseguard.text import Edit, apply_edits, invert_edits, make_edit


def without_overlaps(edits: Iterable[Edit]) -> list[Edit]:
    """Sort edits and keep the first of those that overlap; the next pass finds what is left.

    >>> edits = [make_edit("abc", 1, 3, "", "x"), make_edit("abc", 0, 2, "", "y")]
    >>> [e.start for e in without_overlaps(edits)]
    [0]
    """
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start << 40) - e.end):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def compose(text: str, first: Sequence[Edit], second: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that do to ``text`` what ``first`` and then, on its result, ``second`` do.

    >>> one = [make_edit("a  b ", 1, 3, " ", "inner-blanks")]
    >>> two = [make_edit("a b ", 3, 4, "", "trailing-blanks")]
    >>> [(e.start, e.end, e.replacement) for e in compose("a  b ", one, two)]
    [(1, 3, ' '), (4, 5, '')]
    """
    if not first or not second:
        return tuple(first or second)
    return tuple(_merged(text, first, second))


def _merged(text: str, first: Sequence[Edit], second: Sequence[Edit]) -> Iterator[Edit]:
    """Group the edits whose ranges overlap in the middle text; each group is one edit of ``text``."""
    middle = apply_edits(text, first)
    made = [(e.start, e.end, 0, one) for e, one in zip(invert_edits(first), first, strict=True)]
    entries = sorted(made + [(e.start, e.end, 1, e) for e in second], key=lambda entry: entry[:3])
    shift = at = 0
    while at < len(entries):
        start, end, _, _ = entries[at]
        stop = at + 1
        while stop < len(entries) and entries[stop][0] < end:
            end = max(end, entries[stop][1])
            stop += 1
        earlier = [edit for _, _, turn, edit in entries[at:stop] if not turn]
        later = [edit for _, _, turn, edit in entries[at:stop] if turn]
        low = start - shift
        shift += sum(len(e.replacement) - len(e.original) for e in earlier)
        reason = (later or earlier)[-1].reason
        yield make_edit(text, low, end - shift, _apply_within(middle, start, end, later), reason)
        at = stop


def _apply_within(middle: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    local = [Edit(e.start - start, e.end - start, e.replacement, e.reason, e.original) for e in edits]
    return apply_edits(middle[start:end], local)
