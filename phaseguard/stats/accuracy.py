"""Shares of right answers with intervals that know of clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A share of right answers.

    Attributes:
        right: right answers; ``n``: questions.
        low, high: Wilson interval, with n divided by the design effect of clustered questions.
    """

    right: int
    n: int
    low: float
    high: float

    @property
    def mean(self) -> float:
        """Share of right answers, NaN without any question."""
        return self.right / self.n if self.n else math.nan

    def to_dict(self) -> dict[str, float | int | None]:
        """Mean, interval and number of questions, as JSON takes them: no mean without any question.

        >>> Accuracy(8, 10, 0.49, 0.943).to_dict()
        {'mean': 0.8, 'low': 0.49, 'high': 0.943, 'n': 10}
        """
        mean = round(self.mean, 4) if self.n else None
        return {"mean": mean, "low": round(self.low, 4), "high": round(self.high, 4), "n": self.n}


def wilson(right: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson interval of a share, low and high; (0, 1) without any trial.

    Args:
        right: right answers.
        n: trials; both may be divided by a design effect.
        confidence: probability that the interval holds the true share, between 0 and 1.

    Raises:
        InputError: for a confidence that is none.

    >>> tuple(round(end, 3) for end in wilson(8, 10))
    (0.49, 0.943)
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}: give a probability between 0 and 1, such as 0.95.")
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, z2 = right / n, z * z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # exact ends: rounding would leave 1e-19 where nothing was right
    return middle - half if right > 0 else 0.0, middle + half if right < n else 1.0


def clustered(right: NDArray[np.bool_], clusters: NDArray[np.integer], confidence: float = 0.95) -> Accuracy:
    """Accuracy of answers that come in clusters.

    Args:
        right: ``[n]`` whether each answer is right.
        clusters: ``[n]`` which cluster it belongs to, any integers.
        confidence: of the interval.

    The design effect is the variance of the cluster-robust mean over that of independent answers, at least 1
    (Kish, Survey Sampling, 1965).

    >>> clustered(np.array([True, True, False, True]), np.array([0, 0, 1, 1])).right
    3
    """
    n, hits = len(right), int(right.sum())
    if n == 0:
        return Accuracy(0, 0, 0.0, 1.0)
    share = hits / n
    _, members = np.unique(clusters, return_inverse=True)
    residuals = np.bincount(members, weights=right - share)
    independent = share * (1 - share) * n
    effect = max(1.0, float(np.square(residuals).sum()) / independent) if independent > 0 else 1.0
    low, high = wilson(hits / effect, n / effect, confidence)
    return Accuracy(hits, n, low, high)


def clustered_by(
    right: NDArray[np.bool_],
    clusters: NDArray[np.integer],
    groups: NDArray[np.integer],
    count: int,
    confidence: float = 0.95,
) -> tuple[Accuracy, ...]:
    """:func:`clustered` for each group of answers, such as those of one phase.

    Args:
        right: ``[n]`` whether each answer is right.
        clusters: ``[n]`` which cluster it belongs to, any integers.
        groups: ``[n]`` which group each answer belongs to, from 0.
        count: number of groups; an empty one has no answers.
        confidence: of the intervals.

    >>> parts = clustered_by(np.array([True, False, True]), np.arange(3), np.array([0, 0, 1]), 3)
    >>> [part.right for part in parts], [part.n for part in parts]
    ([1, 1, 0], [2, 1, 0])
    """
    chosen = (groups == group for group in range(count))
    return tuple(clustered(right[here], clusters[here], confidence) for here in chosen)
