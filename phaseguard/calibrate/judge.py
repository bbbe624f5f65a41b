"""The verdict: is there an effect of phase, at which period, which phases are strong?

One function for the endpoint and for its negative controls. False alarms stay below alpha over all periods,
both anchors and all looks: randomization p-values (:mod:`phaseguard.stats.labelled`) against shares of alpha
(:mod:`phaseguard.calibrate.sequential`). "No effect" is a claim of its own, made only when the upper
confidence limit of the gap is below what would be worth finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaseguard.calibrate.observations import Observations
from phaseguard.calibrate.sequential import spending
from phaseguard.errors import InputError
from phaseguard.stats import (
    Accuracy,
    LabelledScan,
    PeriodScan,
    clustered,
    compare_paired,
    largest_gap,
    scan_labelled,
)
from phaseguard.stats.period import PERIODS

Verdict = Literal["effect", "no effect", "undecided"]
Anchor = Literal["answer", "key", "unknown"]
Statistic = Literal["accuracy", "margin"]
SURE = math.log(19)  # log evidence by which one anchor must lead: odds of 95 to 5
_PERMUTATIONS = (999, 19_999)  # fewest and most: a level of 1 / 20,000 is the smallest that can be reached
_OUTLIER = 4.0  # robust standard deviations at which a margin's distance from its item's median is cut


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what it rests on.

    Attributes:
        verdict: "effect"; "no effect", with what is excluded; or "undecided", for too few data.
        period: the smallest period that explains an effect; 1 without effect; None while undecided.
        phases: accuracy at each phase of the period (of the key where ``anchor`` is "key", else of the
            answer), with intervals clustered by item; without an effect one, over all answers.
        strong: phases that hold the best one with simultaneous confidence; empty without an effect.
        gap, gap_low, gap_high: largest difference between phases in points, with interval; 0 without effect.
        p_value: of the hypothesis that no period matters, corrected for all periods and both anchors; to be
            compared with ``level``.
        scan: the candidate periods, under the anchor with more evidence.
        anchor: whether accuracy goes with the phase of the answer or of the key; "unknown" where the data
            cannot tell.
        excluded: larger gaps, in points, are excluded at every period tried, at this look's level; None
            where some phase of some period was never asked.
        statistic: "margin" where the test used log-probability margins, else "accuracy".
        level: significance that this look could spend.
        done: whether the plan ends here: the verdict is clear, or this was the last look.
        reason: one sentence.
    """

    verdict: Verdict
    period: int | None
    phases: tuple[Accuracy, ...]
    strong: tuple[int, ...]
    gap: float
    gap_low: float
    gap_high: float
    p_value: float
    scan: PeriodScan
    anchor: Anchor
    excluded: float | None
    statistic: Statistic
    level: float
    done: bool
    reason: str


def judge(
    observations: Observations,
    *,
    periods: Iterable[int] = PERIODS,
    alpha: float = 0.05,
    smallest: float = 20.0,
    looks: Sequence[int] = (),
    look: int | None = None,
    seed: int = 0,
) -> Judgement:
    """Judge the answers seen so far.

    Whether margins are used is settled by their being there, never by what they show.

    Args:
        observations: answers of a paired design; at least one.
        periods: candidates, each at least 2.
        alpha: chance of a false alarm, over all periods and all looks.
        smallest: gap in points that would be worth finding; "no effect" excludes it.
        looks: planned numbers of items, ascending, at which the data are judged; empty for one look.
        look: which of them this is, from 0; None for the last.
        seed: of the relabellings.

    Raises:
        InputError: for no answers, impossible periods, or a look that is not planned.

    >>> rng = np.random.default_rng(0)
    >>> keys = (rng.integers(0, 5000, 60)[:, None] + np.arange(16)).ravel()
    >>> positions, items = keys + np.repeat(rng.integers(2, 9, 60), 16), np.repeat(np.arange(60), 16)
    >>> right = rng.random(960) < np.where(positions % 4 == 3, 0.9, 0.6)
    >>> found = judge(Observations(right, positions, keys, items))
    >>> found.verdict, found.period, found.strong, found.anchor
    ('effect', 4, (3,), 'answer')
    """
    level, last = _level(looks, look, alpha)
    candidates = tuple(sorted(set(periods)))
    scores, statistic = _scores(observations)
    found = scan_labelled(
        scores,
        {"answer": observations.positions, "key": observations.keys},
        observations.items,
        periods=candidates,
        permutations=min(max(_PERMUTATIONS[0], math.ceil(2 / level)), _PERMUTATIONS[1]),
        alpha=level,
        seed=seed,
    )
    excluded = largest_gap(
        observations.right,
        [observations.positions, observations.keys],
        observations.items,
        candidates,
        level,
    )
    common = _Common(found.scan, excluded, statistic, level)
    if found.scan.period is None:
        return _without_effect(observations, common, smallest, last)
    return _effect(observations, common, found, None if statistic == "accuracy" else scores)


@dataclass(frozen=True, slots=True)
class _Common:
    """What every verdict tells."""

    scan: PeriodScan
    excluded: float | None
    statistic: Statistic
    level: float


def _level(looks: Sequence[int], look: int | None, alpha: float) -> tuple[float, bool]:
    """Level of this look, and whether it is the last."""
    levels = spending(looks or (1,), alpha)
    at = len(levels) - 1 if look is None else look
    if not 0 <= at < len(levels):
        raise InputError(f"look is {look} of {len(levels)}: count the planned looks from 0.")
    return levels[at], at == len(levels) - 1


def _scores(observations: Observations) -> tuple[NDArray[np.bool_] | NDArray[np.float64], Statistic]:
    """What the test compares: margins without their outliers, which one answer in a thousand would rule."""
    if observations.margins is None or not len(observations):
        return observations.right, "accuracy"
    _, members = np.unique(observations.items, return_inverse=True)
    order = np.lexsort((observations.margins, members))
    sizes = np.bincount(members)
    first = np.cumsum(sizes) - sizes
    ordered = observations.margins[order]
    median = (ordered[first + (sizes - 1) // 2] + ordered[first + sizes // 2]) / 2
    away = observations.margins - median[members]
    reach = _OUTLIER * 1.4826 * float(np.median(np.abs(away)))
    return (np.clip(away, -reach, reach) if reach > 0 else away) + median[members], "margin"


def _without_effect(observations: Observations, common: _Common, smallest: float, last: bool) -> Judgement:
    sure = common.excluded is not None and common.excluded < smallest
    return Judgement(
        verdict="no effect" if sure else "undecided",
        period=1 if sure else None,
        phases=(clustered(observations.right, observations.items),),
        strong=(),
        gap=0.0,
        gap_low=0.0,
        gap_high=0.0,
        p_value=common.scan.p_value,
        scan=common.scan,
        anchor="unknown",
        excluded=common.excluded,
        statistic=common.statistic,
        level=common.level,
        done=sure or last,
        reason=_reason_without(common, smallest, sure),
    )


def _reason_without(common: _Common, smallest: float, sure: bool) -> str:
    first, last = common.scan.tests[0].period, common.scan.tests[-1].period
    tried = f"no period from {first} to {last} matters" if last > first else f"period {first} does not matter"
    start = f"By {common.statistic}, {tried} (p = {common.scan.p_value:.3g}, level {common.level:.3g})"
    if common.excluded is None:
        return f"{start}, but some phases were never asked."
    if sure:
        return f"{start}; gaps above {common.excluded:.1f} points are excluded."
    return (
        f"{start}, but a gap of up to {common.excluded:.1f} points is possible, not only below {smallest:g}."
    )


def _effect(
    observations: Observations, common: _Common, found: LabelledScan, margins: NDArray[np.generic] | None
) -> Judgement:
    period = common.scan.period or 1
    anchor: Anchor = "unknown" if found.lead < SURE else "key" if found.label == "key" else "answer"
    index = observations.keys if anchor == "key" else observations.positions
    compared = compare_paired(observations.right, index, observations.items, period, margins=margins)
    whose = {"unknown": "the token index", "answer": "the answer's index", "key": "the key's index"}[anchor]
    return Judgement(
        verdict="effect",
        period=period,
        phases=compared.phases,
        strong=compared.strong,
        gap=compared.gap,
        gap_low=compared.gap_low,
        gap_high=compared.gap_high,
        p_value=common.scan.p_value,
        scan=common.scan,
        anchor=anchor,
        excluded=common.excluded,
        statistic=common.statistic,
        level=common.level,
        done=True,
        reason=(
            f"By {common.statistic}, period {period} of {whose} matters (p = {common.scan.p_value:.3g}, "
            f"level {common.level:.3g}); best and worst phase differ by {compared.gap:.1f} points."
        ),
    )
