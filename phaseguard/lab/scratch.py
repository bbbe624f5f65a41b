"""Models for :mod:`phaseguard.lab.reproduce`, trained anew: one of each kind, for fewer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from phaseguard.lab.model import LabModel
from phaseguard.lab.reproduce import leading, run_all
from phaseguard.lab.store import save_model
from phaseguard.lab.study import Subject
from phaseguard.lab.tasks import Task
from phaseguard.lab.train import Recipe, train

STEPS = 1500


def train_kinds(
    found: Sequence[Subject],
    folder: Path,
    *,
    steps: int = STEPS,
    seed: int = 0,
    workers: int = 2,
    report: Callable[[str], None] | None = None,
) -> tuple[Subject, ...]:
    """Train one model of each kind among the given ones.

    Args:
        found: models whose kinds are wanted; their own weights are not looked at.
        folder: where weights go, and checkpoints, from which an interrupted run goes on.
        steps: batches of 32 sequences for each.
        seed: of all of them.
        workers: processes, each with one thread.
        report: called with the name of each model when it is done.

    Returns:
        The trained models, in the order of their kinds.

    Raises:
        TrainingError: when a loss is no number, or a checkpoint belongs to another run.
        InputError: for no worker, or steps below 1.
    """
    kinds = leading(found)
    jobs = [partial(_train_one, subject, folder, steps, seed) for subject in kinds]
    done: dict[str, Subject] = {}
    for trained in run_all(jobs, workers):
        done[trained.name] = trained
        if report is not None:
            report(trained.name)
    return tuple(done[subject.name] for subject in kinds)


def _train_one(subject: Subject, folder: Path, steps: int, seed: int) -> Subject:
    target = folder / f"{subject.name}.safetensors"
    recipe = Recipe((Task(),), steps=steps, echoes=subject.echoes)
    weights = train(subject.spec, recipe, seed=seed, checkpoint=target.with_suffix(".checkpoint"))
    told = {"seed": seed, "steps": steps, "echoes": subject.echoes, "tasks": [asdict(Task())]}
    save_model(target, LabModel(subject.spec, weights), told)
    return replace(subject, path=target, seed=seed)
