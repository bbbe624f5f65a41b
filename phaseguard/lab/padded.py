"""Accuracy on padded prompts: where an answer stands well once pads in front of its record have moved it.

The profile of raw prompts is another one: pads in front of a record also thin the chunk it shares.
So strengths for aligning are measured with pads, and these are the pads that aligning adds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from phaseguard.errors import InputError
from phaseguard.lab.ask import ask
from phaseguard.lab.model import LabModel
from phaseguard.lab.tasks import PAD, Ints, Task, draw
from phaseguard.profiles import PhaseProfile, Provenance, ShapeStrength
from phaseguard.stats import Accuracy, clustered


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """One question a text: its record, and the answer.

    Attributes:
        texts: ``[n, T]`` contexts.
        asked: ``[n, k]`` the question behind each.
        answers: ``[n, V]``; ``values``: ``[n]``, where each answer starts in its context.
        starts, ends: ``[n]``, the record around it.
    """

    texts: Ints
    asked: Ints
    answers: Ints
    values: Ints
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.texts)

    def prompt(self, row: int, pads: int = 0, at: int = 0) -> Ints:
        """One text with its question, and ``pads`` pads in front of the token ``at``."""
        text = np.insert(self.texts[row], at, np.full(pads, PAD))
        return np.concatenate([text, self.asked[row]])


def questions(task: Task, n: int, rng: np.random.Generator, *, window: int = 8) -> Questions:
    """Draw ``n`` texts with one question each, whose record ends before the last ``window`` tokens.

    What stands in a model's raw window is read uncompressed, at any phase. In ``sentences`` a code is asked.

    Raises:
        InputError: when the context is too short for that.

    >>> drawn = questions(Task("sentences", records=4), 5, np.random.default_rng(0))
    >>> drawn.asked.shape, drawn.prompt(0, pads=3, at=int(drawn.starts[0])).shape
    ((5, 3), (102,))
    """
    if task.context < window + task.record_tokens + 1:
        raise InputError(f"context={task.context}: no record ends before the last {window} tokens.")
    parts: list[Questions] = []
    while sum(len(part) for part in parts) < n:
        drawn = draw(replace(task, questions=1, echoes=0), n, rng)
        starts = drawn.values[:, 0] - task.record_front
        ends = starts + task.record_tokens
        outside = ends <= task.context - window
        last = int(drawn.positions[0, 0]) + 1
        columns = (
            drawn.tokens[:, : task.context],
            drawn.tokens[:, task.context : last],
            drawn.targets,
            drawn.values[:, 0],
            starts,
            ends,
        )
        parts.append(Questions(*(column[outside] for column in columns)))
    return Questions(*(np.concatenate(column)[:n] for column in zip(*map(_columns, parts), strict=True)))


def _columns(drawn: Questions) -> tuple[Ints, ...]:
    return tuple(getattr(drawn, field.name) for field in fields(drawn))


def by_target(
    model: LabModel,
    task: Task,
    *,
    period: int | None = None,
    extra: int = 0,
    n: int = 1000,
    seed: int = 2,
) -> tuple[Accuracy, ...]:
    """Accuracy when pads in front of its record bring an answer to each phase; all are asked at every phase.

    Args:
        model: a trained model.
        task: what to ask.
        period: number of phases; the model's stride, or 4 for full attention.
        extra: more pads in front, a multiple of the period, which push what stands before further away.
        n: questions, each in a text of its own.
        seed: of the texts.

    Raises:
        InputError: when ``extra`` is no multiple of the period.

    >>> from phaseguard.lab.store import load_model
    >>> [phase.n for phase in by_target(load_model("csa4-s0"), Task(), n=20)]
    [20, 20, 20, 20]
    """
    period = period or model.spec.stride or 4
    if extra % period:
        raise InputError(f"extra={extra} would change the phase: give a multiple of {period}.")
    drawn = questions(task, n, np.random.default_rng(seed), window=model.spec.raw)
    found = []
    for phase in range(period):
        pads = (phase - drawn.values) % period + extra
        prompts = [drawn.prompt(i, int(pads[i]), int(drawn.starts[i])) for i in range(n)]
        right = ask(model, prompts, task.value_tokens).right(drawn.answers)
        found.append(clustered(right, np.arange(n)))
    return tuple(found)


def strength(accuracies: tuple[Accuracy, ...]) -> ShapeStrength:
    """Accuracy by phase as a profile keeps it."""
    return ShapeStrength(
        mean=tuple(round(a.mean, 4) for a in accuracies),
        low=tuple(round(min(a.low, a.mean), 4) for a in accuracies),
        high=tuple(round(max(a.high, a.mean), 4) for a in accuracies),
        n=min(a.n for a in accuracies),
    )


def calibrated(
    model: LabModel, name: str, tasks: tuple[Task, ...], *, n: int = 1000, seed: int = 2
) -> PhaseProfile:
    """A profile of an on-device model, its strengths measured on padded prompts.

    Args:
        model: a trained model with a compressed cache.
        name: its name, of letters, digits, dots and dashes.
        tasks: one for each length of answer.
        n: questions a phase.
        seed: of the texts.

    >>> from phaseguard.lab.store import load_model
    >>> calibrated(load_model("csa4-s0"), "csa4-s0", (Task(),), n=300).strong
    """
    spec = model.spec
    return PhaseProfile(
        name=f"lab-{name}",
        model=name,
        tokenizer="phaseguard-lab",
        period=spec.stride or 1,
        strides=(spec.stride,) if spec.stride else (),
        window=spec.raw,
        strengths={str(task.value_tokens): strength(by_target(model, task, n=n, seed=seed)) for task in tasks}
        if spec.stride
        else None,
        provenance=Provenance(kind="on-device", source=f"on-device model {name}, padded prompts, n={n}"),
    )
