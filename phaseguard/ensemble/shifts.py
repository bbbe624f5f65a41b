"""Shifting what was solved: another pad at one place moves every answer span behind it to another phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from phaseguard.align.draft import Draft
from phaseguard.align.finish import finish
from phaseguard.align.layout import Stretch, find_gaps, opening, places_in
from phaseguard.align.menus import Choice, Place, measure
from phaseguard.align.plan import SITES_A_GAP, PlannedPad
from phaseguard.align.repeat import Repeated, copies_stay
from phaseguard.align.report import AlignedPrompt
from phaseguard.align.solve import Solution, proven, stretches_of
from phaseguard.text import Span

Site = tuple[Place, tuple[Choice, ...]]


@dataclass(frozen=True, slots=True)
class Shifter:
    """A solved prompt, and where a pad moves what stands behind it.

    Attributes:
        done: the normalized prompt with its copies, and what aligning found.
        sites: the places whose pads may change, in the order in which they are tried, each with what can be
            done there; they stand in front of the same answer spans. None where nothing can be moved.
    """

    done: Repeated
    sites: tuple[Site, ...]

    @classmethod
    def of(cls, done: Repeated) -> Shifter:
        """Find the last sites in front of the first answer span that has any; without spans, the first."""
        draft = done.draft
        period = draft.setting.evidence.period
        if period < 2:
            return cls(done, ())
        stretches = stretches_of(draft)
        gaps = _gaps(draft, stretches) if done.solution.keys else _all_sites(draft, stretches)
        for gap in gaps:
            sites = _measured(draft, list(islice(gap, SITES_A_GAP)))
            if sites:
                return cls(done, sites)
        return cls(done, ())

    @property
    def draft(self) -> Draft:
        """The normalized prompt."""
        return self.done.draft

    @property
    def solution(self) -> Solution:
        """What aligning found."""
        return self.done.solution

    def moves(self, key: int) -> bool:
        """Whether the answer span with this number stands behind the sites."""
        spans = [place.request for place, _ in self.sites]
        return bool(spans) and max(span.end for span in spans) <= self.solution.keys[key].request.start

    def phase(self, key: int) -> int:
        """Phase of an answer span as it was solved."""
        padded = self.solution.padded or self.draft.base
        index = padded.offset + padded.token_range(self.solution.moved[key])[0]
        return index % self.draft.setting.evidence.period

    def shifted(self, shift: int) -> Solution | None:
        """The solution in which everything behind the sites stands ``shift`` tokens on, mod the period.

        None when no pad does that, stands the proof, and leaves the copies in the raw window.
        """
        if shift == 0:
            return self.solution
        for planned in self._plans(shift):
            padded, proof = proven(self.draft, planned, self.solution.keys)
            if not proof.holds:
                continue
            found = Solution(planned, padded, self.solution.keys, proof.moved, verified=True)
            if copies_stay(self.done, found):
                return found
        return None

    def _plans(self, shift: int) -> Iterator[tuple[PlannedPad, ...]]:
        """Pads that shift by so much: at the first of the sites, then with the lowest price.

        Where answers are isolated a pad never gets shorter, if that can be had: it keeps strangers out.
        """
        period = self.draft.setting.evidence.period
        isolated = self.draft.setting.grid is not None
        ways: list[tuple[bool, int, int, tuple[PlannedPad, ...]]] = []
        for rank, (place, menu) in enumerate(self.sites):
            standing = sum(pad.choice.tokens for pad in self.solution.planned if pad.place == place)
            others = [pad for pad in self.solution.planned if pad.place != place]
            if (standing + shift) % period == 0:
                ways.append((isolated and standing > 0, rank, 0, tuple(others)))
            for choice in menu:
                if (choice.tokens - standing - shift) % period == 0:
                    pads = sorted([*others, PlannedPad(place, choice)], key=_in_text)
                    ways.append((isolated and choice.tokens < standing, rank, choice.price, tuple(pads)))
        ways.sort(key=lambda way: way[:3])
        return (way[3] for way in ways)

    def finish(self, solution: Solution) -> AlignedPrompt:
        """The prompt with the pads of a solution, and its report."""
        return finish(replace(self.done, solution=solution))


def _in_text(pad: PlannedPad) -> tuple[object, Span]:
    return pad.place.key, pad.place.content


def _gaps(draft: Draft, stretches: Sequence[Stretch]) -> Iterator[Iterator[Place]]:
    """The sites in front of the first answer span, the last first; then those in front of later ones."""
    first = next(number for number, stretch in enumerate(stretches) if stretch.keys)
    found = [
        list(find_gaps(stretch, draft.base, inside=False, more_behind=number < first))
        for number, stretch in enumerate(stretches)
    ]
    yield from found[first][:1]
    for ahead in reversed(found[:first]):
        yield from ahead
    yield from found[first][1:]
    for behind in found[first + 1 :]:
        yield from behind


def _all_sites(draft: Draft, stretches: Sequence[Stretch]) -> Iterator[Iterator[Place]]:
    """Every site by itself, in order."""
    for stretch in stretches:
        place = opening(stretch, draft.base)
        if place is not None:
            yield iter((place,))
        for site in reversed(list(places_in(stretch, None, Span(0, len(stretch.source.text))))):
            yield iter((site,))


def _measured(draft: Draft, places: Sequence[Place]) -> tuple[Site, ...]:
    setting = draft.setting
    most = setting.evidence.period if setting.grid is None else setting.grid.most_pads + 1
    known = [place for place in places if draft.base.known(place.request.start)]
    modulus = max(setting.evidence.period, most)
    menus = measure(draft.base, known, setting.alphabets, setting.tokenizer, modulus)
    return tuple((place, menu) for place, menu in zip(known, menus, strict=True) if menu)
