"""Phases compared within items: differences of paired shares or margins, strong phases, the largest gap.

Where each item is asked at every phase, easy items lift all phases alike; the covariance of the phases over
items takes that out, so that far fewer items do than with :func:`~phaseguard.stats.compare_phases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaseguard.errors import InputError
from phaseguard.stats.accuracy import clustered_by, wilson
from phaseguard.stats.phases import PhaseComparison

Floats = NDArray[np.float64]


def compare_paired(
    right: ArrayLike,
    positions: ArrayLike,
    clusters: ArrayLike,
    period: int,
    confidence: float = 0.95,
    margins: ArrayLike | None = None,
) -> PhaseComparison:
    """Compare the phases of a period within clusters.

    The lower end of the gap is the largest lower limit over all pairs, with Bonferroni's correction. Its
    upper end is the largest upper limit and needs no correction: it fails only if the limit of the one pair
    with the truly largest difference does (intersection-union; Berger, Technometrics 24, 1982). A phase is
    not strong where another is significantly above it; the best one has ``period - 1`` such rivals, so it is
    among the strong with the stated confidence (multiple comparisons with the best; Hsu, 1981).

    Args:
        right: ``[n]`` whether each answer is right, bool.
        positions: ``[n]`` token index whose phase matters.
        clusters: ``[n]`` item of each answer, any integers.
        period: phases to tell apart, at least 2.
        confidence: of each phase's interval, of the gap, and of the strong phases as a whole.
        margins: ``[n]`` scores that tell the strong phases with more power than right and wrong.

    Raises:
        InputError: for a period below 2, or a phase that was never asked.

    >>> rng = np.random.default_rng(0)
    >>> at, items = (rng.integers(0, 900, 60)[:, None] + np.arange(16)).ravel(), np.repeat(np.arange(60), 16)
    >>> found = compare_paired(rng.random(960) < np.where(at % 4 == 1, 0.5, 0.9), at, items, 4)
    >>> found.strong, found.gap_low < 40 < found.gap_high
    ((0, 2, 3), True)
    """
    tail = 1 - confidence
    rivals = max(1, period - 1)
    lows = difference_limits(right, positions, clusters, period, tail / (2 * max(1, period) * rivals))
    highs = -difference_limits(right, positions, clusters, period, tail / 2).T
    scores = right if margins is None else margins
    above = difference_limits(scores, positions, clusters, period, tail / rivals)
    phase = np.asarray(positions) % period
    phases = clustered_by(np.asarray(right), np.asarray(clusters), phase, period, confidence)
    shares = [accuracy.mean for accuracy in phases]
    return PhaseComparison(
        period,
        phases,
        gap=100 * (max(shares) - min(shares)),
        gap_low=100 * max(0.0, float(lows.max())),
        gap_high=100 * float(highs.max()),
        strong=tuple(int(p) for p in np.flatnonzero(above.max(0) <= 0)),
    )


def largest_gap(
    right: ArrayLike, labels: Sequence[ArrayLike], clusters: ArrayLike, periods: Sequence[int], tail: float
) -> float | None:
    """Upper confidence limit, in points, of the gap at any of these periods and labellings.

    It holds with probability ``1 - tail`` for all of them at once, without a correction (see
    :func:`compare_paired`).

    Args:
        right: ``[n]`` whether each answer is right, bool.
        labels: labellings, each ``[n]`` token indices.
        clusters: ``[n]`` item of each answer, any integers.
        periods: candidates, each at least 2.
        tail: chance that some gap is larger.

    Returns:
        Points from 0 to 100; None where some phase was never asked.

    >>> everything = np.ones(960, bool)
    >>> limit = largest_gap(everything, [np.arange(960)], np.arange(960) // 16, [2, 4, 8], 0.05)
    >>> round(limit, 1)
    4.3
    """
    largest = 0.0
    for index in map(np.asarray, labels):
        for period in periods:
            if len(np.unique(index % period)) < period:
                return None
            largest = max(largest, -float(difference_limits(right, index, clusters, period, tail).min()))
    return 100 * largest


def difference_limits(
    scores: ArrayLike, positions: ArrayLike, clusters: ArrayLike, period: int, tail: float
) -> Floats:
    """``[period, period]`` one-sided lower confidence limit of the mean at one phase less that at another.

    Shares have Newcombe's interval for paired ones (Statistics in Medicine 17, 1998, method 10 with the
    correlation), which stays honest where everything is right. Other scores have Student's. Variances and
    covariances of the phases' means are those of clusters.

    Args:
        scores: ``[n]`` bool, or float.
        positions: ``[n]`` token index of each answer.
        clusters: ``[n]`` item of each answer, any integers.
        period: at least 2.
        tail: chance that a difference is below its limit, for each pair alone.

    Raises:
        InputError: for a period below 2, or a phase that was never asked.

    >>> limits = difference_limits(np.arange(800) % 2 > 0, np.arange(800), np.arange(800) // 8, 2, 0.025)
    >>> bool(limits[1, 0] > 0.9), bool(limits[0, 1] < -0.99)
    (True, True)
    """
    if period < 2:
        raise InputError(f"period is {period}: give at least 2 phases to compare.")
    values, groups, phase = np.asarray(scores), np.asarray(clusters), np.asarray(positions) % period
    counts = np.bincount(phase, minlength=period)
    if not counts.all():
        raise InputError(
            f"Phase {int(counts.argmin())} of period {period} was never asked: give more answers, or a "
            "shorter period."
        )
    means, covariance = _cluster_moments(values.astype(np.float64), groups, phase, counts)
    spread = np.sqrt(np.diag(covariance))
    difference = means[:, None] - means
    if values.dtype != np.bool_:
        variance = np.maximum(spread[:, None] ** 2 + spread**2 - 2 * covariance, 0)
        half = _student(tail, max(1, len(np.unique(groups)) - 1)) * np.sqrt(variance)
    else:
        scale = np.where(spread > 0, spread, 1.0)
        related = np.clip(covariance / (scale[:, None] * scale), -1, 1)
        low, high = _share_limits(values, groups, phase, period, 1 - 2 * tail)
        below, above = means - low, high - means
        squares = below[:, None] ** 2 + above**2 - 2 * related * below[:, None] * above
        half = np.sqrt(np.maximum(squares, 0))
    np.fill_diagonal(half, 0.0)
    return np.asarray(difference - half)


def _share_limits(
    values: NDArray[np.bool_],
    groups: NDArray[np.integer],
    phase: NDArray[np.integer],
    period: int,
    confidence: float,
) -> Floats:
    """``[2, period]`` limits of each phase's share.

    Where all answers of a phase are alike nothing tells how far those of one cluster depend on each other:
    each cluster counts as one answer there.
    """
    limits: list[tuple[float, float]] = []
    for number, found in enumerate(clustered_by(values, groups, phase, period, confidence)):
        clusters = len(np.unique(groups[phase == number]))
        alike = found.right in (0, found.n)
        limits.append(
            wilson(found.mean * clusters, clusters, confidence) if alike else (found.low, found.high)
        )
    return np.array(limits).T


def _cluster_moments(
    values: Floats, groups: NDArray[np.integer], phase: NDArray[np.integer], counts: NDArray[np.integer]
) -> tuple[Floats, Floats]:
    """``[period]`` means and their ``[period, period]`` covariance, robust to clusters."""
    period = len(counts)
    means = np.bincount(phase, values, period) / counts
    _, members = np.unique(groups, return_inverse=True)
    clusters = int(members.max()) + 1
    cells = np.bincount(members * period + phase, values - means[phase], clusters * period)
    weighted = cells.reshape(clusters, period) / counts
    return means, weighted.T @ weighted * (clusters / max(1, clusters - 1))


def _student(tail: float, freedom: int) -> float:
    """Upper quantile of Student's t by its expansion (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(1 - tail)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
