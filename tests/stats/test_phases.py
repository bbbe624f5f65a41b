"""Gaps and strong phases: the intervals hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.stats import compare_phases
from tests.stats.drawn import draw_answers


@pytest.mark.parametrize(("gap", "shape"), [(0.0, "ramp"), (0.02, "dip"), (0.25, "half")])
def test_gap_and_strong_phases_hold_the_truth(gap: float, shape: str) -> None:
    rng = np.random.default_rng(5)
    truth = _truth(gap)
    held = 0
    for _ in range(200):
        answers = draw_answers(rng, 4, gap, shape=shape, clusters=60)
        found = compare_phases(answers.right, answers.positions, answers.clusters, 4)
        assert found.gap_low <= found.gap <= found.gap_high
        held += found.gap_low <= truth <= found.gap_high
    assert held >= 184, "95% of all binomials with 200 trials at 95% are within"


def _truth(gap: float) -> float:
    """The gap in points when difficulty of the clusters has pulled the shares together."""
    ease = np.random.default_rng(0).normal(0, 0.7, 100_000)
    shares = [np.mean(1 / (1 + np.exp(-np.log(c / (1 - c)) - ease))) for c in (0.8, 0.8 - gap)]
    return 100 * float(shares[0] - shares[1])


def test_the_best_phase_is_nearly_always_among_the_strong() -> None:
    rng = np.random.default_rng(6)
    kept = dropped = 0
    for _ in range(100):
        answers = draw_answers(rng, 4, 0.3, clusters=120)
        strong = compare_phases(answers.right, answers.positions, answers.clusters, 4).strong
        kept += 0 in strong
        dropped += 3 not in strong
    assert kept >= 95
    assert dropped >= 95


def test_a_flat_model_has_only_strong_phases() -> None:
    found = compare_phases(np.ones(800, bool), np.arange(800), np.arange(800) // 8, 4)
    assert found.strong == (0, 1, 2, 3)
    assert (found.gap, found.gap_low) == (0.0, 0.0)
    assert 0 < found.gap_high < 5, "even without an error there is room for one"


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="Phase 3 of period 4 was never asked"):
        compare_phases(np.ones(3, bool), np.arange(3), np.zeros(3, int), 4)
    with pytest.raises(InputError, match="at least 2"):
        compare_phases(np.ones(3, bool), np.arange(3), np.zeros(3, int), 1)
