"""Layouts of one prompt: the same content, with pads that put the answer spans at different phases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from phaseguard.align.draft import Draft
from phaseguard.align.evidence import Evidence
from phaseguard.align.keys import Wanted
from phaseguard.align.passages import Given
from phaseguard.align.prompt import Prompt
from phaseguard.align.repeat import solve_with_copies
from phaseguard.align.report import AlignedPrompt
from phaseguard.align.request import Request
from phaseguard.align.setting import Setting
from phaseguard.align.solve import Solution
from phaseguard.ensemble.shifts import Shifter
from phaseguard.errors import InputError
from phaseguard.normalize import Level
from phaseguard.profiles import PhaseProfile
from phaseguard.tokens import TokenizerLike

_LEAST_STRENGTH = 1e-4  # a weight has to be above 0


@dataclass(frozen=True, slots=True)
class Layout:
    """One rendering of a prompt.

    Attributes:
        number: its place in order of strength, 0 for the strongest.
        aligned: the prompt with its report and proof.
        shift: tokens, mod the period, by which the answer spans stand behind where layout 0 has them.
        phase: phase of the heaviest answer span that moves, or of the heaviest where none does; None without
            answer spans.
        strength: probability that the answer spans are retrieved, their geometric mean by weight; None
            without strengths.
        tokens: of the whole request; None for a model without phases, where nothing is encoded.
    """

    number: int
    aligned: AlignedPrompt
    shift: int
    phase: int | None
    strength: float | None
    tokens: int | None

    @property
    def prompt(self) -> Any:
        """The prompt to send, of the type that was given."""
        return self.aligned.prompt

    def restore(self) -> Any:
        """The prompt as it was given."""
        return self.aligned.restore()


@dataclass(frozen=True, slots=True)
class LayoutSet:
    """Layouts of one prompt, the strongest first.

    Attributes:
        layouts: at least one; every answer span that moves stands at each phase at most once.
        period: tokens after which phases repeat.
        strong: phases that count as strong for the span that ``Layout.phase`` speaks of; empty when none is
            known.
        shared: tokens at the start of the request that all layouts have in common: what a prompt cache can
            keep. None for a model without phases.
    """

    layouts: tuple[Layout, ...]
    period: int
    strong: frozenset[int]
    shared: int | None

    def __len__(self) -> int:
        return len(self.layouts)


def make_layouts(
    prompt: Any,
    *,
    key_passages: Given | Sequence[Given] | None = None,
    query: str | None = None,
    profile: str | PhaseProfile | Any = "deepseek-v4-flash",
    most: int = 4,
    strong: Iterable[int] | None = None,
    answer: str | Sequence[str] | None = None,
    frozen: int = 0,
    level: Level = "safe",
    pads: str | Sequence[str] = "auto",
    isolate: bool | Literal["auto"] = "auto",
    repeat: bool = False,
    tokenizer: TokenizerLike | None = None,
) -> LayoutSet:
    r"""Lay a prompt out so that its answer spans stand at different phases.

    The first layout is what :func:`phaseguard.align_prompt` gives; without strengths its answers are
    isolated, and nothing is claimed of the order. Each further one has another pad at one place, the last
    site in front of the first answer span that can be moved, so that everything behind it stands 1, 2, ...
    ``period - 1`` tokens on; the strongest come first. Without key passages everything behind the first site
    of the prompt is shifted. Fewer layouts come back where no pad can stand.

    Arguments are those of :func:`phaseguard.align_prompt`; ``most`` is the largest number of layouts. There
    are never more than the profile's period. With ``repeat`` every layout holds the same copies of the key
    passages in the raw window; a shift that would push one out of it is left out.

    Raises:
        InputError: for an argument or prompt that cannot be used.
        PassageNotFoundError: when a key passage or answer does not occur.
        ProfileError, TokenizerError, RenderError: as in :func:`phaseguard.align_prompt`.

    >>> text = "The door code is A-17.\n\nThe vault code is B-8417.\n\nWhich is the vault code?"
    >>> made = make_layouts(text, key_passages=["B-8417"], strong={2, 3})
    >>> [layout.phase for layout in made.layouts][:2], all(one.restore() == text for one in made.layouts)
    ([2, 3], True)
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InputError(f"layouts={most!r}: give the largest number of layouts, from 1.")
    setting = Setting.read(
        profile, strong=strong, pads=pads, level=level, isolate=isolate, repeat=repeat, tokenizer=tokenizer
    )
    wanted = Wanted.read(key_passages, query, answer, None)
    draft = Draft.make(Prompt.read(prompt, frozen=frozen), setting, wanted)
    shifter = Shifter.of(solve_with_copies(draft))
    every = range(len(shifter.solution.keys))
    moved = [n for n in every if shifter.moves(n)] or every  # what cannot be moved has a phase all the same
    layouts: list[Layout] = []
    requests: list[Request] = []
    for shift in _by_strength(shifter, moved):
        solution = shifter.shifted(shift) if len(layouts) < most else None
        if solution is not None:
            layouts.append(_layout(len(layouts), shifter, solution, shift, moved))
            requests += [solution.padded] if solution.padded else []
    lead = _lead(shifter, moved)
    strong_phases = _strong(setting.evidence, 1 if lead is None else shifter.solution.keys[lead].tokens)
    return LayoutSet(tuple(layouts), setting.evidence.period, strong_phases, _shared(requests))


def _by_strength(shifter: Shifter, moved: Sequence[int]) -> list[int]:
    """Shifts by the value of the phases that they lead to; as solved comes first, and the rest by length."""
    evidence = shifter.draft.setting.evidence
    if not shifter.sites:
        return [0]
    values = [0] * evidence.period
    for number in moved if evidence.usable else ():
        key = shifter.solution.keys[number]
        here = evidence.values(key.tokens, key.answer.weight)
        for shift in range(evidence.period):
            values[shift] += here[(shifter.phase(number) + shift) % evidence.period]
    return [0, *sorted(range(1, evidence.period), key=lambda shift: (-values[shift], shift))]


def _layout(number: int, shifter: Shifter, solution: Solution, shift: int, moved: Sequence[int]) -> Layout:
    evidence = shifter.draft.setting.evidence
    lead = _lead(shifter, moved)
    phase = None if lead is None else (shifter.phase(lead) + shift) % evidence.period
    tokens = None if solution.padded is None else solution.padded.tokens
    strength = _strength(shifter, shift, moved)
    return Layout(number, shifter.finish(solution), shift, phase, strength, tokens)


def _lead(shifter: Shifter, moved: Sequence[int]) -> int | None:
    """The heaviest answer span that moves; of several the first."""
    return max(moved, key=lambda n: (shifter.solution.keys[n].answer.weight, -n), default=None)


def _strength(shifter: Shifter, shift: int, moved: Sequence[int]) -> float | None:
    evidence = shifter.draft.setting.evidence
    logs, weights = 0.0, 0.0
    for number in moved:
        key = shifter.solution.keys[number]
        phase = (shifter.phase(number) + shift) % evidence.period
        strength = evidence.strength(key.tokens, phase)
        if strength is None:
            return None
        logs += key.answer.weight * math.log(max(strength, _LEAST_STRENGTH))
        weights += key.answer.weight
    return math.exp(logs / weights) if weights else None


def _strong(evidence: Evidence, tokens: int) -> frozenset[int]:
    return frozenset(phase for phase in range(evidence.period) if evidence.is_strong(tokens, phase))


def _shared(requests: Sequence[Request]) -> int | None:
    """Leading tokens that all requests have."""
    if not requests:
        return None
    first = requests[0].encoding.ids
    same = len(first)
    for request in requests[1:]:
        ids = request.encoding.ids[:same]
        different = np.flatnonzero(first[: len(ids)] != ids)
        same = int(different[0]) if len(different) else len(ids)
    return requests[0].offset + same
