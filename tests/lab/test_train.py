"""Training is deterministic, can be interrupted, stops at NaN, and learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from phaseguard.errors import InputError
from phaseguard.lab.measure import by_phase
from phaseguard.lab.model import LabModel
from phaseguard.lab.spec import make_spec
from phaseguard.lab.tasks import Task, standard_tasks
from phaseguard.lab.train import Progress, Recipe, TrainingError, train

SHORT = Recipe((Task("records", 32, 4, 4), Task("ask", 32, 4, 4)), steps=8, batch=4)


class InterruptedRunError(Exception):
    pass


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    one, two = (train(make_spec("csa4"), SHORT, seed=1) for _ in range(2))
    other = train(make_spec("csa4"), SHORT, seed=2)
    assert all(np.array_equal(one[key], two[key]) for key in one)
    assert not np.array_equal(one["head.weight"], other["head.weight"])


def test_interrupted_training_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.pt"
    whole = train(make_spec("pair2"), SHORT, seed=3)

    def stop(progress: Progress) -> None:
        if progress.step == 6:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        train(make_spec("pair2"), SHORT, seed=3, checkpoint=checkpoint, every=4, report=stop)
    assert checkpoint.exists()
    steps: list[int] = []
    resumed = train(
        make_spec("pair2"),
        SHORT,
        seed=3,
        checkpoint=checkpoint,
        every=4,
        report=lambda p: steps.append(p.step),
    )
    assert steps == [5, 6, 7, 8]
    assert all(np.array_equal(whole[key], resumed[key]) for key in whole)
    assert not checkpoint.exists()


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.pt"

    def stop(progress: Progress) -> None:
        if progress.step == 5:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        train(make_spec("pair2"), SHORT, seed=3, checkpoint=checkpoint, every=4, report=stop)
    with pytest.raises(TrainingError, match="another run"):
        train(make_spec("pair2"), SHORT, seed=4, checkpoint=checkpoint)


def test_a_loss_that_is_no_number_stops() -> None:
    wild = Recipe(SHORT.tasks, steps=120, batch=4, rate=1e18)
    with pytest.raises(TrainingError, match="lower rate"):
        train(make_spec("chunk4"), wild)


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    train(make_spec("full"), Recipe(SHORT.tasks, steps=1, batch=2))
    assert torch.get_num_threads() == before


def test_recipes_are_checked() -> None:
    with pytest.raises(InputError):
        Recipe(())
    with pytest.raises(InputError):
        Recipe(SHORT.tasks, steps=0)
    with pytest.raises(InputError):
        standard_tasks(("prose",))  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_learns() -> None:
    """Full attention answers records after a short training, far above chance (1 in 128)."""
    task = Task("records", 48, 8, 8)
    weights = train(make_spec("full"), Recipe((task,), steps=1000))
    found = by_phase(LabModel(make_spec("full"), weights), task, questions=1000)
    assert min(phase.low for phase in found) > 0.5
