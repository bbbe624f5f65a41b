"""Accuracy by phase, with intervals: questions of one sequence are one cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.model import LabModel
from phaseguard.lab.tasks import Task, draw

_Z = 1.959963984540054  # 95% of a normal distribution lies within this many standard deviations
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A share of right answers.

    Attributes:
        right: right answers; ``n``: questions.
        low, high: Wilson 95% interval, with n divided by the design effect of clustered questions.
    """

    right: int
    n: int
    low: float
    high: float

    @property
    def mean(self) -> float:
        """Share of right answers, NaN without any question."""
        return self.right / self.n if self.n else math.nan


def wilson(right: float, n: float) -> tuple[float, float]:
    """Wilson 95% interval of a share; (0, 1) without any trial.

    >>> tuple(round(end, 3) for end in wilson(8, 10))
    (0.49, 0.943)
    """
    if n <= 0:
        return 0.0, 1.0
    share, z2 = right / n, _Z * _Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def clustered(right: NDArray[np.bool_], cluster: NDArray[np.int64]) -> Accuracy:
    """Accuracy of answers that come in clusters.

    Args:
        right: ``[n]`` whether each answer is right.
        cluster: ``[n]`` which cluster it belongs to.

    The design effect is the variance of the cluster-robust mean over that of independent answers, at least 1.

    >>> clustered(np.array([True, True, False, True]), np.array([0, 0, 1, 1])).right
    3
    """
    n, hits = len(right), int(right.sum())
    if n == 0:
        return Accuracy(0, 0, 0.0, 1.0)
    share = hits / n
    _, members = np.unique(cluster, return_inverse=True)
    residuals = np.bincount(members, weights=right - share)
    independent = share * (1 - share) * n
    effect = max(1.0, float(np.square(residuals).sum()) / independent) if independent > 0 else 1.0
    low, high = wilson(hits / effect, n / effect)
    return Accuracy(hits, n, low, high)


def by_phase(
    model: LabModel, task: Task, *, questions: int = 2000, period: int | None = None, seed: int = 1
) -> tuple[Accuracy, ...]:
    """Accuracy by the phase of the first token of the answer.

    Args:
        model: a trained model.
        task: what to ask; whole sequences are drawn until there are ``questions`` questions.
        questions: least number of questions.
        period: number of phases to tell apart; the model's stride, or 4 for full attention.
        seed: of the drawn sequences.

    Raises:
        InputError: when the context is shorter than the stride.
    """
    period = period or model.spec.stride or 4
    if task.context < period:
        raise InputError(f"A context of {task.context} tokens is shorter than the period {period}.")
    rng = np.random.default_rng(seed)
    sequences = -(-questions // task.questions)
    right: list[NDArray[np.bool_]] = []
    phases: list[NDArray[np.int64]] = []
    for start in range(0, sequences, _BATCH):
        drawn = draw(task, min(_BATCH, sequences - start), rng)
        good = model.predict(drawn.tokens, drawn.positions) == drawn.targets
        right.append(good.reshape(*drawn.values.shape, task.value_tokens).all(-1))
        phases.append(drawn.values % period)
    good, phase = np.concatenate(right), np.concatenate(phases)
    cluster = np.broadcast_to(np.arange(len(good))[:, None], good.shape)
    return tuple(clustered(good[phase == p], cluster[phase == p]) for p in range(period))
