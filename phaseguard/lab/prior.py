"""A prior for real profiles, or none: do seeds and tasks agree which phases are strong on padded prompts?

Every cell is one model (a seed) on one task (a setting and an answer length): accuracy when pads in front of
the asked record bring its answer to each phase. A prior for an answer length is offered only when no cell
contradicts the common order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from phaseguard.lab.model import LabModel
from phaseguard.lab.padded import by_target
from phaseguard.lab.tasks import Task
from phaseguard.profiles import ShapeStrength
from phaseguard.stats import Accuracy


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one task.

    Attributes:
        model: its name.
        task: what was asked.
        phases: accuracy by the phase that pads brought the answer to.
    """

    model: str
    task: Task
    phases: tuple[Accuracy, ...]

    @property
    def label(self) -> str:
        """The task's setting, with what is not standard about its records."""
        keys = f", keys of {self.task.key_tokens}" if self.task.key_tokens > 1 else ""
        return f"{self.task.setting}{keys}{f', gap {self.task.gap}' if self.task.gap else ''}"

    @property
    def flat(self) -> bool:
        """Whether no two phases differ: all intervals share a point."""
        return max(a.low for a in self.phases) <= min(a.high for a in self.phases)


@dataclass(frozen=True, slots=True)
class Shape:
    """What all cells of one answer length say together.

    Attributes:
        tokens: tokens of the answer.
        cells: by model and task.
    """

    tokens: int
    cells: tuple[Cell, ...]

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean accuracy at each phase, every cell counting the same."""
        return tuple(
            sum(phase.mean for phase in phases) / len(self.cells)
            for phases in zip(*(cell.phases for cell in self.cells), strict=True)
        )

    @property
    def order(self) -> tuple[int, ...]:
        """Phases, the best on average first."""
        mean = self.mean
        return tuple(sorted(range(len(mean)), key=lambda phase: -mean[phase]))

    @property
    def contradictions(self) -> tuple[tuple[Cell, int, int], ...]:
        """Cells where a phase is surely better than one that is better on average: cell, it, the other."""
        mean = self.mean
        return tuple(
            (cell, one, other)
            for cell in self.cells
            for one, other in permutations(range(len(mean)), 2)
            if mean[one] < mean[other] and cell.phases[one].low > cell.phases[other].high
        )

    @property
    def best_everywhere(self) -> bool:
        """Whether in every cell the phase that is best on average is best or not told apart from the best."""
        best = self.order[0]
        return all(cell.phases[best].high >= max(phase.low for phase in cell.phases) for cell in self.cells)

    @property
    def strength(self) -> ShapeStrength | None:
        """The prior: the mean, with the lowest and highest cell as its interval; None without agreement."""
        if self.contradictions or all(cell.flat for cell in self.cells):
            return None
        columns = list(zip(*(cell.phases for cell in self.cells), strict=True))
        return ShapeStrength(
            mean=tuple(round(value, 4) for value in self.mean),
            low=tuple(round(min(phase.low for phase in column), 4) for column in columns),
            high=tuple(round(max(phase.high for phase in column), 4) for column in columns),
            n=min(sum(phase.n for phase in column) for column in columns),
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures, as plain values."""
        strength = self.strength
        return {
            "answer_tokens": self.tokens,
            "mean": [round(value, 4) for value in self.mean],
            "order": list(self.order),
            "agreed": strength is not None,
            "best_phase_agreed": self.best_everywhere,
            "contradictions": [
                {"model": cell.model, "task": cell.label, "better": one, "worse": other}
                for cell, one, other in self.contradictions
            ],
            "cells": [
                {
                    "model": cell.model,
                    "task": cell.label,
                    "setting": cell.task.setting,
                    "key_tokens": cell.task.key_tokens,
                    "gap": cell.task.gap,
                    "accuracy": [round(phase.mean, 4) for phase in cell.phases],
                    "low": [round(phase.low, 4) for phase in cell.phases],
                    "high": [round(phase.high, 4) for phase in cell.phases],
                    "n": cell.phases[0].n,
                }
                for cell in self.cells
            ],
        }


def find_prior(
    models: Mapping[str, tuple[LabModel, Iterable[Task]]],
    *,
    n: int = 400,
    seed: int = 2,
    report: Callable[[str], None] | None = None,
) -> tuple[Shape, ...]:
    """Measure every model on its tasks, and put the cells of each answer length together.

    Args:
        models: by name, each with the tasks it was trained on; all of one stride.
        n: questions a phase in each cell.
        seed: of the texts.
        report: called with the name of each model when it is done.

    >>> from phaseguard.lab.store import load_model
    >>> shapes = find_prior({"pair2-s0": (load_model("pair2-s0"), [Task()])}, n=50)
    >>> shapes[0].tokens, len(shapes[0].mean)
    (1, 2)
    """
    cells: dict[int, list[Cell]] = {}
    for name, (model, tasks) in models.items():
        for task in tasks:
            phases = by_target(model, task, n=n, seed=seed)
            cells.setdefault(task.value_tokens, []).append(Cell(name, task, phases))
        if report is not None:
            report(name)
    return tuple(Shape(tokens, tuple(cells[tokens])) for tokens in sorted(cells))
