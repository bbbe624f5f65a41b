"""Does a measured profile still hold? A small sample at the shifts that aligning makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from phaseguard.calibrate.check import Check
from phaseguard.calibrate.endpoint import Endpoint
from phaseguard.calibrate.items import Language
from phaseguard.calibrate.judge import Judgement
from phaseguard.calibrate.openai import reasoning_fields
from phaseguard.calibrate.outcome import Spent, judgement_dict, strengths_by_shape, strong_phases
from phaseguard.calibrate.plan import NOT_CONFIRMED, Plan, make_plan
from phaseguard.calibrate.record import Results
from phaseguard.calibrate.runner import Progress, Run
from phaseguard.calibrate.settings import THINKING, answer_room
from phaseguard.ensemble import Prices
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile, load_profile
from phaseguard.stats import Accuracy

ITEMS = 20
_PERIODS_WITHOUT = (2, 4, 8)  # looked at where the profile says that there is no effect


@dataclass(frozen=True, slots=True)
class Revalidation:
    """Whether a profile still holds.

    Attributes:
        verdict: ``holds``; ``changed``, so calibrate again; or ``undecided``, for too few answers.
        reason: one sentence.
        profile: its name; ``date``: when it was measured.
        judgement: of the sample, for the profile's period alone.
        strengths: accuracy by tokens of the answer and phase.
        strong: phases of the answer that hold the best one.
        check: what the check calls told; ``spent``: what it took.
    """

    verdict: Literal["holds", "changed", "undecided"]
    reason: str
    profile: str
    date: str | None
    judgement: Judgement
    strengths: Mapping[str, tuple[Accuracy, ...]]
    strong: tuple[int, ...]
    check: Check
    spent: Spent

    def to_dict(self) -> dict[str, Any]:
        """Every figure as plain values."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "profile": self.profile,
            "date": self.date,
            "judgement": judgement_dict(self.judgement),
            "strengths": {shape: [a.to_dict() for a in row] for shape, row in self.strengths.items()},
            "strong": list(self.strong),
            "check": asdict(self.check),
            "spent": asdict(self.spent),
        }


def revalidate(
    endpoint: Endpoint,
    profile: str | PhaseProfile | Any,
    language: Language,
    *,
    items: int = ITEMS,
    results: str | os.PathLike[str] | None = None,
    prices: Prices | None = None,
    concurrency: int = 8,
    seed: int = 0,
    confirm: Callable[[Plan], bool] | None = None,
    progress: Progress | None = None,
) -> Revalidation:
    """Ask a small sample and compare it with a measured profile; nothing is saved.

    Args:
        endpoint: who is asked.
        profile: a measured profile.
        language: what is asked; take another seed than the calibration's.
        items: texts, each asked at every phase.
        results: a file that keeps answers, or None.
        prices: of the endpoint.
        concurrency: of the endpoint, to tell the time.
        seed: of the order.
        confirm: asked before anything is spent; False stops.
        progress: told of every answer.

    Raises:
        InputError: for a profile that was not measured, or a plan not confirmed.
        EndpointError: when the endpoint cannot be asked.

    >>> from phaseguard.calibrate import LabEndpoint, LabLanguage, calibrate, lab_profile
    >>> endpoint, language = LabEndpoint("chunk4-s0"), LabLanguage.of("chunk4-s0")
    >>> found = calibrate(endpoint, lab_profile("chunk4-s0"), language=language, items=12, save=False,
    ...     periods=range(2, 9), controls=False)
    >>> revalidate(endpoint, found.profile, LabLanguage.of("chunk4-s0", seed=1), items=12).verdict
    'holds'
    """
    known = load_profile(profile)
    if known.provenance.kind != "measured":
        raise InputError(
            f"Profile {known.name} was not measured: there is nothing to look at again. Calibrate."
        )
    periods = (known.period,) if known.period > 1 else _PERIODS_WITHOUT
    most = answer_room(language, known)
    plan = make_plan(
        prompt_tokens=language.tokens,
        answer_tokens=min(most, THINKING // 8),
        items=items,
        prices=prices,
        periods=periods,
        controls=False,
        concurrency=concurrency,
    )
    plan = replace(plan, looks=(plan.items,))
    if confirm is not None and not confirm(plan):
        raise InputError(NOT_CONFIRMED)
    with Results(results, _identity(endpoint, known, language, plan)) as kept:
        extra = reasoning_fields(known.chat, known.reasoning)
        run = Run(endpoint, language, known, plan, kept, extra, most, seed, progress)
        check, judgement = run.check(), run.look(0)
        answers = kept.of("records")
        strengths = strengths_by_shape(answers, known.period) if known.period > 1 else {}
        strong = strong_phases(answers, known.period) if known.period > 1 else ()
        verdict = _compare(known, judgement, strengths, strong, check)
        return Revalidation(
            verdict=verdict.word,
            reason=verdict.reason,
            profile=known.name,
            date=known.provenance.date,
            judgement=judgement,
            strengths=strengths,
            strong=strong,
            check=check,
            spent=Spent.of(kept, prices),
        )


@dataclass(frozen=True, slots=True)
class _Verdict:
    word: Literal["holds", "changed", "undecided"]
    reason: str


def _identity(endpoint: Endpoint, known: PhaseProfile, language: Language, plan: Plan) -> dict[str, Any]:
    return {
        "revalidate": known.model_dump(by_alias=True, mode="json"),
        "model": endpoint.model,
        "provider": endpoint.provider,
        "language": {"name": language.name, **language.settings},
        "items": plan.items,
        "periods": plan.periods,
    }


def _compare(
    known: PhaseProfile,
    judgement: Judgement,
    strengths: Mapping[str, tuple[Accuracy, ...]],
    strong: tuple[int, ...],
    check: Check,
) -> _Verdict:
    """The first sign of change, else what the sample confirms."""
    if check.unexplained:
        return _Verdict("changed", f"{check.note} So every phase has moved.")
    if known.period == 1:
        if judgement.verdict == "effect":
            return _Verdict("changed", f"The profile knows no effect, and there is one: {judgement.reason}")
        word: Literal["holds", "undecided"] = "holds" if judgement.verdict == "no effect" else "undecided"
        return _Verdict(word, f"No sign of an effect. {judgement.reason}")
    for shape, row in strengths.items():
        before = known.strength(int(shape))
        for phase, now in enumerate(row):
            if before is not None and (now.low > before.high[phase] or now.high < before.low[phase]):
                was = f"{before.low[phase]:.2f} to {before.high[phase]:.2f}"
                return _Verdict(
                    "changed",
                    f"Phase {phase}, answers of {shape} tokens: {now.low:.2f} to {now.high:.2f}, was {was}.",
                )
    best = {row.mean.index(max(row.mean)) for row in (known.strengths or {}).values()}
    if strong and not best & set(strong):
        return _Verdict(
            "changed", f"Phases {sorted(strong)} are best now; the profile prefers {sorted(best)}."
        )
    if judgement.verdict == "no effect":
        return _Verdict("changed", f"The effect is gone: {judgement.reason}")
    if judgement.verdict == "effect":
        return _Verdict("holds", f"{judgement.reason} No phase has changed.")
    return _Verdict("undecided", f"No phase has changed, but the effect is not confirmed: {judgement.reason}")
