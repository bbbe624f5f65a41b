"""From passages and sites to a problem the solver can solve, message by message."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from phaseguard.align.evidence import STRANGER_PRICE, Evidence
from phaseguard.align.grid import NO_CHUNKS, Grid
from phaseguard.align.menus import Choice, Place
from phaseguard.align.passages import Passage, Source
from phaseguard.align.request import Request
from phaseguard.align.salience import AnswerSpan
from phaseguard.align.solver import Node, Option, Problem, SiteNode, SpanNode, WindowNode
from phaseguard.chat.base import Piece
from phaseguard.normalize import BlockMap, Break
from phaseguard.text import Span

# what means something else, or nothing, behind a blank line: front matter, a shebang, declarations
_MUST_BE_FIRST = re.compile(
    r"\ufeff|---[ \t]*\n|\+\+\+[ \t]*\n|#!|<\?|<!DOCTYPE|%YAML|%PDF|From ", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Key:
    """An answer span where it stands: characters of its field, of the request, and its tokens."""

    passage: Passage
    answer: AnswerSpan
    request: Span
    first: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """One text of the prompt with what stands in it, in order; ``paddable`` when pads may be put in."""

    source: Source
    piece: Piece
    passages: tuple[Passage, ...]
    keys: tuple[Key, ...]
    paddable: bool


def find_gaps(
    stretch: Stretch, request: Request, *, inside: bool, more_behind: bool = False
) -> Iterator[Iterator[Place]]:
    """The sites of one text that can move an answer span, one series for each gap in front of one.

    Args:
        stretch: the text.
        request: the request without pads.
        inside: whether line breaks inside a passage count as sites.
        more_behind: whether answer spans stand in a later text of the same message.

    Yields:
        The sites of each gap, the last first, found as they are asked for; none inside a passage or a zone.
        Strengths are measured with pads directly in front of the record, and prompt caches want them late.
    """
    if not stretch.paddable:
        return
    place = opening(stretch, request)
    first = [] if place is None else [place]
    if stretch.source.field.is_tool:
        yield iter(first)
        return
    taken = Taken(stretch.passages)
    at = stretch.piece.content.start
    gaps = [key.answer.span for key in stretch.keys]
    if more_behind:
        gaps.append(Span(stretch.piece.content.end, stretch.piece.content.end))
    for span in gaps:
        near = places_in(stretch, None if inside else taken, Span(at, max(at, span.start)))
        yield chain(near, first)
        at, first = max(at, span.end), []


def opening(stretch: Stretch, request: Request) -> Place | None:
    """The site in front of a whole text, if a pad may stand there."""
    if not stretch.paddable or not _may_open(stretch, request):
        return None
    return _place(stretch, Span(0, 0), edge=True)


def places_in(stretch: Stretch, taken: Taken | None, gap: Span) -> Iterator[Place]:
    """The sites between two characters of a text that are not in what is taken, the last first."""
    if not stretch.paddable or stretch.source.field.is_tool:
        return
    for found in breaks_back(stretch.source.blocks, gap):
        span = Span(found.start, found.end)
        if not (taken and taken.touches(span)):
            yield _place(stretch, span, edge=False)


def breaks_back(blocks: BlockMap, gap: Span) -> Iterator[Break]:
    """The breaks inside a gap, the last first; only what is asked for is looked at."""
    for number in range(blocks.block_at(gap.end) - 1, -1, -1):
        found = blocks.gap(number)
        if found.start < gap.start:
            return
        if blocks.is_open(number):
            yield found


class Taken:
    """The characters of passages, merged, so that asking for one span takes a bisection."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for span in sorted(passage.span for passage in passages):
            if self._ends and span.start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], span.end)
            else:
                self._starts.append(span.start)
                self._ends.append(span.end)

    def touches(self, span: Span) -> bool:
        """Whether a passage shares a character with ``span``."""
        before = bisect_left(self._starts, span.end)
        return before > 0 and self._ends[before - 1] > span.start


def _may_open(stretch: Stretch, request: Request) -> bool:
    """Whether a pad may stand in front of the whole text."""
    if stretch.piece.content.start > 0:
        return False  # the template strips what stands there
    if stretch.source.field.is_tool:
        return True
    start = stretch.piece.request.start
    text = request.rendered.text
    stands_alone = (
        start == 0 or text[start - 1] == "\n" or any(s.end == start for s in request.rendered.specials)
    )
    return stands_alone and not _MUST_BE_FIRST.match(stretch.source.text)


def _place(stretch: Stretch, span: Span, *, edge: bool) -> Place:
    shift = stretch.piece.request.start - stretch.piece.content.start
    request = Span(span.start + shift, span.end + shift)
    return Place(stretch.source.field.key, span, request, edge, strips=edge and stretch.piece.strips)


Step = Place | int


@dataclass(frozen=True, slots=True)
class Window:
    """One side of an answer's window; see :class:`phaseguard.align.solver.WindowNode`.

    Attributes:
        key: the answer span; ``behind``: which side.
        walk: the tokens and sites from the answer outwards.
    """

    key: Key
    behind: bool
    walk: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The problem of one message, with the places and choices that its node numbers stand for."""

    problem: Problem
    places: dict[int, tuple[Place, tuple[Choice, ...]]]


Sites = Sequence[tuple[Place, tuple[Choice, ...]]]


def build(
    keys: Sequence[Key],
    sites: Sites,
    evidence: Evidence,
    *,
    shift: int,
    budget: int | None,
    windows: Sequence[Window] = (),
    grid: Grid | None = None,
) -> Layout:
    """Put sites, spans and windows of one message in the order of the request.

    Args:
        keys: its answer spans, with the token index of each in the request without pads.
        sites: its places and what can be done at each.
        evidence: gives the value of each phase.
        shift: tokens by which everything in front of the message has been moved already.
        budget: most tokens to add, or None.
        windows: what stands beside the answer spans, when they are isolated.
        grid: the chunks, when they are isolated.
    """
    # a site stands before a span that starts where the site ends, and a window behind its last site
    entries: list[tuple[int, int, Key | Window | tuple[Place, tuple[Choice, ...]]]] = [
        (key.request.start, 2, key) for key in keys
    ]
    entries += [(site[0].request.end, 0, site) for site in sites]
    entries += [(_end(window), 1, window) for window in windows]
    entries.sort(key=lambda entry: entry[:2])
    places = {number: entry for number, (_, _, entry) in enumerate(entries) if isinstance(entry, tuple)}
    numbers = {site[0]: number for number, site in places.items()}
    period = evidence.period if grid is None else math.lcm(evidence.period, grid.stride)
    crowded = {window.key for window in windows}
    nodes: list[Node] = []
    for _, _, entry in entries:
        if isinstance(entry, Key):
            prior = grid.preference(evidence.period) if grid and entry in crowded else None
            nodes.append(_span(entry, evidence, shift, period, prior))
        elif isinstance(entry, Window):
            nodes.append(_window(entry, numbers, shift))
        else:
            nodes.append(SiteNode(tuple(Option(choice.tokens, choice.price) for choice in entry[1])))
    return Layout(Problem(period, tuple(nodes), budget, grid or NO_CHUNKS), places)


def _end(window: Window) -> int:
    """Where the last site stands that a window walks over, or its answer."""
    ends = [step.request.end for step in window.walk if isinstance(step, Place)]
    return max([window.key.request.start, *ends])


def _span(key: Key, evidence: Evidence, shift: int, period: int, prior: tuple[int, ...] | None) -> SpanNode:
    if evidence.usable:
        values = evidence.values(key.tokens, key.answer.weight)
    else:
        values = prior or (0,) * evidence.period  # a record that fills its window is left where it stands
    turn = (key.first + shift) % evidence.period
    return SpanNode((values[turn:] + values[:turn]) * (period // evidence.period))


def _window(window: Window, numbers: Mapping[Place, int], shift: int) -> WindowNode:
    index = window.key.first + (window.key.tokens if window.behind else 0)
    walk = tuple(numbers[step] if isinstance(step, Place) else step for step in window.walk)
    price = round(window.key.answer.weight * STRANGER_PRICE)
    return WindowNode(index + shift, window.behind, walk, price)
