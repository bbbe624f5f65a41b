"""Training of the on-device model with torch (extra ``lab``): deterministic by seed, resumable.

The recipe is a mixture of tasks with a curriculum: every task starts with a short context and grows as
soon as the running accuracy on it is above a threshold. With a fixed ramp nothing is learnt.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from phaseguard.errors import InputError, PhaseGuardError
from phaseguard.files import write_whole
from phaseguard.lab.network import Network
from phaseguard.lab.spec import Spec
from phaseguard.lab.tasks import VOCABULARY, Task, draw

WARM_UP = 100
_SMOOTH = 0.8


class TrainingError(PhaseGuardError):
    """Training that cannot go on: a loss that is not a number, or a checkpoint of another run."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained.

    Attributes:
        tasks: visited in turn, one batch each.
        steps: batches in all; ``batch``: sequences in each.
        rate: peak learning rate, reached after a warm-up and then lowered by a cosine.
        start: share of a task's length to begin with; ``grow``: added at each visit above ``above``.
        echoes: questions of a sequence that come again, so that a model reads its raw window too.
    """

    tasks: tuple[Task, ...]
    steps: int = 3000
    batch: int = 32
    rate: float = 3e-3
    start: float = 0.35
    grow: float = 0.005
    above: float = 0.4
    echoes: int = 3

    def __post_init__(self) -> None:
        if not self.tasks or self.steps < 1 or self.batch < 1:
            raise InputError("A recipe needs a task, and steps and a batch of at least 1.")
        for task in self.tasks:
            replace(task, echoes=self.echoes)  # refuses what does not fit


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress bar shows: step, loss of the batch, running accuracy and length of its task."""

    step: int
    steps: int
    loss: float
    accuracy: float
    share: float


@dataclass(slots=True)
class _Run:
    """A training run and everything that a checkpoint holds of it."""

    spec: Spec
    recipe: Recipe
    seed: int
    network: Network
    optimizer: torch.optim.Optimizer
    rng: np.random.Generator
    step: int
    shares: list[float]
    accuracies: list[float]

    @classmethod
    def start(cls, spec: Spec, recipe: Recipe, seed: int) -> _Run:
        torch.manual_seed(seed)
        network = Network(spec)
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=recipe.rate, weight_decay=0.01, betas=(0.9, 0.98)
        )
        tasks = len(recipe.tasks)
        rng = np.random.default_rng(seed)
        return cls(spec, recipe, seed, network, optimizer, rng, 0, [recipe.start] * tasks, [0.0] * tasks)

    @property
    def identity(self) -> dict[str, Any]:
        return {"spec": self.spec.to_dict(), "recipe": asdict(self.recipe), "seed": self.seed}

    def save(self, path: Path) -> None:
        """Write a checkpoint; the old one stays whole until the new one is."""
        held = {
            "run": self.identity,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.bit_generator.state,
            "state": (self.step, self.shares, self.accuracies),
        }
        whole = io.BytesIO()
        torch.save(held, whole)
        write_whole(path, [whole.getvalue()])

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint of this very run."""
        held = torch.load(path, weights_only=True)
        if held["run"] != self.identity:
            raise TrainingError(f"{path} is a checkpoint of another run: remove it, or give another file.")
        self.network.load_state_dict(held["network"])
        self.optimizer.load_state_dict(held["optimizer"])
        self.rng.bit_generator.state = held["rng"]
        self.step, self.shares, self.accuracies = held["state"]

    def advance(self) -> Progress:
        """Draw one batch and learn from it."""
        recipe, number = self.recipe, self.step % len(self.recipe.tasks)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate * _schedule(self.step, recipe.steps)
        task = replace(recipe.tasks[number].scaled(self.shares[number]), echoes=recipe.echoes)
        drawn = draw(task, recipe.batch, self.rng)
        targets = torch.from_numpy(drawn.targets)
        logits = self.network(torch.from_numpy(drawn.tokens), torch.from_numpy(drawn.positions))
        loss: Tensor = functional.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))
        value = float(loss.item())
        if not math.isfinite(value):
            raise TrainingError(
                f"The loss became {value} at step {self.step}: train with a lower rate than {recipe.rate} or "
                "another seed."
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        right = float((logits.argmax(-1) == targets).float().mean())
        self.accuracies[number] = _SMOOTH * self.accuracies[number] + (1 - _SMOOTH) * right
        if self.accuracies[number] > recipe.above:
            self.shares[number] = min(1.0, self.shares[number] + recipe.grow * len(recipe.tasks))
        self.step += 1
        return Progress(self.step, recipe.steps, value, self.accuracies[number], self.shares[number])


def train(
    spec: Spec,
    recipe: Recipe,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    every: int = 200,
    report: Callable[[Progress], None] | None = None,
) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Train a model and return its weights.

    Args:
        spec: the model.
        recipe: tasks, steps and rates.
        seed: of the weights and the batches; one thread is used, so that equal seeds give equal weights.
        checkpoint: file to write every ``every`` steps and to go on from when it exists; removed at the end.
        every: steps between checkpoints.
        report: called after every step.

    Raises:
        TrainingError: when the loss is no number, or the checkpoint belongs to another run.
    """
    with _one_thread():
        run = _Run.start(spec, recipe, seed)
        if checkpoint is not None and checkpoint.exists():
            run.resume(checkpoint)
        while run.step < recipe.steps:
            progress = run.advance()
            if report is not None:
                report(progress)
            if checkpoint is not None and run.step % every == 0 and run.step < recipe.steps:
                run.save(checkpoint)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return {name: value.detach().numpy().copy() for name, value in run.network.state_dict().items()}


def _schedule(step: int, steps: int) -> float:
    return min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * step / steps))


class _one_thread:  # noqa: N801 - a context manager, used like a function
    """Run torch on one thread with denormals flushed, and give back the caller's setting."""

    def __enter__(self) -> None:
        self._threads = torch.get_num_threads()
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._threads)
        torch.set_flush_denormal(False)
