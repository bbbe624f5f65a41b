"""What a calibration found, and the profile that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phaseguard.calibrate.check import Check
from phaseguard.calibrate.items import Probe
from phaseguard.calibrate.judge import Judgement
from phaseguard.calibrate.plan import Plan
from phaseguard.calibrate.record import Answered, Results, observed
from phaseguard.ensemble import Prices
from phaseguard.profiles import PhaseProfile, Provenance, ShapeStrength
from phaseguard.stats import Accuracy, clustered_by, compare_paired

DEPTHS = 8
_THREE_AND_MORE = 3


@dataclass(frozen=True, slots=True)
class Spent:
    """What the run took, answers of earlier parts of it included.

    Attributes:
        calls: answers; ``resumed``: of these, how many an earlier part had brought.
        prompt_tokens, cached_tokens, answer_tokens: as the endpoint counts them, else as predicted.
        cost: dollars, None without prices; cached tokens are taken at the full price.
        seconds: mean time of a call.
    """

    calls: int
    resumed: int
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    cost: float | None
    seconds: float

    @classmethod
    def of(cls, results: Results, prices: Prices | None) -> Spent:
        """Add up all answers."""
        answers = results.answers.values()
        prompt = sum(a.tokens if a.prompt_tokens is None else a.prompt_tokens for a in answers)
        said = sum(a.completion_tokens or 0 for a in answers)
        return cls(
            len(answers),
            results.resumed,
            prompt,
            sum(a.cached_tokens or 0 for a in answers),
            said,
            None if prices is None else prices.cost(prompt, said),
            sum(a.seconds for a in answers) / max(1, len(answers)),
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found.

    Attributes:
        judgement: the verdict and its figures, over all shifts.
        strengths: by tokens of the answer ("1", "2", "3" and more), accuracy at each phase of the answer with
            the pads that aligning adds, fewer than a period; empty without an effect.
        strong: phases of the answer that hold the best one, by the same answers; empty without an effect.
        controls: verdicts of the probes that should show nothing (``inside`` the raw window, pads ``behind``
            the record) and of ``filler``, decoration in place of pads, which should show the same.
        depths: accuracy by how deep the record stands, from start to end.
        profile: what follows; None while undecided. ``path``: where it was saved, or None.
        check: what the check calls told; ``plan``: what was planned; ``spent``: what it took.
        endpoint: model, provider and reasoning mode.
        notes: what the reader should know.
    """

    judgement: Judgement
    strengths: Mapping[str, tuple[Accuracy, ...]]
    strong: tuple[int, ...]
    controls: Mapping[Probe, Judgement]
    depths: tuple[Accuracy, ...]
    profile: PhaseProfile | None
    path: Path | None
    check: Check
    plan: Plan
    spent: Spent
    endpoint: Mapping[str, str | None]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every figure as plain values, ready for ``json.dumps``."""
        return {
            "endpoint": dict(self.endpoint),
            "judgement": judgement_dict(self.judgement),
            "strengths": {shape: [a.to_dict() for a in row] for shape, row in self.strengths.items()},
            "strong": list(self.strong),
            "controls": {probe: judgement_dict(found) for probe, found in self.controls.items()},
            "depths": [depth.to_dict() for depth in self.depths],
            "profile": self.profile.model_dump(by_alias=True, mode="json") if self.profile else None,
            "path": None if self.path is None else str(self.path),
            "check": asdict(self.check),
            "plan": asdict(self.plan) | {"sees": {str(k): _finite(v) for k, v in self.plan.sees.items()}},
            "spent": asdict(self.spent),
            "notes": list(self.notes),
        }


def judgement_dict(found: Judgement) -> dict[str, Any]:
    """A verdict as plain values."""
    made = asdict(found)
    made["phases"] = [phase.to_dict() for phase in found.phases]
    return made


def _finite(value: float) -> float | None:
    return None if np.isinf(value) else round(value, 2)


def strengths_by_shape(answers: Sequence[Answered], period: int) -> dict[str, tuple[Accuracy, ...]]:
    """Accuracy at each phase of the answer, by its number of tokens, with fewer than a period of pads.

    More pads than aligning adds would thin what stands before the record, and flatter the later phases. A
    shape of which some phase was never asked is left out.
    """
    chosen = [answer for answer in answers if answer.shift < period]
    found: dict[str, tuple[Accuracy, ...]] = {}
    for shape in sorted({min(answer.shape, _THREE_AND_MORE) for answer in chosen}):
        here = observed(tuple(a for a in chosen if min(a.shape, _THREE_AND_MORE) == shape))
        phases = clustered_by(here.right, here.items, here.positions % period, period)
        if all(phase.n for phase in phases):
            found[str(shape)] = phases
    return found


def strong_phases(answers: Sequence[Answered], period: int) -> tuple[int, ...]:
    """Phases of the answer that hold the best one, of all shapes, with fewer than a period of pads.

    By right and wrong answers alone: aligning is after these, and mean margins rank phases otherwise.
    """
    seen = observed(tuple(answer for answer in answers if answer.shift < period))
    return compare_paired(seen.right, seen.positions, seen.items, period).strong


def depths_of(answers: Sequence[Answered], depths: int = DEPTHS) -> tuple[Accuracy, ...]:
    """Accuracy in equal slices of the request, from its start to its end."""
    seen = observed(tuple(answers))
    shares = np.array([answer.position / max(1, answer.tokens) for answer in answers])
    slices = np.minimum((shares * depths).astype(np.int64), depths - 1)
    return clustered_by(seen.right, seen.items, slices, depths)


def measured_profile(
    base: PhaseProfile,
    judgement: Judgement,
    strengths: Mapping[str, Sequence[Accuracy]],
    *,
    name: str,
    endpoint: Mapping[str, str | None],
    items: int,
    date: str,
    command: str | None,
) -> PhaseProfile | None:
    """The profile that a verdict allows; None while undecided.

    Args:
        base: how requests are read, with the ``prefix_offset`` that was measured.
        judgement: the verdict.
        strengths: accuracy by shape and phase.
        name: of the new profile.
        endpoint: ``model`` and ``provider`` that answered.
        items: texts that were asked.
        date: ISO date of the last answer.
        command: that repeats it, or None.
    """
    if judgement.verdict == "undecided" or judgement.period is None:
        return None
    provider = endpoint["provider"]
    verdict = f"period {judgement.period}" if judgement.period > 1 else "no effect"
    source = (
        f"{endpoint['model']} at {provider}, reasoning {base.reasoning}: {verdict}, "
        f"p = {judgement.p_value:.2g}, {items} texts"
    )
    made = {shape: _strength(row) for shape, row in strengths.items()} if judgement.period > 1 else None
    return base.with_(
        name=name,
        model=base.model or endpoint["model"],
        provider=provider,
        strides=base.strides or ((judgement.period,) if judgement.period > 1 else ()),
        period=judgement.period,
        strengths=made or None,
        reported=None,
        provenance=Provenance(kind="measured", source=source, date=date, command=command),
    )


def _strength(row: Sequence[Accuracy]) -> ShapeStrength:
    return ShapeStrength(
        mean=tuple(round(a.mean, 4) for a in row),
        low=tuple(min(round(a.low, 4), round(a.mean, 4)) for a in row),
        high=tuple(max(round(a.high, 4), round(a.mean, 4)) for a in row),
        n=min(a.n for a in row),
    )
