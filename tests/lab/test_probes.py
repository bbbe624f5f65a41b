"""The filler probe and the depth sweep: what they count, and a period only where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.lab.ask import ask
from phaseguard.lab.measure import Answers, collect
from phaseguard.lab.probes import by_depth, filler_probe
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import PAD, Task, draw

CSA = load_model("csa4-s0")


def test_the_filler_probe_asks_the_same_text_behind_filler() -> None:
    task = Task("ask", questions=1)
    found = filler_probe(CSA, task, most=3, questions=60, seed=7)
    drawn = draw(task, 32, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    batches = [draw(task, 32, rng), draw(task, 28, rng)]
    np.testing.assert_array_equal(batches[0].tokens, drawn.tokens)
    for filler, accuracy in enumerate(found.by_filler):
        right = n = 0
        for batch in batches:
            rows = np.flatnonzero(batch.values[:, 0] % 4 == 0)
            prompts = [np.concatenate([np.full(filler, PAD), batch.tokens[row, :-1]]) for row in rows]
            right += int(ask(CSA, prompts).right(batch.targets[rows]).sum())
            n += len(rows)
        assert (accuracy.right, accuracy.n) == (right, n)


def test_the_filler_probe_shows_the_stride() -> None:
    found = filler_probe(CSA, Task("ask"), questions=800)
    assert found.scan.period == 4
    means = [one.mean for one in found.by_filler]
    assert len(means) == 9
    assert max(abs(means[i] - means[i + 4]) for i in range(5)) < 0.05, "it repeats"
    assert max(means) - min(means) > 0.05
    assert filler_probe(load_model("full-s0"), Task("ask"), questions=300).scan.period is None


def test_depths_are_equal_slices() -> None:
    positions = np.array([0, 4, 5, 9, 10, 19])
    answers = Answers(np.array([True, True, False, False, True, False]), positions, np.arange(6))
    found = by_depth(answers, 20, 4)
    assert [(depth.right, depth.n) for depth in found] == [(2, 2), (0, 2), (1, 1), (0, 1)]
    real = collect(CSA, Task("ask"), questions=320)
    assert sum(depth.n for depth in by_depth(real, 96)) == 320


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least one filler token"):
        filler_probe(CSA, Task("ask"), most=0)
    answers = collect(CSA, Task("ask"), questions=16)
    for depths in (0, 97):
        with pytest.raises(InputError, match="give 1 to 96"):
            by_depth(answers, 96, depths)


def test_only_the_first_of_equal_questions_counts() -> None:
    """Ask-anything contexts hold few keys that occur once, so questions come again, near their answer."""
    task = Task("ask").scaled(8)
    everything = collect(load_model("chunk4-s0"), task, questions=1600)
    once = everything.once()
    pairs = list(zip(once.clusters.tolist(), once.positions.tolist(), strict=True))
    assert (
        len(set(pairs)) == len(pairs) == len(set(zip(everything.clusters, everything.positions, strict=True)))
    )
    assert len(once.right) < 0.7 * len(everything.right)
    assert once.right.mean() < everything.right.mean()
