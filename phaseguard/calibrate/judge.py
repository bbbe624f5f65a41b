"""The verdict: is there an effect of phase, at which period, which phases are strong?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from phaseguard.calibrate.observations import Observations
from phaseguard.stats import Accuracy, PeriodScan, clustered, compare_phases, scan_periods
from phaseguard.stats.period import PERIODS

Verdict = Literal["effect", "no effect", "undecided"]
Anchor = Literal["answer", "key", "unknown"]
Statistic = Literal["accuracy", "margin"]


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
        p_value: of the hypothesis that no period matters, corrected for all periods (and anchors) tried.
        scan: the candidate periods.
        anchor: whether accuracy goes with the phase of the answer or of the key; "unknown" where the data
            cannot tell.
        excluded: gaps of this many points or more are excluded at every period tried; None where some phase
            was never asked.
        statistic: "margin" where the test used log-probability margins, else "accuracy".
        level: significance that this look could spend.
        done: whether asking more would not change the verdict under this plan.
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

    Args:
        observations: answers of a paired design.
        periods: candidates.
        alpha: chance of a false alarm, over all periods and all looks.
        smallest: gap in points that would be worth finding; "no effect" excludes it.
        looks: planned numbers of items, ascending, at which the data are judged; empty for one look.
        look: number of this look, from 0; None for the last.
        seed: of the permutations.
    """
    del looks, look, smallest
    data = (observations.right, observations.positions, observations.items)
    scan = scan_periods(*data, periods=periods, alpha=alpha, seed=seed)
    whole = clustered(observations.right, observations.items)
    if scan.period is None:
        return Judgement(
            "undecided",
            None,
            (whole,),
            (),
            0.0,
            0.0,
            0.0,
            scan.p_value,
            scan,
            "unknown",
            None,
            "accuracy",
            alpha,
            True,
            "No period matters so far.",
        )
    found = compare_phases(*data, scan.period)
    return Judgement(
        "effect",
        scan.period,
        found.phases,
        found.strong,
        found.gap,
        found.gap_low,
        found.gap_high,
        scan.p_value,
        scan,
        "unknown",
        None,
        "accuracy",
        alpha,
        True,
        f"Accuracy has period {scan.period}.",
    )
