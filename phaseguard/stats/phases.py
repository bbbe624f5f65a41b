"""Accuracy by phase: the gap between phases, and which phases are strong, with honest intervals."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import InputError
from phaseguard.stats.accuracy import Accuracy, clustered_by


@dataclass(frozen=True, slots=True)
class PhaseComparison:
    """The phases of one period, compared.

    Attributes:
        period: tokens.
        phases: accuracy at each phase, each with an interval of its own.
        gap: largest difference between two phases, in points (0 to 100).
        gap_low, gap_high: interval of that difference, all pairs of phases held at once.
        strong: phases that are not significantly below any other: they hold the best one with the stated
            confidence (multiple comparisons with the best; Hsu, 1981).
    """

    period: int
    phases: tuple[Accuracy, ...]
    gap: float
    gap_low: float
    gap_high: float
    strong: tuple[int, ...]


def compare_phases(
    right: ArrayLike, positions: ArrayLike, clusters: ArrayLike, period: int, confidence: float = 0.95
) -> PhaseComparison:
    """Compare the phases of a period.

    The difference of two phases has Newcombe's interval (1998, method 10), made of the Wilson intervals of
    both; Bonferroni's correction holds for all pairs at once. The largest of many noisy differences is
    too large on average; its interval, from the largest lower to the largest upper end, allows for that.
    Phases of one cluster count as independent, which is cautious: easy clusters lift all of them.

    Args:
        right: ``[n]`` whether each answer is right, bool.
        positions: ``[n]`` token index of the first token of each answer.
        clusters: ``[n]`` sequence (or item) of each answer, any integers.
        period: phases to tell apart, at least 2.
        confidence: of each interval, and of the gap and the strong phases as a whole.

    Raises:
        InputError: for a period below 2, or a phase that was never asked.

    >>> right = np.arange(800) % 4 > 0
    >>> found = compare_phases(right, np.arange(800), np.arange(800) // 8, 4)
    >>> found.gap, found.gap_low > 90, found.strong
    (100.0, True, (1, 2, 3))
    """
    hits, places, groups = np.asarray(right), np.asarray(positions), np.asarray(clusters)
    if period < 2:
        raise InputError(f"period is {period}: give at least 2 phases to compare.")
    phase = places % period
    counts = np.bincount(phase, minlength=period)
    if not counts.all():
        raise InputError(
            f"Phase {int(counts.argmin())} of period {period} was never asked: give more answers, or a "
            "shorter period."
        )
    pairs = list(combinations(range(period), 2))
    alone, together = (
        clustered_by(hits, groups, phase, period, level)
        for level in (confidence, 1 - (1 - confidence) / len(pairs))
    )
    lows, highs = [0.0], [0.0]
    weak: set[int] = set()
    for i, j in pairs:
        better, worse = (i, j) if together[i].mean >= together[j].mean else (j, i)
        low, high = _difference(together[better], together[worse])
        lows.append(low)
        highs.append(high)
        if low > 0:
            weak.add(worse)
    shares = [accuracy.mean for accuracy in alone]
    return PhaseComparison(
        period,
        alone,
        gap=100 * (max(shares) - min(shares)),
        gap_low=100 * max(lows),
        gap_high=100 * max(highs),
        strong=tuple(p for p in range(period) if p not in weak),
    )


def _difference(a: Accuracy, b: Accuracy) -> tuple[float, float]:
    """Interval of the difference of two shares from the interval of each."""
    middle = a.mean - b.mean
    below = np.hypot(a.mean - a.low, b.high - b.mean)
    above = np.hypot(a.high - a.mean, b.mean - b.low)
    return float(middle - below), float(middle + above)
