"""Has accuracy a period in the token index, and which? A permutation test over candidate periods.

For each period the answers are grouped by phase; the statistic is the chi-square of the groups, with every
cluster's own mean taken out. Phase labels are permuted within clusters, so that easy and hard clusters,
their sizes and what is asked of them stay as they are. The largest statistic over all periods, brought to
one scale by Wilson and Hilferty's cube root, corrects for having tried them all (Westfall and Young, 1993).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaseguard.errors import InputError

Floats = NDArray[np.float64]
PERIODS = tuple(range(2, 17))
PENALTY = 3.0  # chi-square that a phase more must bring: between Akaike's 2 and Schwarz's log n
EXPLAINED = 0.01  # a multiple adds something below this p-value
_CELLS = 4_000_000  # answers times permutations that are held at once


@dataclass(frozen=True, slots=True)
class PeriodTest:
    """One candidate period.

    Attributes:
        period: tokens.
        statistic: chi-square per degree of freedom, about 1 where phase does not matter.
        p_value: of this period alone, by permutation.
        p_corrected: corrected for all periods tried.
    """

    period: int
    statistic: float
    p_value: float
    p_corrected: float


@dataclass(frozen=True, slots=True)
class PeriodScan:
    """All candidate periods, and what follows.

    Attributes:
        tests: one a period, ascending.
        p_value: of the null hypothesis that no period matters: the smallest corrected one.
        period: the smallest period that explains the data; None where no period matters.
    """

    tests: tuple[PeriodTest, ...]
    p_value: float
    period: int | None


def scan_periods(
    right: ArrayLike,
    positions: ArrayLike,
    clusters: ArrayLike,
    *,
    periods: Iterable[int] = PERIODS,
    permutations: int = 999,
    alpha: float = 0.05,
    seed: int = 0,
) -> PeriodScan:
    """Test candidate periods and find the smallest that explains the data.

    A true period of 4 also shows at 8, 12 and 16, and may show at 2. So, among the periods significant
    after correction, the one with the largest chi-square less :data:`PENALTY` a degree of freedom is taken;
    then its smallest divisor to which its further phases add nothing (p > :data:`EXPLAINED`).

    Args:
        right: ``[n]`` whether each answer is right.
        positions: ``[n]`` token index of the first token of each answer. What makes some places easier than
            others (the end of a context) must not stand at one phase always: let contexts differ in length,
            and the items of a paired design start at different indices.
        clusters: ``[n]`` sequence (or item) of each answer, any integers.
        periods: candidates, each at least 2.
        permutations: random relabellings; no p-value is below ``1 / (permutations + 1)``.
        alpha: level of the test, over all periods together.
        seed: of the permutations.

    Raises:
        InputError: for arrays that do not fit or are empty, impossible periods, or too few permutations.

    >>> rng = np.random.default_rng(0)
    >>> positions, clusters = rng.integers(0, 96, 2000), np.repeat(np.arange(125), 16)
    >>> scan_periods(rng.random(2000) < 0.7 + 0.2 * (positions % 2), positions, clusters).period
    2
    >>> scan_periods(rng.random(2000) < 0.7, positions, clusters).period is None
    True
    """
    answers = _Answers.of(right, positions, clusters)
    candidates = _checked(periods, permutations, alpha)
    squares = _chi_squares(answers, candidates, permutations, np.random.default_rng(seed))
    degrees = np.array([len(np.unique(answers.positions % period)) - 1 for period in candidates])
    scaled = _scaled(squares, degrees)
    p_values = (scaled >= scaled[0] - 1e-9).mean(0)
    corrected = (scaled.max(1)[:, None] >= scaled[0] - 1e-9).mean(0)
    tests = tuple(
        PeriodTest(period, float(square / max(1, degree)), float(alone), float(among))
        for period, square, degree, alone, among in zip(
            candidates, squares[0], degrees, p_values, corrected, strict=True
        )
    )
    found = _smallest(candidates, squares, degrees, corrected <= alpha)
    return PeriodScan(tests, float(corrected.min()), found)


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """Answers sorted by cluster: residuals from the cluster's mean, positions, rank of the cluster."""

    residuals: Floats
    positions: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, right: ArrayLike, positions: ArrayLike, clusters: ArrayLike) -> _Answers:
        hits, places, groups = np.asarray(right), np.asarray(positions), np.asarray(clusters)
        if hits.ndim != 1 or not len(hits) or not hits.shape == places.shape == groups.shape:
            raise InputError(
                f"right, positions and clusters have shapes {hits.shape}, {places.shape} and {groups.shape}: "
                "give one number an answer in each, and at least one answer."
            )
        if hits.dtype != np.bool_ or not np.issubdtype(places.dtype, np.integer):
            raise InputError(
                f"right has dtype {hits.dtype} and positions {places.dtype}: give booleans and integers."
            )
        order = np.argsort(groups, kind="stable")
        ranks = np.unique(groups[order], return_inverse=True)[1]
        ordered = hits[order].astype(np.float64)
        means = np.bincount(ranks, ordered) / np.bincount(ranks)
        return cls(ordered - means[ranks], places[order].astype(np.int64), ranks)


def _checked(periods: Iterable[int], permutations: int, alpha: float) -> tuple[int, ...]:
    candidates = tuple(sorted({int(period) for period in periods}))
    if not candidates or candidates[0] < 2:
        raise InputError(f"periods are {candidates}: give whole numbers of at least 2.")
    if not 0 < alpha < 1 or permutations < 1 / min(alpha, EXPLAINED) - 1:
        raise InputError(
            f"{permutations} permutations cannot reach a p-value of {min(alpha, EXPLAINED)}: give 999 or "
            "more, and an alpha between 0 and 1."
        )
    return candidates


def _chi_squares(
    answers: _Answers, candidates: Sequence[int], permutations: int, rng: np.random.Generator
) -> Floats:
    """``[1 + permutations, periods]``: chi-square of the answers as they are, then of each relabelling."""
    residuals, n = answers.residuals, len(answers.residuals)
    freedom = n - len(np.unique(answers.ranks))
    variance = float(residuals @ residuals) / freedom if freedom else 0.0
    columns = [answers.positions[:, None] % period == np.arange(period) for period in candidates]
    phases = np.concatenate(columns, axis=1).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(candidates)[:-1]])
    # a phase without answers has sum 0; a cluster without variance says nothing
    weights = 1 / (np.maximum(phases.sum(0), 1) * (variance or 1.0))
    rows = max(1, _CELLS // n)
    found = [np.add.reduceat((residuals @ phases)[None] ** 2 * weights, starts, axis=1)]
    for start in range(0, permutations, rows):
        # clusters stand side by side, so adding their rank keeps every answer in its own
        keys = answers.ranks + rng.random((min(rows, permutations - start), n))
        sums = residuals[np.argsort(keys, axis=1)] @ phases
        found.append(np.add.reduceat(np.square(sums) * weights, starts, axis=1))
    return np.concatenate(found)


def _scaled(squares: Floats, degrees: NDArray[np.int64]) -> Floats:
    """Chi-squares as about standard normal numbers: the cube root of Wilson and Hilferty (1931)."""
    spread = 2 / (9 * np.maximum(degrees, 1))
    return np.asarray((np.cbrt(squares / np.maximum(degrees, 1)) - (1 - spread)) / np.sqrt(spread))


def _smallest(
    candidates: Sequence[int], squares: Floats, degrees: NDArray[np.int64], significant: NDArray[np.bool_]
) -> int | None:
    if not significant.any():
        return None
    gains = np.where(significant, squares[0] - PENALTY * degrees, -np.inf)
    best = int(gains.argmax())
    for number, period in enumerate(candidates):
        if significant[number] and period < candidates[best] and candidates[best] % period == 0:
            more = squares[:, best] - squares[:, number]
            if float((more >= more[0] - 1e-9).mean()) > EXPLAINED:
                return period
    return candidates[best]
