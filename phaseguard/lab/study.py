"""One on-device model examined: accuracy by phase at several lengths, its period, what moves its profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phaseguard.lab.controls import CONTROLS, Control, ControlledModel
from phaseguard.lab.cycling import Cycling, cycle_gates, parts_of
from phaseguard.lab.measure import collect
from phaseguard.lab.model import LabModel
from phaseguard.lab.probes import FillerProbe, by_depth, filler_probe
from phaseguard.lab.spec import Spec
from phaseguard.lab.store import load_file
from phaseguard.lab.tasks import Task, draw
from phaseguard.stats import Accuracy, PeriodScan, PhaseComparison, compare_phases, scan_periods

SEED = 5
FACTORS, MORE_FACTORS = (1, 4), (1, 2, 4, 8)
BUDGET = 0.5
LEAST = 320  # questions below which phases are not compared
_SPREAD = 16  # contexts of 16 lengths: the raw window at their end then stands at every phase
_NO_GRID = 4  # phases that are told apart where a scheme has none


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to examine.

    Attributes:
        name, path: what it is called and where its weights lie.
        spec: its scheme and sizes.
        seed, echoes: of its training; see :class:`phaseguard.lab.train.Recipe`.
    """

    name: str
    path: Path
    spec: Spec
    seed: int
    echoes: int


@dataclass(frozen=True, slots=True)
class Row:
    """Accuracy by phase at one length.

    Attributes:
        factor: context as a multiple of the training length; ``context``: its tokens, to which up to 15 are
            added so that its end stands at no phase more than at others.
        comparison: accuracy by phase of the answer's first token, gap and strong phases.
        scan: the period that was found, with the test.
        depths: accuracy by depth of the record, from the start of the context to its end.
    """

    factor: int
    context: int
    comparison: PhaseComparison
    scan: PeriodScan
    depths: tuple[Accuracy, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every figure with its interval, as plain values."""
        found = self.comparison
        return {
            "factor": self.factor,
            "context": self.context,
            "phases": [phase.to_dict() for phase in found.phases],
            "gap": _points(found.gap),
            "gap_low": _points(found.gap_low),
            "gap_high": _points(found.gap_high),
            "strong": list(found.strong),
            **_scan_dict(self.scan),
            "depths": [depth.to_dict() for depth in self.depths],
        }


@dataclass(frozen=True, slots=True)
class ControlRow:
    """A scheme that is applied at inference to the full-attention model.

    Attributes:
        control: its name; ``budget``: share of tokens to keep; ``read``: share that was readable.
        period: of its own grid, None where it has none.
        row: what was found; phases are those of the grid, or of 4 tokens where there is none.
    """

    control: str
    budget: float
    read: float
    period: int | None
    row: Row

    def to_dict(self) -> dict[str, Any]:
        """Every figure with its interval, as plain values."""
        told = {"control": self.control, "budget": self.budget, "read": round(self.read, 3)}
        return {**told, "grid": self.period, **self.row.to_dict()}


@dataclass(frozen=True, slots=True)
class Study:
    """One model examined.

    Attributes:
        subject: the model.
        rows: one a length.
        cycles: profiles after each part of the kernel was moved; empty for all but the first of a kind.
        filler: the filler probe; None for all but the first of a kind.
        controls: schemes applied at inference; empty for all but full attention.
    """

    subject: Subject
    rows: tuple[Row, ...]
    cycles: tuple[Cycling, ...]
    filler: FillerProbe | None
    controls: tuple[ControlRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every figure with its interval, as plain values."""
        return {
            "model": self.subject.name,
            "seed": self.subject.seed,
            "spec": asdict(self.subject.spec),
            "rows": [row.to_dict() for row in self.rows],
            "cycling": [_cycling_dict(cycling) for cycling in self.cycles],
            "filler": None if self.filler is None else _filler_dict(self.filler),
            "controls": [row.to_dict() for row in self.controls],
        }


def _points(gap: float) -> float:
    return round(gap, 1)


def _scan_dict(scan: PeriodScan) -> dict[str, Any]:
    return {
        "period": scan.period,
        "p_value": round(scan.p_value, 4),
        "tests": [asdict(test) for test in scan.tests],
    }


def _cycling_dict(cycling: Cycling) -> dict[str, Any]:
    moves = [
        {
            "by": turn.by,
            "phases": [phase.to_dict() for phase in turn.phases],
            "shift": turn.shift,
            "correlation": round(turn.correlation, 3),
        }
        for turn in cycling.cycled
    ]
    return {"part": cycling.part, "follows": cycling.follows, "moves": moves}


def _filler_dict(probe: FillerProbe) -> dict[str, Any]:
    return {"by_filler": [one.to_dict() for one in probe.by_filler], **_scan_dict(probe.scan)}


def examine(subject: Subject, *, leads: bool, questions: int) -> Study:
    """Examine one model.

    Args:
        subject: the model.
        leads: whether it is the first of its kind, of which more is asked.
        questions: least number of questions a row; half as many for gate cycling and the filler probe.

    Raises:
        InputError: when its weights cannot be read, or too few questions leave a phase without any.

    >>> from phaseguard.lab.store import find_file
    >>> from phaseguard.lab.spec import make_spec
    >>> pair = Subject("pair2-s0", find_file("pair2-s0"), make_spec("pair2"), 0, 3)
    >>> [row.factor for row in examine(pair, leads=False, questions=320).rows]
    [1, 4]
    """
    model, task, half = load_file(subject.path), Task(), max(LEAST, questions // 2)
    period = subject.spec.stride or _NO_GRID
    rows = tuple(
        measure_row(model, task, factor, period=period, questions=questions)
        for factor in (MORE_FACTORS if leads else FACTORS)
    )
    if not leads:
        return Study(subject, rows, (), None, ())
    cycles = tuple(cycle_gates(model, task, part, questions=half, seed=SEED) for part in parts_of(model))
    filler = filler_probe(model, task, questions=half)
    controls = tuple(_controls(model, task, questions)) if subject.spec.full else ()
    return Study(subject, rows, cycles, filler, controls)


def measure_row(model: LabModel, task: Task, factor: int, *, period: int, questions: int) -> Row:
    """Accuracy by phase at a multiple of the training length, with everything that is told about it.

    Long contexts hold few keys that occur once, so questions come again; only the first of equals counts.

    Args:
        model: a trained model.
        task: what it was trained for.
        factor: multiple of its context.
        period: phases to tell apart.
        questions: least number of questions, those that come again among them.

    Raises:
        InputError: when too few questions leave a phase without any.

    >>> from phaseguard.lab.store import load_model
    >>> measure_row(load_model("csa4-s0"), Task(), 1, period=4, questions=1600).scan.period
    4
    """
    longer = task.scaled(factor)
    answers = collect(model, longer, questions=questions, seed=SEED, spread=_SPREAD).once()
    told = answers.right, answers.positions, answers.clusters
    depths = by_depth(answers, longer.context + _SPREAD - 1)
    return Row(factor, longer.context, compare_phases(*told, period), scan_periods(*told), depths)


def _controls(model: LabModel, task: Task, questions: int) -> Iterator[ControlRow]:
    for control in CONTROLS.values():
        for factor in FACTORS:
            yield _control_row(model, control, task, factor, questions)


def _control_row(model: LabModel, control: Control, task: Task, factor: int, questions: int) -> ControlRow:
    changed = ControlledModel(model.spec, model.weights, control, task.key_tokens, BUDGET)
    row = measure_row(changed, task, factor, period=control.period or _NO_GRID, questions=questions)
    drawn = draw(task.scaled(factor), 8, np.random.default_rng(SEED))
    read = changed.read_share(drawn.tokens, drawn.positions)
    return ControlRow(control.name, BUDGET, read, control.period, row)
