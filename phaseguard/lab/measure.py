"""Accuracy by phase, with intervals: questions of one sequence are one cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.model import LabModel
from phaseguard.lab.tasks import Task, draw
from phaseguard.stats import Accuracy, clustered_by

_BATCH = 32


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers of a model, as :mod:`phaseguard.stats` takes them.

    Attributes:
        right: ``[n]`` whether all tokens of the answer are right.
        positions: ``[n]`` token index of its first token in the context.
        clusters: ``[n]`` number of its sequence.
    """

    right: NDArray[np.bool_]
    positions: NDArray[np.int64]
    clusters: NDArray[np.int64]

    def once(self) -> Answers:
        """Without questions asked earlier in their sequence: their answer may stand in the raw window.

        >>> asked = Answers(np.array([False, True, True]), np.array([5, 9, 5]), np.array([0, 0, 0]))
        >>> asked.once().positions.tolist()
        [5, 9]
        """
        first = first_asked(self.positions, self.clusters)
        return Answers(self.right[first], self.positions[first], self.clusters[first])


def first_asked(positions: NDArray[np.int64], clusters: NDArray[np.int64]) -> NDArray[np.intp]:
    """Places ``[m]``, ascending, of the questions that were not asked earlier in their sequence.

    Args:
        positions: ``[n]`` where each answer stands.
        clusters: ``[n]`` number of its sequence.

    >>> first_asked(np.array([5, 9, 5]), np.array([0, 0, 0])).tolist()
    [0, 1]
    """
    pairs = np.stack([clusters, positions])
    return np.asarray(np.sort(np.unique(pairs, axis=1, return_index=True)[1]))


def collect(model: LabModel, task: Task, *, questions: int = 2000, seed: int = 1, spread: int = 1) -> Answers:
    """Ask a model.

    Args:
        model: a trained model.
        task: what to ask; whole sequences are drawn until there are ``questions`` questions.
        questions: least number of questions.
        seed: of the drawn sequences.
        spread: how many lengths of context are asked, each one token longer than the one before. A window at
            the end of a context is read better whatever its phase; lengths that run through a whole period
            keep that from looking like an effect of phase.

    >>> from phaseguard.lab.store import load_model
    >>> answers = collect(load_model("full-s0"), Task("ask"), questions=40)
    >>> answers.right.shape, int(answers.clusters.max())
    ((48,), 2)
    """
    rng = np.random.default_rng(seed)
    sequences = -(-questions // task.questions)
    right: list[NDArray[np.bool_]] = []
    values: list[NDArray[np.int64]] = []
    each = min(_BATCH, -(-sequences // spread))
    for number, start in enumerate(range(0, sequences, each)):
        longer = replace(task, context=task.context + number % spread)
        drawn = draw(longer, min(each, sequences - start), rng)
        good = model.predict(drawn.tokens, drawn.positions) == drawn.targets
        right.append(good.reshape(*drawn.values.shape, task.value_tokens).all(-1))
        values.append(drawn.values)
    clusters = np.repeat(np.arange(sequences), task.questions)
    return Answers(np.concatenate(right).ravel(), np.concatenate(values).ravel(), clusters)


def by_phase(
    model: LabModel, task: Task, *, questions: int = 2000, period: int | None = None, seed: int = 1
) -> tuple[Accuracy, ...]:
    """Accuracy by the phase of the first token of the answer.

    Args:
        model: a trained model.
        task: what to ask; whole sequences are drawn until there are ``questions`` questions.
        questions: number of questions; one that comes again in its sequence counts once.
        period: number of phases to tell apart; the model's stride, or 4 for full attention.
        seed: of the drawn sequences.

    Raises:
        InputError: when the context is shorter than the stride.
    """
    period = period or model.spec.stride or 4
    if task.context < period:
        raise InputError(f"A context of {task.context} tokens is shorter than the period {period}.")
    answers = collect(model, task, questions=questions, seed=seed).once()
    return clustered_by(answers.right, answers.clusters, answers.positions % period, period)
