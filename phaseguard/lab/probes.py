"""Two probes beside accuracy by phase: the same text behind growing filler, and the depth of the record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.measure import Answers, first_asked
from phaseguard.lab.model import LabModel
from phaseguard.lab.tasks import PAD, Task, draw
from phaseguard.stats import Accuracy, PeriodScan, clustered, clustered_by, scan_periods

DEPTHS = 8
_BATCH = 32


@dataclass(frozen=True, slots=True)
class FillerProbe:
    """The same questions behind 0, 1, 2 ... filler tokens.

    Attributes:
        by_filler: accuracy by the number of filler tokens in front, of the answers that start at phase 0
            without any: so the number, mod the stride, is the answer's phase.
        scan: the period, tested on all records.
    """

    by_filler: tuple[Accuracy, ...]
    scan: PeriodScan


def filler_probe(
    model: LabModel,
    task: Task,
    *,
    most: int | None = None,
    questions: int = 1000,
    seed: int = 3,
    permutations: int = 999,
) -> FillerProbe:
    """Ask the same questions behind growing decorative filler: accuracy repeats with the model's stride.

    Args:
        model: a trained model.
        task: what to ask.
        most: filler tokens at most; twice the stride by default, 8 for full attention.
        questions: least number of questions; each is asked ``most + 1`` times.
        seed: of the texts.
        permutations: of the test.

    Raises:
        InputError: for less than one filler token.

    >>> from phaseguard.lab.store import load_model
    >>> len(filler_probe(load_model("pair2-s0"), Task(), questions=60).by_filler)
    5
    """
    stride = model.spec.stride or 4
    most = 2 * stride if most is None else most
    if most < 1:
        raise InputError(f"most is {most}: give at least one filler token, or there is nothing to compare.")
    right, values = _behind_filler(model, task, most, -(-questions // task.questions), seed)
    texts = np.arange(len(values)) // task.questions
    first = first_asked(values, texts)  # what comes again may be read in the raw window
    right, values, texts = right[:, first], values[first], texts[first]
    opens = values % stride == 0
    # questions of one text stand at all phases: each is a cluster of its own, asked behind every filler
    scan = scan_periods(
        right.ravel(),
        (np.arange(most + 1)[:, None] + values).ravel(),
        np.tile(np.arange(len(values)), most + 1),
        permutations=permutations,
    )
    return FillerProbe(tuple(clustered(row[opens], texts[opens]) for row in right), scan)


def _behind_filler(
    model: LabModel, task: Task, most: int, sequences: int, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """``[most + 1, n]`` which answers are right behind 0, 1, ... fillers; ``[n]`` where they stand."""
    rng = np.random.default_rng(seed)
    right, values = [], []
    for start in range(0, sequences, _BATCH):
        drawn = draw(task, min(_BATCH, sequences - start), rng)
        values.append(drawn.values.ravel())
        behind = []
        for filler in range(most + 1):
            front = np.full((len(drawn.tokens), filler), PAD)
            tokens = np.concatenate([front, drawn.tokens], 1)
            good = model.predict(tokens, drawn.positions + filler) == drawn.targets
            behind.append(good.reshape(-1, task.value_tokens).all(-1))
        right.append(np.stack(behind))
    return np.concatenate(right, 1), np.concatenate(values)


def by_depth(answers: Answers, context: int, depths: int = DEPTHS) -> tuple[Accuracy, ...]:
    """Accuracy by how deep the answer stands: equal slices of the context, from its start to its end.

    Args:
        answers: what a model answered.
        context: tokens of the context.
        depths: number of slices.

    Raises:
        InputError: for no slice, or more than tokens.

    >>> from phaseguard.lab.measure import collect
    >>> from phaseguard.lab.store import load_model
    >>> answers = collect(load_model("full-s0"), Task(), questions=200)
    >>> [depth.mean for depth in by_depth(answers, 96, 2)]
    [1.0, 1.0]
    """
    if not 1 <= depths <= context:
        raise InputError(f"depths is {depths}: give 1 to {context}, the tokens of the context.")
    slices = np.minimum(answers.positions * depths // context, depths - 1)
    return clustered_by(answers.right, answers.clusters, slices, depths)
