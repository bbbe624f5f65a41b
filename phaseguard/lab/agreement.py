"""Does agreement say how far to trust an answer? Accuracy by what the ballots of a question look like.

Two signals that an application has without knowing the answer: how many layouts agree, which costs one call a
layout, and the probability that the model gave to the answer of the first layout, which costs one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.cases import draw_cases
from phaseguard.lab.model import LabModel
from phaseguard.lab.padded import calibrated
from phaseguard.lab.poll import Poll, poll_phases
from phaseguard.lab.strategies import Defender
from phaseguard.lab.tasks import Task
from phaseguard.stats import Accuracy, clustered, clustered_by
from phaseguard.voting import decide, group

CALIBRATION_SEED, SEED = 11, 13  # strengths are measured on other texts than those that are asked
PROBABILITIES = (0.0, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)  # ends of the groups


@dataclass(frozen=True, slots=True)
class Level:
    """Questions that look alike.

    Attributes:
        least, most: of the signal, a share of the ballots or a probability; ``most`` is excluded unless it
            is 1 or equal to ``least``.
        told: mean of the signal, NaN without any question.
        accuracy: how often the answer is right, with its Wilson interval and number of questions.
    """

    least: float
    most: float
    told: float
    accuracy: Accuracy

    def to_dict(self) -> dict[str, Any]:
        """Plain values; no mean without any question."""
        told = round(self.told, 4) if self.accuracy.n else None
        return {"least": self.least, "most": self.most, "told": told, **self.accuracy.to_dict()}


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far answers may be trusted on one model.

    Attributes:
        model: its name; ``task``: what was asked; ``layouts``: ballots a question.
        agreement: by share of the ballots that are the winner's: is the vote right? Ascending.
        probability: by the probability of the first layout's answer: is that answer right? Ascending.
        vote, first: accuracy over all questions.
    """

    model: str
    task: Task
    layouts: int
    agreement: tuple[Level, ...]
    probability: tuple[Level, ...]
    vote: Accuracy
    first: Accuracy

    def to_dict(self) -> dict[str, Any]:
        """Every figure with its interval, as plain values."""
        return {
            "model": self.model,
            "task": asdict(self.task),
            "n": self.vote.n,
            "layouts": self.layouts,
            "agreement": [level.to_dict() for level in self.agreement],
            "probability": [level.to_dict() for level in self.probability],
            "vote": self.vote.to_dict(),
            "first": self.first.to_dict(),
        }


def measure_agreement(
    model: LabModel, name: str, *, task: Task | None = None, n: int = 1000, seed: int = SEED
) -> Agreement:
    """Ask every question with its answer on each phase, and group the questions by what came back.

    Args:
        model: a trained model with a compressed cache.
        name: its name, of letters, digits, dots and dashes.
        task: what to ask; ask-anything filler of 96 tokens by default.
        n: questions, at least 1.
        seed: of the questions.

    Raises:
        InputError: for full attention, which has no phase, or without any question.

    >>> from phaseguard.lab.store import load_model
    >>> found = measure_agreement(load_model("csa4-s0"), "csa4-s0", n=40)
    >>> [level.least for level in found.agreement], sum(level.accuracy.n for level in found.probability)
    ([0.25, 0.5, 0.75, 1.0], 40)
    """
    if model.spec.full:
        raise InputError("Full attention has no phase: choose a scheme with a compressed cache.")
    if n < 1:
        raise InputError(f"n={n}: ask at least 1 question.")
    task = task or Task()
    profile = calibrated(model, name, (task,), seed=CALIBRATION_SEED)
    cases = draw_cases(task, n, period=profile.period, window=model.spec.raw, seed=seed)
    asked = poll_phases(model, Defender.of(profile), cases)
    return _grouped(name, task, asked)


def _grouped(name: str, task: Task, asked: Poll) -> Agreement:
    ballots = asked.ballots()
    layouts = len(asked.asked)
    votes = [decide(group(mine)) for mine in ballots]
    agreement = np.array([vote.agreement for vote in votes])
    vote_right = asked.right([vote.answer for vote in votes])
    first = asked.asked[0].replies
    first_right = first.right(asked.expected)
    each = np.arange(len(ballots))
    shares = tuple(count / layouts for count in range(1, layouts + 1))
    return Agreement(
        name,
        task,
        layouts,
        by_level(agreement, vote_right, [(share, share) for share in shares]),
        by_level(
            np.minimum(first.probability, 1.0),
            first_right,
            list(pairwise(PROBABILITIES)),
        ),
        clustered(vote_right, each),
        clustered(first_right, each),
    )


def by_level(
    signal: NDArray[np.float64], right: NDArray[np.bool_], levels: Sequence[tuple[float, float]]
) -> tuple[Level, ...]:
    """Accuracy of answers grouped by a signal of trust.

    Args:
        signal: ``[n]`` of each answer, such as its probability.
        right: ``[n]`` whether it is right.
        levels: least and most of each group, ascending, without gaps in what occurs; an answer belongs to
            the last group whose least is not above its signal.

    Raises:
        InputError: for arrays that do not fit, or a signal below all groups.

    >>> low, high = by_level(np.array([0.2, 0.9, 1.0]), np.array([False, True, True]), [(0, 0.5), (0.5, 1)])
    >>> low.accuracy.mean, high.accuracy.mean, high.told
    (0.0, 1.0, 0.95)
    """
    if signal.shape != right.shape or signal.ndim != 1:
        raise InputError(
            f"signal and right have shapes {signal.shape} and {right.shape}: give one an answer."
        )
    least = np.array([low for low, _ in levels])
    groups = np.searchsorted(least, signal, side="right") - 1
    if (groups < 0).any():
        raise InputError(f"The signal {signal.min()} is below all groups: the first is {levels[0]}.")
    parts = clustered_by(right, np.arange(len(right)), groups, len(levels))
    told = [float(signal[groups == i].mean()) if part.n else np.nan for i, part in enumerate(parts)]
    return tuple(
        Level(low, high, mean, part) for (low, high), mean, part in zip(levels, told, parts, strict=True)
    )
