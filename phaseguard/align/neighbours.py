"""What stands beside an answer: its own record, blanks and pads, and strangers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from phaseguard.align.grid import Grid
from phaseguard.align.layout import Key, Stretch
from phaseguard.align.pads import PadAlphabet
from phaseguard.align.request import Request
from phaseguard.align.retrieve import sentences_at
from phaseguard.text import Span

_LONGEST_PAD = 400  # characters: a longer line is no pad
_DOTS = r"[.…·](?: [.…·])*\n"


class Kind(Enum):
    """What a token beside an answer is."""

    BLANK = "blank"
    PAD = "pad"
    RECORD = "record"
    STRANGER = "stranger"


@dataclass(frozen=True)
class Neighbours:
    """Tells what tokens of a request are.

    Attributes:
        request: the request.
        alphabets: the pads that count as pads where they stand already.
    """

    request: Request
    alphabets: Sequence[PadAlphabet]

    @cached_property
    def _pads(self) -> re.Pattern[str]:
        own = {pad.text for a in self.alphabets for pads in a.by_tokens.values() for pad in pads}
        others = sorted((re.escape(text) for text in own if text.strip()), key=len, reverse=True)
        return re.compile("^(?:" + "|".join([*others, _DOTS]) + ")", re.MULTILINE)

    def kinds(self, first: int, stop: int, text: Span, record: Span) -> list[Kind]:
        """What tokens ``first`` to ``stop`` are; both lie within the encoding.

        Args:
            first: position in the encoding of the first token.
            stop: one past the last.
            text: characters of the request that hold the answer's text: what lies outside is strange.
            record: characters of the request that are the answer's record.
        """
        if first >= stop:
            return []
        encoding, whole = self.request.encoding, self.request.rendered.text
        starts = encoding.starts[first:stop].tolist()
        ends = encoding.ends[first:stop].tolist()
        low, high = max(starts[0], text.start), min(ends[-1], text.end)
        line, end = _line_start(whole, low, text.start), _line_end(whole, high, text.end)
        here = whole[line:end]
        bare = self._pads.sub(lambda match: " " * len(match[0]), here)
        own_first, own_stop = self.request.token_range(record)
        found = []
        for number, (start, stop_at) in enumerate(zip(starts, ends, strict=True), first):
            inside = text.start <= start and stop_at <= text.end
            if inside and here[start - line : stop_at - line].isspace():
                found.append(Kind.BLANK)
            elif inside and bare[start - line : stop_at - line].isspace():
                found.append(Kind.PAD)
            else:
                found.append(Kind.RECORD if own_first <= number < own_stop else Kind.STRANGER)
        return found

    def count(self, grid: Grid, answer: Span, text: Span, record: Span) -> int:
        """Strangers in the window of an answer; all three spans are characters of the request."""
        first, stop = self.request.token_range(answer)
        index = self.request.offset + first
        low = first - grid.before(index)
        high = min(stop + grid.behind(self.request.offset + stop), len(self.request.encoding))
        ahead = min(max(0, -low), self.request.offset)  # tokens that the renderer does not write
        kinds = self.kinds(max(low, 0), high, text, record)
        return ahead + kinds.count(Kind.STRANGER)


def _line_start(text: str, at: int, first: int) -> int:
    """Where the line at a character begins, if not too far away; ``first`` begins a line whatever it is."""
    low = max(first, at - _LONGEST_PAD)
    found = text.rfind("\n", low, max(low, at))
    return found + 1 if found >= 0 else first if low == first else at


def _line_end(text: str, at: int, last: int) -> int:
    """Where the line at a character ends, its newline included, if not too far away."""
    found = text.find("\n", at - 1, min(last, at + _LONGEST_PAD))
    return found + 1 if found >= 0 else at


def records(stretch: Stretch, *, inside: bool) -> dict[Key, Span]:
    """The record of each answer span of a text, in characters of that text.

    It is the key passage with the sentence around the answer. With ``inside`` it ends at the nearest line
    breaks that take a pad.
    """
    text, keys = stretch.source.text, stretch.keys
    sentences = sentences_at(text, [key.answer.span.start for key in keys])
    found = {}
    for key, sentence in zip(keys, sentences, strict=True):
        spans = (key.passage.span, key.answer.span, sentence)
        whole = Span(min(span.start for span in spans), max(span.end for span in spans))
        found[key] = _between_breaks(stretch, whole, key.answer.span) if inside else whole
    return found


def _between_breaks(stretch: Stretch, whole: Span, answer: Span) -> Span:
    start, end = whole.start, whole.end
    for found in stretch.source.blocks.breaks(whole.start, whole.end):
        if found.end <= answer.start:
            start = found.end
        elif found.start >= answer.end:
            end = found.start
            break
    return Span(start, end)
