"""Answers with a known effect of phase, for the tests of statistics."""

from __future__ import annotations

import numpy as np

from phaseguard.lab.measure import Answers

SHAPES = ("ramp", "half", "dip")


def draw_answers(
    rng: np.random.Generator,
    period: int,
    gap: float,
    *,
    shape: str = "ramp",
    clusters: int = 250,
    each: int = 16,
    paired: bool = False,
) -> Answers:
    """Answers whose chance of being right depends on the phase, in clusters of different difficulty.

    ``shape`` is how the chance falls over the phases: step by step, in two halves, or at one of them.
    ``paired`` asks each item at ``each`` indices in a row; otherwise indices are random.
    """
    steps = np.arange(period)
    falls = {
        "ramp": steps / max(1, period - 1),
        "half": (steps < period // 2).astype(float),
        "dip": (steps == 1).astype(float),
    }[shape]
    chance = 0.8 - gap * rng.permutation(falls) if shape == "dip" else 0.8 - gap * falls
    starts = rng.integers(0, 10_000, clusters)[:, None]
    positions = (starts + np.arange(each) if paired else rng.integers(0, 96, (clusters, each))).ravel()
    members = np.repeat(np.arange(clusters), each)
    ease = rng.normal(0, 0.7, clusters)[members]  # on the scale of log odds
    odds = np.log(chance / (1 - chance))[positions % period] + ease
    return Answers(rng.random(len(odds)) < 1 / (1 + np.exp(-odds)), positions, members)
