"""What is protected: a lazy map of a text's blocks, judged one by one when somebody asks."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from phaseguard.normalize import markdown
from phaseguard.normalize.constructs import Zone, find_zones
from phaseguard.normalize.lines import LIST_LINE
from phaseguard.normalize.prose import Kind, classify
from phaseguard.normalize.spans import code_spans

_LEAD = re.compile(r"\ufeff?(?:[ \t\r]*\n)*")
_GAP = re.compile(r"\n(?:[ \t\r]*\n)+")
_LIST_REACH = 4_000


@dataclass(frozen=True, slots=True)
class Break:
    """A paragraph break: ``text[start:end]`` is whitespace with two newlines or more, and ends in one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of lines of one kind: a block, or the part of a block that a fence leaves."""

    start: int
    end: int
    kind: Kind


class BlockMap:
    r"""Where a text may be edited between its blocks, and where it is protected.

    One fast scan when made; after that the cost follows what is asked for.

    >>> blocks = BlockMap("One.\n\nTwo.\n\n```\na\n\nb\n```\n")
    >>> [(b.start, b.end) for b in blocks.breaks(0, 99)]
    [(4, 6), (10, 12)]
    >>> blocks.protected(0, 4), blocks.protected(16, 20), blocks.opening
    (False, True, True)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        lead = _LEAD.match(text)
        self.lead = lead.end() if lead else 0
        last = text.find("\n", len(text.rstrip(" \t\r\n")))
        self.tail = len(text) if last < 0 else max(last, self.lead)
        gaps = [m.span() for m in _GAP.finditer(text, self.lead, self.tail)]
        self._gap_starts = [start for start, _ in gaps]
        self._gap_ends = [end for _, end in gaps]
        self._starts = [self.lead, *self._gap_ends]
        self._ends = [*self._gap_starts, self.tail]
        self._zones = self._whole_blocks(find_zones(text))
        self._zone_ends = [zone.end for zone in self._zones]
        self._known: dict[int, tuple[Segment, ...]] = {}
        self._alone: dict[int, tuple[Segment, ...]] = {}
        self._list_lines: dict[int, bool] = {}
        self._spans: dict[int, list[tuple[int, int]]] = {}

    @property
    def opening(self) -> bool:
        """Whether lines of nothing but blanks in front of the text's first block are decoration."""
        if self.lead >= len(self.text) or self.text.startswith("\ufeff"):
            return False
        first = self.segments(0)[0]
        return first.kind is Kind.PROSE and first.start == self.lead and (self.count == 1 or self.is_open(0))

    def breaks(self, start: int, stop: int) -> Iterator[Break]:
        """Yield the breaks in ``text[start:stop]`` at which blank lines mean nothing, in ascending order."""
        for gap in range(bisect_left(self._gap_starts, max(0, start)), len(self._gap_starts)):
            if self._gap_ends[gap] > stop:
                return
            if self.is_open(gap):
                yield Break(self._gap_starts[gap], self._gap_ends[gap])

    def protected(self, start: int, stop: int) -> bool:
        """Whether ``text[start:stop]`` touches a zone: code, a table, a quotation, or a gap beside one."""
        last = max(start + 1, stop)
        block = self.block_at(start)
        while block < len(self._starts) and self._starts[block] < last:
            if any(
                s.kind is not Kind.PROSE and s.start < last and start < s.end for s in self.segments(block)
            ):
                return True
            if start < self._ends[block] and self.in_code_span(start, last):
                return True
            if block < len(self._gap_starts) and self._gap_starts[block] < last and not self.is_open(block):
                return True
            block += 1
        return False

    def block_at(self, offset: int) -> int:
        """Number of the block that an offset lies in; an offset in a gap belongs to the block before."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def untidy_gaps(self) -> list[int]:
        """Numbers of the gaps that are more than one empty line."""
        returns = "\r" in self.text
        pairs = enumerate(zip(self._gap_starts, self._gap_ends, strict=True))
        return [
            n for n, (start, end) in pairs if end - start != 2 or (returns and self.text[start - 1] == "\r")
        ]

    def gap(self, number: int) -> Break:
        """The gap behind the block of that number, open or not."""
        return Break(self._gap_starts[number], self._gap_ends[number])

    def is_open(self, gap: int) -> bool:
        """Whether blank lines may come and go in a gap: neither block beside it is a zone."""
        within = bisect_right(self._zone_ends, self._gap_starts[gap])
        if within < len(self._zones) and self._zones[within].start < self._gap_starts[gap]:
            return False
        return (
            self.segments(gap)[-1].kind is not Kind.ZONE and self.segments(gap + 1)[0].kind is not Kind.ZONE
        )

    def segment_at(self, offset: int) -> Segment:
        """The segment that an offset lies in, or the last of its block."""
        segments = self.segments(self.block_at(offset))
        for segment in segments:
            if offset < segment.end:
                return segment
        return segments[-1]

    def is_editable(self, offset: int) -> bool:
        """Whether an offset lies in prose."""
        return self.segment_at(offset).kind is Kind.PROSE

    def zone_at(self, offset: int) -> Zone | None:
        """The construct that an offset lies in: a fence, a string, a comment."""
        number = bisect_right(self._zone_ends, offset)
        if number < len(self._zones) and self._zones[number].start <= offset:
            return self._zones[number]
        return None

    def in_code_span(self, start: int, stop: int) -> bool:
        """Whether a range touches inline code of the block that it starts in."""
        block = self.block_at(start)
        spans = self._spans.get(block)
        if spans is None:
            spans = self._spans[block] = code_spans(self.text, self._starts[block], self._ends[block])
        at = bisect_right(spans, (start,)) - 1
        return any(low < stop and start < high for low, high in spans[max(0, at) : at + 2])

    @property
    def count(self) -> int:
        """How many blocks the text has."""
        return len(self._starts)

    def segments(self, block: int) -> tuple[Segment, ...]:
        """The segments of a block, judged when first asked for."""
        known = self._known.get(block)
        if known is None:
            known = self._base(block)
            if len(known) == 1 and known[0].kind is Kind.PROSE and self._is_comment(block):
                known = (replace(known[0], kind=Kind.ZONE),)
            self._known[block] = known
        return known

    def _base(self, block: int) -> tuple[Segment, ...]:
        """The segments of a block, judged by themselves."""
        known = self._alone.get(block)
        if known is None:
            start, end = self._starts[block], self._ends[block]
            zone = bisect_right(self._zone_ends, start)
            if zone < len(self._zones) and self._zones[zone].start < end:
                known = tuple(self._split(zone, block))
            else:
                known = (self._judge(block, start, end),)
            self._alone[block] = known
        return known

    def _is_comment(self, block: int) -> bool:
        """Whether a line behind a hash is a comment, not a heading: what stands beside it is a zone."""
        start, end = self._starts[block], self._ends[block]
        if self.text[start] != "#" or self.text.find("\n", start, end) >= 0:
            return False
        before = block > 0 and self._base(block - 1)[-1].kind is Kind.ZONE
        return before or (block + 1 < self.count and self._base(block + 1)[0].kind is Kind.ZONE)

    def _split(self, zone: int, block: int) -> Iterator[Segment]:
        """Cut a block at the constructs in it, of which the first is given."""
        start, end = self._starts[block], self._ends[block]
        while zone < len(self._zones) and (found := self._zones[zone]).start < end:
            zone += 1
            if found.start > start:
                yield self._judge(block, start, found.start - 1)
            kind = Kind.SOLID if found.solid else Kind.ZONE
            yield Segment(max(start, found.start), min(end, found.end), kind)
            start = found.end + 1
        if start < end:
            yield self._judge(block, start, end)

    def _judge(self, block: int, start: int, end: int) -> Segment:
        if self.text[start : start + 1] in (" ", "\t"):
            return Segment(start, end, self._judge_indented(block, start, end))
        return Segment(start, end, classify(self.text[start:end]))

    def _judge_indented(self, block: int, start: int, end: int) -> Kind:
        """An indented block is prose only as a paragraph of a list that prose opens."""
        if start != self._starts[block]:
            return Kind.ZONE
        if block not in self._list_lines:
            self._read_list(block)
        if not self._list_lines[block]:
            return Kind.ZONE
        lines = self.text[start:end].split("\n")
        indent = min(len(line) - len(line.lstrip(" ")) for line in lines)
        kind = classify("\n".join(line[indent:] for line in lines))
        return kind if kind is Kind.PROSE else Kind.ZONE

    def _read_list(self, block: int) -> None:
        """Ask the parser which of the indented blocks around one are paragraphs of a list.

        It is given the text from the last block that is not indented, at which no list is open any more,
        and, since each call costs, some of what follows.
        """
        top = block
        while top > 0 and self._is_indented(top):
            top -= 1
        opened = not self._is_indented(top) and self._base(top)[-1].kind is Kind.PROSE
        bottom = self._end_of_list(block, self._starts[block] + (_LIST_REACH if opened else 0))
        base = self._base(top)[-1].start if opened else self._starts[top]
        listed = markdown.list_lines(self.text[base : self._ends[bottom - 1]]) if opened else frozenset[int]()
        line, at = 0, base
        for number in range(top, bottom):
            start, end = self._starts[number], self._ends[number]
            line += self.text.count("\n", at, max(at, start))
            at = max(at, start)
            if self._is_indented(number):
                count = 1 + self.text.count("\n", start, end)
                self._list_lines[number] = listed.issuperset(range(line, line + count))

    def _end_of_list(self, block: int, limit: int) -> int:
        """First block behind ``block`` that is neither indented nor, before the limit, another list."""
        end = block + 1
        while end < len(self._starts):
            more = self._is_indented(end) or (
                self._starts[end] < limit
                and LIST_LINE.match(self.text, self._starts[end])
                and [segment.kind for segment in self._base(end)] == [Kind.PROSE]
            )
            if not more:
                break
            end += 1
        return end

    def _is_indented(self, block: int) -> bool:
        return self.text[self._starts[block]] in " \t"

    def _whole_blocks(self, zones: Iterator[Zone]) -> list[Zone]:
        """Let every zone but a solid one swallow the blocks that it touches; join those that then meet."""
        found: list[Zone] = []
        for zone in zones:
            start, end, solid = zone.start, zone.end, zone.solid
            if not solid:
                start = min(start, self._starts[self.block_at(start)])
                end = max(end, self._ends[self.block_at(max(start, end - 1))])
            while found and start <= found[-1].end and not (solid and found[-1].solid):
                last = found.pop()
                start, end, solid = min(last.start, start), max(last.end, end), False
            found.append(Zone(start, end, zone.kind, solid))
        return found
