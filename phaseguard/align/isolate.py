"""Isolating: the sites that can keep strangers out of an answer's window, and what stands between them.

The objective: every stranger costs :data:`~phaseguard.align.evidence.STRANGER_PRICE` (0.03 nats, or 15
tokens of padding) times the weight of its answer span, beside the value of the span's phase and the price of
pads. That price is a prior from on-device models, never measured on the user's model. A stranger is a token
in the answer's window (see :class:`~phaseguard.align.grid.Grid`) that is neither blank, nor of a pad, nor of
the answer's record. Tokens outside the text that holds the answer count as strangers, whatever they are, so
that a later message changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from phaseguard.align.grid import Grid
from phaseguard.align.layout import Key, Stretch, Taken, Window, opening, places_in
from phaseguard.align.menus import Place
from phaseguard.align.neighbours import Kind, Neighbours, records
from phaseguard.align.prompt import FieldKey
from phaseguard.align.request import Request
from phaseguard.align.solver import CUT, NEUTRAL, STRANGER
from phaseguard.text import Span

_DENSE = 4  # up to this stride two sites a side stay cheap to solve exactly


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of an answer.

    Attributes:
        key: the answer; ``behind``: which side.
        kinds: what the tokens are, walking away from it.
        sites: places in reach, the nearest first.
    """

    key: Key
    behind: bool
    kinds: tuple[Kind, ...]
    sites: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Crowd:
    """One text with what surrounds its answers.

    Attributes:
        field: which text.
        accepted: the sites that are offered for isolating.
        refused: sites in reach that are too many to be weighed exactly; they take no pad at all.
        sides: both sides of every answer.
    """

    field: FieldKey
    accepted: tuple[Place, ...]
    refused: frozenset[Place]
    sides: tuple[_Side, ...]


def look_around(stretch: Stretch, neighbours: Neighbours, grid: Grid, *, inside: bool) -> Crowd:
    """Find what stands beside each answer of a text, and the sites that can change it.

    A site is in reach when fewer tokens than the window has slots lie between it and the answer, blanks
    and pads not counted, so that an aligned text has the same sites.
    """
    owned = records(stretch, inside=inside)
    taken = None if inside else Taken(stretch.passages)
    first = opening(stretch, neighbours.request)
    sides = tuple(
        _side(stretch, neighbours, grid, key, owned[key], taken, first, behind=behind)
        for behind in (False, True)
        for key in stretch.keys
    )
    users: dict[Place, list[int]] = {}
    for number, side in enumerate(sides):
        for place in side.sites:
            users.setdefault(place, []).append(number)
    room = [2 if grid.stride <= _DENSE else 1] * len(sides)
    accepted: dict[Place, None] = {}
    by_distance = zip_longest(*(side.sites for side in sides))
    for place in (place for rank in by_distance for place in rank if place is not None):
        if place not in accepted and all(room[number] for number in users[place]):
            accepted[place] = None
            for number in users[place]:
                room[number] -= 1
    return Crowd(stretch.source.field.key, tuple(accepted), frozenset(users.keys() - accepted.keys()), sides)


def _side(
    stretch: Stretch,
    neighbours: Neighbours,
    grid: Grid,
    key: Key,
    record: Span,
    taken: Taken | None,
    first: Place | None,
    *,
    behind: bool,
) -> _Side:
    request = neighbours.request
    start, stop = request.token_range(key.request)
    most = grid.most_behind if behind else grid.most_before
    far = most + 2 * grid.most_pads
    shift = stretch.piece.request.start - stretch.piece.content.start
    own = Span(record.start + shift, record.end + shift)
    low, high = (stop, min(stop + far, len(request.encoding))) if behind else (max(0, start - far), start)
    kinds = neighbours.kinds(low, high, stretch.piece.request, own)
    if not behind:
        kinds.reverse()
    reach = _reach(kinds, most)
    starts, ends = request.encoding.starts, request.encoding.ends
    if behind:
        last = min(stop + reach, len(ends) - 1)
        span = Span(key.request.end, max(key.request.end, int(ends[last])))
    else:
        span = Span(min(key.request.start, int(starts[max(0, start - reach - 1)])), key.request.start)
    places = list(places_in(stretch, taken, _inside(stretch, span)))
    places = places[::-1] if behind else [*places, *([first] if first else [])]
    edge = stop if behind else start
    near = tuple(place for place in places if abs(position(request, place) - edge) <= reach)
    return _Side(key, behind, tuple(kinds[:most]), near)


def _reach(kinds: Sequence[Kind], most: int) -> int:
    """Tokens that a site may lie away: up to a pad that stands, or to as many others as the window holds."""
    others = 0
    for number, kind in enumerate(kinds):
        others += kind is not Kind.BLANK
        if kind is Kind.PAD or others == most:
            return number
    return len(kinds)


def _inside(stretch: Stretch, span: Span) -> Span:
    """Characters of the request as characters of the text, cut to it."""
    piece = stretch.piece
    shift = piece.request.start - piece.content.start
    start = max(span.start - shift, piece.content.start)
    return Span(start, max(start, min(span.end - shift, piece.content.end)))


def position(request: Request, place: Place) -> int:
    """The token in front of which the pads of a place stand, or which they cut in two."""
    return int(np.searchsorted(request.encoding.ends, place.request.end, side="right"))


def walks(crowd: Crowd, request: Request, sites: Sequence[Place], grid: Grid) -> Iterator[Window]:
    """Both sides of every answer as walks over tokens and sites; sides without a stranger are left out.

    Args:
        crowd: one text.
        request: the request that it was looked at in.
        sites: every site of that text that can do something.
        grid: the chunks.
    """
    places: dict[int, list[Place]] = {}
    for place in sorted(sites, key=lambda place: place.request):
        places.setdefault(position(request, place), []).append(place)
    for side in crowd.sides:
        walk = tuple(_walk(side, request, places, grid))
        if STRANGER in walk:
            yield Window(side.key, side.behind, walk)


def _walk(
    side: _Side, request: Request, places: Mapping[int, Sequence[Place]], grid: Grid
) -> Iterator[Place | int]:
    start, stop = request.token_range(side.key.request)
    for number in range(grid.most_behind if side.behind else grid.most_before):
        if side.behind:
            here = places.get(stop + number, ())
            yield from (place for place in here if place.request.start >= side.key.request.end)
        else:
            here = places.get(start - number, ())
            for place in here[::-1]:
                if place.request.end <= side.key.request.start:
                    yield place
                    if request.encoding.starts[start - number] < place.request.end:
                        yield CUT  # the template's last sign and the text's first word are one token
        if number < len(side.kinds):
            yield STRANGER if side.kinds[number] is Kind.STRANGER else NEUTRAL
        elif side.behind or request.offset + start - number > 0:
            yield STRANGER  # what follows the request, or stands in front of its text, is not known
        else:
            return
