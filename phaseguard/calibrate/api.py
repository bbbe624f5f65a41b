"""``calibrate``: is there an effect of phase on this endpoint, at which period, which phases are strong?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phaseguard import __version__
from phaseguard.calibrate.check import Check
from phaseguard.calibrate.endpoint import Endpoint
from phaseguard.calibrate.items import Language, Probe
from phaseguard.calibrate.judge import Judgement
from phaseguard.calibrate.openai import reasoning_fields
from phaseguard.calibrate.outcome import (
    Calibration,
    Spent,
    depths_of,
    measured_profile,
    strengths_by_shape,
    strong_phases,
)
from phaseguard.calibrate.plan import NOT_CONFIRMED, Plan, make_plan
from phaseguard.calibrate.record import Results
from phaseguard.calibrate.runner import Progress, Run
from phaseguard.calibrate.settings import THINKING, answer_room
from phaseguard.calibrate.standard import StandardLanguage
from phaseguard.ensemble import Prices
from phaseguard.errors import InputError, ProfileError
from phaseguard.profiles import PhaseProfile, load_profile, save_profile
from phaseguard.profiles.store import profile_name, read_profile, user_folder
from phaseguard.stats.period import PERIODS

CONTROLS: tuple[Probe, ...] = ("inside", "behind", "filler")
_ASKING_ERRORS = (0.05, 0.95)  # accuracy outside of which phases can hardly differ


def calibrate(
    endpoint: Endpoint,
    profile: str | PhaseProfile | Any,
    *,
    language: Language | None = None,
    items: int | None = None,
    max_calls: int | None = None,
    budget: float | None = None,
    prices: Prices | None = None,
    periods: Iterable[int] = PERIODS,
    controls: bool = True,
    alpha: float = 0.05,
    smallest: float = 20.0,
    results: str | os.PathLike[str] | None = None,
    name: str | None = None,
    out: str | os.PathLike[str] | None = None,
    save: bool = True,
    max_tokens: int | None = None,
    concurrency: int = 8,
    seed: int = 0,
    confirm: Callable[[Plan], bool] | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Calibration:
    """Calibrate an endpoint: ask records at every shift, judge, and keep what was found as a profile.

    Args:
        endpoint: who is asked, such as :class:`~phaseguard.calibrate.OpenAIEndpoint`.
        profile: tokenizer, chat encoding, reasoning mode and raw window of its requests; what it says of
            phases is not used.
        language: what is asked; records among records in English by default.
        items: texts; each is asked at as many shifts as the largest period. 60 by default.
        max_calls: requests at most.
        budget: dollars at most; needs prices.
        prices: of the endpoint.
        periods: candidates, 2 to 16 by default.
        controls: whether probes that should show nothing are asked once an effect is found.
        alpha: chance of a false alarm, over all periods and all looks.
        smallest: gap in points that is worth finding; "no effect" excludes it.
        results: a file that keeps every answer; the same call goes on where it stopped. None keeps none.
        name: of the new profile; the given one's by default.
        out: where to save it; among the user's own profiles by default.
        save: whether to save it at all.
        max_tokens: most tokens of an answer; what an answer needs and a little by default.
        concurrency: of the endpoint, to tell the time.
        seed: of the order.
        confirm: asked before anything is spent; False stops.
        progress: told of every answer.
        command: that repeats this, for the profile.

    Returns:
        The verdict, its figures, and the profile that was saved, if any.

    Raises:
        EndpointError: when the endpoint cannot be asked or phases cannot be known; answers are kept.
        InputError: for arguments that cannot be used, a results file of another run, a plan not confirmed,
            or a name under which another provider, reasoning mode or chat encoding was measured.
        ProfileError: for a profile that is unknown or cannot be saved.

    >>> from phaseguard.calibrate import LabEndpoint, LabLanguage, lab_profile
    >>> found = calibrate(LabEndpoint("chunk4-s0"), lab_profile("chunk4-s0"), items=12, periods=range(2, 9),
    ...     language=LabLanguage.of("chunk4-s0"), controls=False, save=False)
    >>> found.judgement.verdict, found.judgement.period, found.profile.strength(1).mean[:3]
    ('effect', 4, (0.0, 1.0, 1.0))
    """
    base = load_profile(profile)
    spoken = language or StandardLanguage(base, completions=endpoint.completions)
    most = max_tokens or answer_room(spoken, base)
    plan = make_plan(
        prompt_tokens=spoken.tokens,
        answer_tokens=min(most, THINKING // 8),
        items=items,
        max_calls=max_calls,
        budget=budget,
        prices=prices,
        periods=periods,
        controls=controls,
        alpha=alpha,
        smallest=smallest,
        concurrency=concurrency,
    )
    if save and out is None:
        _refuse_another(profile_name(name or base.name), endpoint, base)
    if confirm is not None and not confirm(plan):
        raise InputError(NOT_CONFIRMED)
    extra = reasoning_fields(base.chat, base.reasoning)
    identity = _identity(endpoint, base, spoken, plan, most, seed)
    with Results(results, identity) as kept:
        run = Run(endpoint, spoken, base, plan, kept, extra, most, seed, progress)
        found = _run(run)
        made = _conclude(run, found, prices, name or base.name, command)
    return _saved(made, out) if save and made.profile is not None else made


@dataclass(frozen=True, slots=True)
class _Found:
    check: Check
    judgement: Judgement
    controls: dict[Probe, Judgement]


def _refuse_another(name: str, endpoint: Endpoint, base: PhaseProfile) -> None:
    """A measurement may replace an older one of the same, not one of something else."""
    path = user_folder() / f"{name}.json"
    try:
        known = read_profile(path)
    except ProfileError:
        return
    held = (known.provider, known.reasoning, known.chat)
    if known.provenance.kind == "measured" and held != (endpoint.provider, base.reasoning, base.chat):
        raise InputError(
            f"Profile {name} was measured at {known.provider}, reasoning {known.reasoning}, chat "
            f"{known.chat}, and would be replaced by one of {endpoint.provider}, {base.reasoning}, "
            f"{base.chat}: give another name."
        )


def _identity(
    endpoint: Endpoint, base: PhaseProfile, language: Language, plan: Plan, max_tokens: int, seed: int
) -> dict[str, Any]:
    """All that answers depend on: a results file belongs to one of these."""
    return {
        "phaseguard": __version__,
        "model": endpoint.model,
        "provider": endpoint.provider,
        "completions": endpoint.completions,
        "reasoning": base.reasoning,
        "tokenizer": base.tokenizer,
        "chat": base.chat,
        "language": {"name": language.name, **language.settings},
        "looks": plan.looks,
        "periods": plan.periods,
        "alpha": plan.alpha,
        "smallest": plan.smallest,
        "max_tokens": max_tokens,
        "seed": seed,
    }


def _run(run: Run) -> _Found:
    check = run.check()
    judgement = run.look(0)
    for number in range(1, len(run.plan.looks)):
        if judgement.done:
            break
        judgement = run.look(number)
    if judgement.verdict == "effect" and judgement.period:
        run.strengths(judgement.period)
    controls: dict[Probe, Judgement] = {}
    if judgement.verdict == "effect" and judgement.period and run.plan.control_items:
        for probe in CONTROLS:
            control = run.control(probe, judgement.period)
            if control is not None:
                controls[probe] = control
    return _Found(check, judgement, controls)


def _conclude(run: Run, found: _Found, prices: Prices | None, name: str, command: str | None) -> Calibration:
    answers = run.results.of("records")
    judgement, check = found.judgement, found.check
    period = judgement.period or 1
    strengths = strengths_by_shape(answers, period) if period > 1 else {}
    endpoint = {
        "model": run.endpoint.model,
        "provider": run.endpoint.provider,
        "reasoning": run.profile.reasoning,
    }
    items = len({answer.item for answer in answers})
    strong = strong_phases(answers, period) if strengths else ()
    profile = measured_profile(
        run.profile,
        judgement,
        strengths,
        name=profile_name(name),
        endpoint=endpoint,
        items=items,
        date=max(answer.at for answer in answers)[:10],
        command=command,
    )
    spent = Spent.of(run.results, prices)
    notes = (check.note, *_notes(run, found, strong))
    return Calibration(
        judgement=judgement,
        strengths=strengths,
        strong=strong,
        controls=found.controls,
        depths=depths_of(answers),
        profile=profile,
        path=None,
        check=check,
        plan=run.plan,
        spent=spent,
        endpoint=endpoint,
        notes=notes,
    )


def _notes(run: Run, found: _Found, strong: Sequence[int]) -> list[str]:
    answers, judgement = run.results.of("records"), found.judgement
    share = sum(answer.right for answer in answers) / len(answers)
    notes: list[str] = []
    if run.results.resumed == len(run.results.answers):
        notes.append(f"No call was made: all answers come from {run.results.path}.")
    if judgement.verdict != "effect" and not _ASKING_ERRORS[0] <= share <= _ASKING_ERRORS[1]:
        way = "longer" if share > _ASKING_ERRORS[1] else "shorter"
        notes.append(
            f"{share:.0%} of all answers are right: an effect has little room to show. Take a {way} context."
        )
    if judgement.verdict == "effect" and len(strong) == judgement.period:
        notes.append(
            f"By accuracy no phase is told from the best, so all {len(strong)} are called strong: ask more "
            "texts before aligning with this profile."
        )
    if run.missing:
        notes.append(f"{run.missing} prompts have no answer: calls failed, or no pad moved the record there.")
    if judgement.anchor == "key":
        notes.append(
            "Accuracy goes with the key's phase, and a profile keeps the answer's: it holds for records in "
            "which the answer stands as far behind its key as in these."
        )
    if judgement.verdict == "effect" and run.plan.control_items and not found.controls:
        notes.append(f"No control has answers: the calls are too few at period {judgement.period}.")
    for probe in ("inside", "behind"):
        control = found.controls.get(probe)
        if control is not None and control.verdict == "effect":
            notes.append(f"The control {probe!r} shows an effect too ({control.reason}): look at it first.")
    return notes


def _saved(made: Calibration, out: str | os.PathLike[str] | None) -> Calibration:
    assert made.profile is not None  # noqa: S101 - the caller looked
    try:
        path = save_profile(made.profile, out, overwrite=True)
    except ProfileError as error:
        raise ProfileError(f"{error} The answers are kept: the same call makes the profile again.") from error
    return replace(made, path=path)
