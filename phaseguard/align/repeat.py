"""Repeating key passages in front of the question, inside the window that the model reads uncompressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from phaseguard.align.copies import Home, Insert, would_stay
from phaseguard.align.draft import Draft
from phaseguard.align.passages import Passage, shorten
from phaseguard.align.plan import pad_edits
from phaseguard.align.prompt import FieldKey
from phaseguard.align.report import Repetition
from phaseguard.align.solve import Solution, solve_draft
from phaseguard.errors import InputError, RenderError
from phaseguard.text import OffsetMap, Span


@dataclass(frozen=True, slots=True)
class Repeated:
    """A draft with its solution, and what became of each passage that was to be repeated.

    Attributes:
        draft: the draft, with the copies in it; ``solution``: its pads.
        reports: one for each distinct passage; ``tokens``: what the copies add.
    """

    draft: Draft
    solution: Solution
    reports: tuple[Repetition, ...] = ()
    tokens: int = 0


def solve_with_copies(draft: Draft) -> Repeated:
    """Solve a draft; where copies are asked for, put in those that fit, and solve it with them.

    A passage is repeated when no place of it lies in the window as a whole, the copies and pads counted.
    Copies stand in the order of the prompt. Each round leaves out what does not fit, the first ones of
    several, or adds what the copies have pushed out of the window.

    Raises:
        InputError: when a passage that the caller names does not fit into the window; one that the question
            found is left out.
    """
    solution = solve_draft(draft)
    home = draft.home
    if not draft.setting.repeat:
        return Repeated(draft, solution)
    copied = _copied(draft)
    outcomes: dict[str, str] = {}
    new, found = draft, solution
    while True:
        places, seen = _by_text(new), _Seen(new, found)  # copies may change what the question points at
        outcomes = dict.fromkeys(places, "in-window") | outcomes
        missing = [
            text
            for text, here in places.items()
            if outcomes[text] == "in-window" and text not in copied and not seen.any_inside(here)
        ]
        if outside := _copies_outside(seen, outcomes):
            outcomes |= dict.fromkeys(outside, "does-not-fit")
        elif missing:
            _join(draft, home, outcomes, missing)
        else:
            _refuse(draft, outcomes)
            shown = {text: end for text, end in outcomes.items() if text in places or end == "repeated"}
            return Repeated(new, found, _reports(home, shown), new.base.tokens - draft.base.tokens)
        inserts = [] if home is None else _inserts(draft, home, outcomes)
        new = draft if home is None or not inserts else draft.with_copies(home, inserts)
        found = solution if new is draft else solve_draft(new)


def copies_stay(done: Repeated, solution: Solution) -> bool:
    """Whether every passage that has a place in the window keeps one under other pads."""
    seen, places = _Seen(done.draft, solution), _by_text(done.draft)
    kept = [one.text for one in done.reports if one.outcome in ("repeated", "in-window")]
    return all(seen.copy_inside(text) or seen.any_inside(places.get(text, ())) for text in kept)


def _join(draft: Draft, home: Home | None, outcomes: dict[str, str], missing: Sequence[str]) -> None:
    """Mark as repeated what has a place: one copy may give another its place, so the refused try again."""
    waiting = [*missing, *(text for text, outcome in outcomes.items() if outcome == "no-place")]
    while waiting:
        left: list[str] = []
        for text in waiting:
            outcomes[text] = "repeated"
            if home is None or not _stays(draft, home, outcomes):
                outcomes[text] = "no-place"
                left.append(text)
        if len(left) == len(waiting):
            return
        waiting = left


def _refuse(draft: Draft, outcomes: Mapping[str, str]) -> None:
    wide = [text for text, outcome in outcomes.items() if outcome == "does-not-fit"]
    if wide and draft.wanted.key_passages is not None:
        raise InputError(
            f"repeat=True: {shorten(wide[0])!r} does not fit in front of the question into the last "
            f"{draft.setting.profile.window} tokens, which the model reads raw ({len(wide)} of "
            f"{len(outcomes)} key passages do not). Give fewer or shorter ones, or a shorter last paragraph."
        )


def _copied(draft: Draft) -> set[str]:
    """Texts of the copies that stand in a draft."""
    return {span.of(draft.home.source.text) for span in draft.copies} if draft.home else set()


def _by_text(draft: Draft) -> dict[str, list[Passage]]:
    """The places of each distinct passage, in the order of the prompt."""
    places: dict[str, list[Passage]] = {}
    for passage in draft.passages:
        places.setdefault(passage.span.of(draft.texts[passage.key]), []).append(passage)
    return places


def _inserts(draft: Draft, home: Home, outcomes: Mapping[str, str]) -> list[Insert]:
    """The new copies, each in front of the standing ones that follow it in the order of the prompt."""
    rank = {text: number for number, text in enumerate(outcomes)}
    standing = [(rank.get(span.of(home.source.text), -1), span.start) for span in draft.copies]
    return [
        Insert(next((start for other, start in standing if other > rank[text]), home.at), text)
        for text, outcome in outcomes.items()
        if outcome == "repeated"
    ]


def _stays(draft: Draft, home: Home, outcomes: Mapping[str, str]) -> bool:
    inserts = _inserts(draft, home, outcomes)
    return would_stay(draft.prompt, draft.sources, home, inserts, _copied(draft))


def _copies_outside(seen: _Seen, outcomes: Mapping[str, str]) -> list[str]:
    """The new copies that do not lie in the window."""
    new = [text for text, outcome in outcomes.items() if outcome == "repeated"]
    return [text for text in new if not seen.copy_inside(text)]


@dataclass(frozen=True)
class _Seen:
    """A solved draft, looked at for what stands among the last tokens of the request, the pads counted."""

    draft: Draft
    solution: Solution

    @cached_property
    def _moved(self) -> dict[FieldKey, OffsetMap]:
        edits = pad_edits(self.solution.planned, self.draft.texts)
        return {key: OffsetMap(found) for key, found in edits.items()}

    def any_inside(self, places: Sequence[Passage]) -> bool:
        return any(self.inside(place.key, place.span) for place in places)

    def copy_inside(self, text: str) -> bool:
        """Whether a copy of this text lies there."""
        home = self.draft.home
        return home is not None and any(
            span.of(home.source.text) == text and self.inside(home.source.field.key, span)
            for span in self.draft.copies
        )

    def inside(self, key: FieldKey, span: Span) -> bool:
        """Whether characters of a text lie in the window as a whole: all behind the first does."""
        request, window = self.solution.padded, self.draft.setting.profile.window
        if request is None or window is None:
            return False
        start = self._moved[key].forward(span.start) if key in self._moved else span.start
        try:
            at = request.rendered.locate(key.message, start, key.block_or_none)
        except RenderError:
            return False
        known = request.rendered.known_until
        if known is not None and at < known:
            return False  # nobody knows how many tokens the image behind it takes
        return request.offset + request.token_range(Span(at, at + 1))[0] >= request.tokens - window


def _reports(home: Home | None, outcomes: Mapping[str, str]) -> tuple[Repetition, ...]:
    return tuple(
        Repetition(text, outcome, home.source.field.key.message, home.source.field.key.block_or_none)
        if home and outcome == "repeated"
        else Repetition(text, outcome, None, None)
        for text, outcome in outcomes.items()
    )
