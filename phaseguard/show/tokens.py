"""A prompt as a row of tokens, each with its phase, and the answer spans marked in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from phaseguard.align import Inspection
from phaseguard.align.report import PassageReport, Report, SpanReport


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer span: tokens ``start`` to ``stop`` of the map.

    Attributes:
        number: its number in the report, from 1.
        start, stop: positions in the map.
        span: what is known of it; ``passage``: where it stands.
    """

    number: int
    start: int
    stop: int
    span: SpanReport
    passage: PassageReport

    @property
    def verdict(self) -> str:
        """``strong``, ``weak``, ``raw`` (read uncompressed, no phase matters) or ``unknown``."""
        if self.span.in_window:
            return "raw"
        if self.span.strong_after is None:
            return "unknown"
        return "strong" if self.span.strong_after else "weak"


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens ``start`` to ``stop``, all in one mark or all in none."""

    start: int
    stop: int
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class TokenMap:
    """All tokens of a request.

    Attributes:
        texts: the characters of each token; empty for the later tokens of a character that takes several.
        first: token index in the request of the first of them.
        period: tokens after which phases repeat, at least 2.
        strong: phases that count as strong for every answer, or None when that is unknown or differs.
        marks: the answer spans with a known place, ascending and disjoint.
        report: the report they come from.
    """

    texts: tuple[str, ...]
    first: int
    period: int
    strong: frozenset[int] | None
    marks: tuple[Mark, ...]
    report: Report

    def __len__(self) -> int:
        return len(self.texts)

    def phase(self, position: int) -> int:
        """Phase of the token at a position of the map."""
        return (self.first + position) % self.period

    def runs(self, start: int, stop: int) -> Iterator[Run]:
        """Cut a range of tokens at the borders of marks."""
        at = start
        for mark in self.marks:
            if mark.stop <= at or mark.start >= stop:
                continue
            if mark.start > at:
                yield Run(at, mark.start, None)
            yield Run(max(at, mark.start), min(mark.stop, stop), mark)
            at = min(mark.stop, stop)
        if at < stop:
            yield Run(at, stop, None)


def token_map(seen: Inspection) -> TokenMap:
    """The tokens of an inspected prompt.

    >>> from phaseguard import inspect_prompt
    >>> seen = inspect_prompt("The code is A-17.", key_passages=["A-17"], profile="deepseek-v4.1-flash")
    >>> tokens = token_map(seen)
    >>> mark = tokens.marks[0]
    >>> tokens.texts[mark.start : mark.stop], mark.verdict
    ((' A', '-', '17'), 'raw')
    """
    encoding, first = seen.request.encoding, seen.request.offset
    evidence = seen.evidence
    strong = evidence.strong.get(0) if not evidence.strengths else None
    return TokenMap(
        texts=_texts(seen.text, encoding.ends.tolist()),
        first=first,
        period=evidence.period,
        strong=strong,
        marks=_marks(seen.report, first, len(encoding)),
        report=seen.report,
    )


def _texts(text: str, ends: Sequence[int]) -> tuple[str, ...]:
    """Cut the text at the tokens' ends, so that a character which takes several tokens stands once."""
    borders = [0]
    for end in ends:
        borders.append(max(borders[-1], end))
    return tuple(text[start:stop] for start, stop in pairwise(borders))


def _marks(report: Report, first: int, tokens: int) -> tuple[Mark, ...]:
    found: list[Mark] = []
    number = 0
    for passage in report.passages:
        for span in passage.spans:
            number += 1
            if span.index_after is not None and span.tokens:
                start = span.index_after - first
                found.append(Mark(number, start, min(start + span.tokens, tokens), span, passage))
    found.sort(key=lambda mark: (mark.start, mark.stop))
    apart: list[Mark] = []
    for mark in found:
        if not apart or mark.start >= apart[-1].stop:
            apart.append(mark)
    return tuple(apart)


def windows(tokens: TokenMap, context: int) -> tuple[tuple[int, int], ...]:
    """Ranges to show: the beginning, the end, and what stands within ``context`` tokens of a mark."""
    size = len(tokens)
    edge = min(context, size)
    wanted = [(0, edge)]
    wanted += [(max(0, mark.start - context), min(size, mark.stop + context)) for mark in tokens.marks]
    wanted.append((size - edge, size))
    merged: list[tuple[int, int]] = []
    for start, stop in wanted:
        if merged and start <= merged[-1][1] + context // 4:  # a gap that small is not worth a line
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return tuple(merged)
