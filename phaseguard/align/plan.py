"""Planning: which pads to put where, message by message, from the request without pads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from phaseguard.align.evidence import Evidence
from phaseguard.align.grid import Grid
from phaseguard.align.isolate import Crowd, look_around, walks
from phaseguard.align.layout import Key, Stretch, Window, build, find_gaps
from phaseguard.align.menus import Choice, Place, measure
from phaseguard.align.neighbours import Neighbours
from phaseguard.align.pads import PadAlphabet, standing_tokens
from phaseguard.align.passages import Passage, Source, by_field
from phaseguard.align.prompt import FieldKey
from phaseguard.align.request import Request
from phaseguard.align.salience import AnswerSpan
from phaseguard.align.solver import solve
from phaseguard.text import Edit, Span, make_edit
from phaseguard.tokens.base import Tokenizer

Answers = Mapping[Passage, Sequence[AnswerSpan]]
Site = tuple[Place, tuple[Choice, ...]]
Banned = tuple[FieldKey, Span, str]
SITES_A_GAP = 3  # a site that cannot reach every phase is joined by two more at most


@dataclass(frozen=True, slots=True)
class PlannedPad:
    """One choice at one place."""

    place: Place
    choice: Choice

    @property
    def ban(self) -> Banned:
        """What to leave out of the next plan when this pad did something else than measured."""
        return self.place.key, self.place.content, self.choice.text

    def placed_in(self, request: Request) -> PlannedPad:
        """The same pad, with its characters in another request that holds the same text."""
        key, content = self.place.key, self.place.content
        start = request.rendered.locate(key.message, content.start, key.block_or_none)
        span = Span(start, start + content.end - content.start)
        return replace(self, place=replace(self.place, request=span))


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """What is known of one message before solving.

    Attributes:
        keys: its answer spans.
        sites: what can be done where.
        standing: tokens of the pads that stand in it already.
        windows: what stands beside its answer spans, when they are isolated.
        order: the messages with answer spans, as the request in which this one was looked at has them;
            ``place``: where this one stands among them.
    """

    keys: tuple[Key, ...]
    sites: tuple[Site, ...]
    standing: int
    windows: tuple[Window, ...]
    order: tuple[int, ...]
    place: int

    @property
    def ahead(self) -> tuple[int, ...]:
        """The messages whose pads move this one."""
        return self.order[: self.place]


def locate(
    request: Request, sources: Sequence[Source], passages: Sequence[Passage], answers: Answers
) -> tuple[Stretch, ...]:
    """Every text of the request with the passages and answer spans in it, in the order of the request.

    Spans whose token index cannot be known (behind an image) and spans that the chat encoding leaves
    out of the request are left out.
    """
    by_key = {source.field.key: source for source in sources}
    grouped = by_field(passages)
    stretches: list[Stretch] = []
    times = Counter((piece.message, piece.block) for piece in request.rendered.pieces)
    for piece in request.rendered.pieces:
        source = by_key.get(FieldKey(piece.message, -1 if piece.block is None else piece.block))
        if source is None or not request.known(piece.request.start):
            continue
        once = times[piece.message, piece.block] == 1  # a pad in a text that is printed twice stands twice
        here = tuple(p for p in grouped.get(source.field.key, ()) if piece.content.overlaps(p.span))
        shift = piece.request.start - piece.content.start
        keys = [
            _key(request, passage, answer, shift)
            for passage in here
            for answer in answers[passage]
            if piece.content.contains(answer.span)
        ]
        keys.sort(key=lambda key: (key.request, -key.answer.weight))
        stretches.append(
            Stretch(source, piece, here, tuple(_distinct(keys)), paddable=once and source.field.editable)
        )
    return tuple(stretches)


def _key(request: Request, passage: Passage, answer: AnswerSpan, shift: int) -> Key:
    span = Span(answer.span.start + shift, answer.span.end + shift)
    first, stop = request.token_range(span)
    return Key(passage, answer, span, request.offset + first, stop - first)


def _distinct(keys: Iterable[Key]) -> Iterable[Key]:
    """The same characters count once, though two passages may hold them."""
    seen: set[Span] = set()
    for key in keys:
        if key.request not in seen:
            seen.add(key.request)
            yield key


def measure_messages(
    request: Request,
    stretches: Sequence[Stretch],
    alphabets: Sequence[PadAlphabet],
    tokenizer: Tokenizer,
    *,
    period: int,
    inside: bool,
    budgeted: bool,
    grid: Grid | None = None,
    least: int = 1,
) -> dict[int, MessagePlan]:
    """Find the sites of every message with answer spans, and measure what can be done at them.

    Each gap in front of an answer span offers its last ``least`` sites, and further ones only as long
    as some phase is out of reach. Pads that stand already are counted only when ``budgeted``. With a
    ``grid`` the sites that can isolate an answer are offered too.
    """
    found = _Found()
    neighbours = None if grid is None else Neighbours(request, alphabets)
    last = {stretch.piece.message: number for number, stretch in enumerate(stretches) if stretch.keys}
    for number, stretch in enumerate(stretches):
        message = stretch.piece.message
        if number > last.get(message, -1):
            continue  # nothing behind it in its message can be moved
        found.keys.setdefault(message, []).extend(stretch.keys)
        if budgeted:
            found.standing[message] += standing_tokens(stretch.source.text, alphabets)
        gaps = find_gaps(stretch, request, inside=inside, more_behind=number < last[message])
        if grid is None or neighbours is None:
            found.gaps.extend(gaps)
        else:
            found.add_crowd(message, look_around(stretch, neighbours, grid, inside=inside), gaps)
    modulus = period if grid is None else max(period, grid.most_pads + 1)
    sites = tuple(_measured_gaps(request, found.gaps, alphabets, tokenizer, period, modulus, least))
    return found.plans(request, sites, grid)


@dataclass(slots=True)
class _Found:
    """What is found walking over the texts of a request, by message.

    Attributes:
        keys: answer spans; ``standing``: tokens of the pads that stand already.
        gaps: series of sites to measure.
        crowds: the texts with what surrounds their answers, when these are isolated.
    """

    keys: dict[int, list[Key]] = field(default_factory=dict)
    standing: Counter[int] = field(default_factory=Counter)
    gaps: list[Iterator[Place]] = field(default_factory=list)
    crowds: list[tuple[int, Crowd]] = field(default_factory=list)

    def add_crowd(self, message: int, crowd: Crowd, gaps: Iterable[Iterator[Place]]) -> None:
        """Offer the sites that isolate first; those too many to be weighed exactly not at all."""
        self.crowds.append((message, crowd))
        self.gaps.extend(iter((place,)) for place in crowd.accepted)
        self.gaps.extend(_without(gap, crowd.refused) for gap in gaps)

    def plans(self, request: Request, sites: Sequence[Site], grid: Grid | None) -> dict[int, MessagePlan]:
        """What is known of each message, once the sites are measured."""
        windows: dict[int, list[Window]] = {}
        if grid is not None:
            for message, crowd in self.crowds:
                places = [place for place, _ in sites if place.key == crowd.field]
                windows.setdefault(message, []).extend(walks(crowd, request, places, grid))
        order = tuple(self.keys)
        return {
            message: MessagePlan(
                tuple(self.keys[message]),
                tuple(site for site in sites if site[0].key.message == message),
                self.standing[message],
                tuple(windows.get(message, ())),
                order,
                place,
            )
            for place, message in enumerate(order)
        }


def _without(gap: Iterator[Place], refused: Collection[Place]) -> Iterator[Place]:
    return (place for place in gap if place not in refused)


def _measured_gaps(
    request: Request,
    gaps: Sequence[Iterator[Place]],
    alphabets: Sequence[PadAlphabet],
    tokenizer: Tokenizer,
    period: int,
    modulus: int,
    least: int,
) -> Iterator[Site]:
    """The sites of every gap that can do anything, asked for in rounds so that each is measured at once."""
    left = list(gaps)
    menus: dict[Place, tuple[Choice, ...]] = {}
    for number in range(SITES_A_GAP):
        asked = [(gap, place) for gap in left if (place := next(gap, None)) is not None]
        places = [place for _, place in asked if request.known(place.request.start)]
        if not places:
            return
        fresh = [place for place in dict.fromkeys(places) if place not in menus]
        measured = zip(fresh, measure(request, fresh, alphabets, tokenizer, modulus), strict=True)
        for place, menu in measured:
            menus[place] = menu
            if menu:
                yield place, menu
        left = [
            gap
            for gap, place in asked
            if number + 1 < least or len({c.tokens % period for c in menus.get(place, ())}) < period - 1
        ]


def plan_pads(
    messages: Mapping[int, MessagePlan],
    evidence: Evidence,
    *,
    budget: int | None,
    banned: Collection[Banned],
    grid: Grid | None = None,
) -> tuple[PlannedPad, ...]:
    """Solve message after message; each sees only itself and the pads in front of it.

    Args:
        messages: what can be done in each.
        evidence: gives the value of each phase.
        budget: most tokens to add in all; pads that stand already count, so that aligning an aligned
            prompt changes nothing.
        banned: what did not do at a place what it should.
        grid: the chunks, when answers are isolated.
    """
    planned: list[PlannedPad] = []
    added: dict[int, int] = {}
    spent = 0
    for message in _in_turn(messages):
        plan = messages[message]
        spent += plan.standing
        sites = [
            (place, tuple(choice for choice in menu if (place.key, place.content, choice.text) not in banned))
            for place, menu in plan.sites
        ]
        left = None if budget is None else max(0, budget - spent)
        shift = sum(added.get(other, 0) for other in plan.ahead)
        layout = build(plan.keys, sites, evidence, shift=shift, budget=left, windows=plan.windows, grid=grid)
        best = solve(layout.problem)
        for node, option in best.choices:
            place, menu = layout.places[node]
            planned.append(PlannedPad(place, menu[option]))
        added[message] = best.tokens
        spent += best.tokens
    return tuple(planned)


def _in_turn(messages: Mapping[int, MessagePlan]) -> list[int]:
    """The messages as the conversation has them, each behind those whose pads move it.

    The order of the whole request would not do: an encoder may hoist a later system message, and what is
    chosen for an earlier message must not depend on it.
    """
    turn = (other for message in sorted(messages) for other in (*messages[message].ahead, message))
    return [message for message in dict.fromkeys(turn) if message in messages]


def pad_edits(
    planned: Sequence[PlannedPad], texts: Mapping[FieldKey, str]
) -> dict[FieldKey, tuple[Edit, ...]]:
    """The edits of every text that the pads make, ascending."""
    edits: dict[FieldKey, list[Edit]] = {}
    for pad in planned:
        span = pad.place.content
        edits.setdefault(pad.place.key, []).append(
            make_edit(texts[pad.place.key], span.start, span.end, pad.choice.text, f"pad-{pad.choice.kind}")
        )
    return {key: tuple(sorted(found, key=lambda edit: edit.start)) for key, found in edits.items()}
