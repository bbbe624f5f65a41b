"""Inline code: which ranges of a block stand between backticks."""

from __future__ import annotations

import re
from bisect import bisect_right

_TICKS = re.compile("`+")


def code_spans(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """Ranges of the code spans in ``text[start:stop]``: a run of backticks up to the next run of its length.

    >>> code_spans("a `b` c ``d ` e`` f ` g", 0, 23)
    [(2, 5), (8, 17)]
    """
    runs = [m.span() for m in _TICKS.finditer(text, start, stop)]
    by_length: dict[int, list[int]] = {}
    for number, (low, high) in enumerate(runs):
        by_length.setdefault(high - low, []).append(number)
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(runs):
        low, high = runs[at]
        same = by_length[high - low]
        closing = bisect_right(same, at)
        if closing < len(same):
            spans.append((low, runs[same[closing]][1]))
            at = same[closing]
        at += 1
    return spans
