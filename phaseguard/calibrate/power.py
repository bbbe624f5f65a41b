"""What a plan can see: the chance to find a gap, and the smallest gap that is found nearly always.

The sums by phase of many answers are normal, so the test's own statistic is drawn from normal noise, without
and with an effect; no answers are simulated. The effect is a single weak phase, the hardest shape to find,
so a plan sees other shapes better than it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.stats.evidence import TURNS, Design
from phaseguard.stats.period import PERIODS

_DRAWS = 1000
_ITEMS = 100  # drawn at most: the sums of more differ in scale alone
_CORRELATION = 0.1  # of two answers of one item: cautious, real items differ more in difficulty
_TOKENS = 20_000  # items start anywhere below


def power(
    items: int,
    gap: float,
    period: int,
    *,
    accuracy: float = 0.85,
    shifts: int = 16,
    correlation: float = _CORRELATION,
    periods: Iterable[int] = PERIODS,
    level: float = 0.05,
    seed: int = 0,
) -> float:
    """Chance that the test finds an effect with a single weak phase.

    Args:
        items: number of items, at least 2.
        gap: of the weak phase below the others, in points.
        period: of the effect, at least 2.
        accuracy: at the other phases; a plan that does not know it should take a middling one.
        shifts: at which each item is asked, at least 2.
        correlation: of two answers of one item, from difficulty.
        periods: candidates that are tried.
        level: of the look that counts: the last of
            :func:`~phaseguard.calibrate.sequential.spending`, or alpha without looks.
        seed: of the draws.

    Raises:
        InputError: for a plan that is impossible.

    >>> few, many = power(20, 20.0, 8), power(60, 20.0, 8)
    >>> few < 0.5, many > 0.8
    (True, True)
    """
    return _Plan.of(items, period, shifts, periods, level, seed).power(gap, accuracy, correlation)


def smallest_gap(
    items: int,
    period: int,
    *,
    wanted: float = 0.9,
    accuracy: float = 0.85,
    shifts: int = 16,
    correlation: float = _CORRELATION,
    periods: Iterable[int] = PERIODS,
    level: float = 0.05,
    seed: int = 0,
) -> float:
    """Smallest gap, in points, that is found with the wanted chance; infinite where even the largest is not.

    Arguments and errors are those of :func:`power`.

    >>> 15 < smallest_gap(60, 8) < 25, smallest_gap(240, 8) < 12, smallest_gap(2, 16)
    (True, True, inf)
    """
    if not 0 < wanted < 1:
        raise InputError(f"wanted is {wanted}: give a chance between 0 and 1, such as 0.9.")
    plan = _Plan.of(items, period, shifts, periods, level, seed)
    low, high = 0.0, 100 * accuracy
    if plan.power(high, accuracy, correlation) < wanted:
        return math.inf
    while high - low > 0.05:
        middle = (low + high) / 2
        if plan.power(middle, accuracy, correlation) < wanted:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Sums by phase as a plan would see them.

    Attributes:
        noise: ``[draws, columns]`` of answers with variance 1; ``weak``: the part from the weak phase.
        effect: ``[columns]`` of an effect of size 1.
        alone: further noise; ``moved``: ``[draws, columns]`` of that effect, each item's at random phases:
            together what relabellings see.
        level: of the test.
    """

    design: Design
    noise: NDArray[np.float64]
    weak: NDArray[np.float64]
    effect: NDArray[np.float64]
    alone: NDArray[np.float64]
    moved: NDArray[np.float64]
    level: float
    period: int

    @classmethod
    def of(
        cls, items: int, period: int, shifts: int, periods: Iterable[int], level: float, seed: int
    ) -> _Plan:
        if items < 2 or period < 2 or shifts < 2 or not 0 < level < 1:
            raise InputError(
                f"A plan of {items} items, {shifts} shifts, period {period} and level {level} is impossible: "
                "give at least 2 of each, and a level between 0 and 1."
            )
        rng = np.random.default_rng(seed)
        drawn = min(items, _ITEMS)
        keys = rng.integers(0, _TOKENS, drawn)[:, None] + np.arange(shifts)
        positions = keys + rng.integers(2, 18, drawn)[:, None]
        labels = {"answer": positions.ravel(), "key": keys.ravel()}
        design = Design.of(labels, np.full(drawn, shifts), np.ones(drawn), tuple(sorted(set(periods))))
        mask = positions.ravel() % period == 0
        phases = design.phases.reshape(drawn, shifts, -1)
        centred = (phases - phases.mean(1, keepdims=True)).reshape(drawn * shifts, -1)
        both = np.concatenate([centred, centred * mask[:, None]], axis=1)
        noise, weak = np.split(_draws(rng, both.T @ both), 2, axis=1)
        alone, noise, weak = noise[:_DRAWS], noise[_DRAWS:], weak[_DRAWS:]
        by_item = (centred * mask[:, None]).reshape(drawn, shifts, -1).sum(1)
        moved = design.turned(by_item, rng.integers(0, TURNS, (_DRAWS, drawn)))
        # more items raise the effect over the noise by the root of their number
        effect = by_item.sum(0) * math.sqrt(items / drawn)
        return cls(design, noise, weak, effect, alone, moved, level, period)

    def power(self, gap: float, accuracy: float, correlation: float) -> float:
        lowest = accuracy - gap / 100
        if not (0 < accuracy <= 1 and -1e-9 <= lowest <= accuracy and 0 <= correlation < 1):
            raise InputError(
                f"A gap of {gap} points below an accuracy of {accuracy} with correlation {correlation} is "
                "impossible: accuracy and correlation are shares, the gap is at most 100 times the accuracy."
            )
        share = 1 / self.period
        strong, weak = (max(0.0, p * (1 - p)) * (1 - correlation) for p in (accuracy, lowest))
        alone = (1 - share) * strong + share * weak
        # the answers' variance, which is the yardstick of evidence, holds the effect itself
        seen = alone + share * (1 - share) * (gap / 100) ** 2
        if seen <= 0:
            return 0.0
        relabelled = (math.sqrt(alone) * self.alone - gap / 100 * self.moved) / math.sqrt(seen)
        critical = np.quantile(self.design.evidence(relabelled).max(1), 1 - self.level)
        sums = math.sqrt(strong) * self.noise + (math.sqrt(weak) - math.sqrt(strong)) * self.weak
        evidence = self.design.evidence((sums - gap / 100 * self.effect) / math.sqrt(seen)).max(1)
        return float((evidence >= critical).mean())


def _draws(rng: np.random.Generator, covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """``[2 * draws, columns]`` normal variables with this covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * values[-1]
    half = vectors[:, kept] * np.sqrt(values[kept])
    return np.asarray(rng.standard_normal((2 * _DRAWS, half.shape[1])) @ half.T)
