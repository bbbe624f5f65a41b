"""The scan of labelled periods: its covariance and evidence by definition, and what is refused."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.stats import scan_labelled
from phaseguard.stats.evidence import FREE, FREE_SIZES, SIZE, Design
from tests.stats.drawn import draw_answers

RESIDUALS = (np.array([2.0, -1.0, -1.0]), np.array([0.5, 0.5, -1.5, 0.5]))
POSITIONS = np.array([4, 5, 7, 1, 2, 3, 8])


def small_design(periods: tuple[int, ...] = (2, 3)) -> Design:
    sizes = np.array([len(one) for one in RESIDUALS])
    variances = np.array([float(one @ one) / (len(one) - 1) for one in RESIDUALS])
    return Design.of({"answer": POSITIONS}, sizes, variances, periods)


def test_sums_have_variance_one_over_all_relabellings() -> None:
    """Every permutation within clusters, enumerated."""
    design = small_design()
    every = [np.concatenate(one) for one in product(*(list(permutations(r)) for r in RESIDUALS))]
    sums = np.array(every) @ design.phases
    for block in design.blocks:
        here = sums[:, block.columns]
        assert np.allclose(here.mean(0), 0)
        assert np.allclose(np.square(here @ block.shapes).mean(0), 1)
        assert np.allclose(np.cov((here @ block.whitened).T, ddof=0), np.eye(block.whitened.shape[1]))
        assert np.exp(block.weights).sum() == pytest.approx(1)


def test_turned_sums_are_those_of_moved_indices() -> None:
    design = small_design((2, 3, 5))
    members, offsets = np.repeat([0, 1], [3, 4]), np.array([[0, 0], [7, 3], [10, 11]])
    sums = np.add.reduceat(np.concatenate(RESIDUALS)[:, None] * design.phases, [0, 3])
    for row, moved in zip(design.turned(sums, offsets), offsets, strict=True):
        for block in design.blocks:
            phases = (POSITIONS + moved[members]) % block.period
            wanted = np.bincount(phases, np.concatenate(RESIDUALS), block.period)
            assert np.allclose(row[block.columns], wanted)


def test_evidence_is_the_averaged_ratio_of_densities() -> None:
    design = small_design()
    sums = np.concatenate(RESIDUALS) @ design.phases
    for at, block in enumerate(design.blocks):
        here = sums[block.columns]
        shaped = sum(
            np.exp(weight) * density(z, 1 + SIZE) / density(z, 1)
            for weight, z in zip(block.weights, here @ block.shapes, strict=True)
        )
        free = here @ block.whitened
        ratio = sum(
            weight * np.prod([density(z, 1 + size / len(free)) / density(z, 1) for z in free])
            for size, weight in FREE_SIZES
        )
        prior = {2: 8.0, 3: 1.0}[block.period] / np.sqrt(block.period)
        wanted = np.log(((1 - FREE) * shaped + FREE * ratio) * prior)
        assert design.evidence(sums[None])[0, at] == pytest.approx(wanted)


def density(z: float, variance: float) -> float:
    return float(np.exp(-z * z / (2 * variance)) / np.sqrt(variance))


@pytest.mark.parametrize("period", [3, 5, 6, 7, 10, 12, 16])
def test_periods_that_are_no_power_of_two_are_found_too(period: int) -> None:
    answers = draw_answers(np.random.default_rng(period), period, 0.5, shape="half", clusters=80, paired=True)
    found = scan_labelled(answers.right, {"answer": answers.positions}, answers.clusters)
    assert (found.label, found.lead, found.scan.period) == ("answer", 0.0, period)
    assert [test.period for test in found.scan.tests] == list(range(2, 17))
    assert all(test.p_corrected >= test.p_value for test in found.scan.tests)


def test_a_period_that_mostly_looks_like_half_of_it_is_found_with_much_data() -> None:
    """Phases 0 and 2 differ by 10 points, 1 and 3 too: few data leave that open, 240 items do not."""
    rng = np.random.default_rng(0)
    positions = rng.integers(0, 5000, 240)[:, None] + np.arange(16)
    right = rng.random(positions.shape) < np.array([1.0, 0.5, 0.9, 0.4])[positions % 4]
    items = np.repeat(np.arange(240), 16)
    assert (
        scan_labelled(right.ravel(), {"answer": positions.ravel()}, items, permutations=99).scan.period == 4
    )


def test_batches_seeds_and_constants_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = draw_answers(np.random.default_rng(0), 4, 0.05, clusters=40, paired=True)
    labels = {"answer": answers.positions}
    first = scan_labelled(answers.right, labels, answers.clusters)
    assert first == scan_labelled(answers.right, labels, answers.clusters)
    lifted = answers.right + 7.0 * answers.clusters
    assert scan_labelled(lifted, labels, answers.clusters).scan.p_value == pytest.approx(
        first.scan.p_value, abs=0.03
    )
    assert scan_labelled(answers.right, labels, answers.clusters, seed=1) != first
    monkeypatch.setattr("phaseguard.stats.labelled._CELLS", 4_000)
    batched = scan_labelled(answers.right, labels, answers.clusters)
    assert batched.scan.p_value == pytest.approx(first.scan.p_value, abs=0.03)


def test_answers_without_variance_have_no_period() -> None:
    clusters = np.repeat(np.arange(40), 10)
    for right in (np.ones(400, bool), clusters % 2 == 0):
        found = scan_labelled(right, {"answer": np.arange(400)}, clusters)
        assert (found.scan.period, found.scan.p_value) == (None, 1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scores": []}, "at least one answer"),
        ({"labels": {}}, "at least one answer"),
        ({"labels": {"answer": [1]}}, "one score, cluster and index"),
        ({"labels": {"answer": [1.5, 2.0, 3.0]}}, "not integers"),
        ({"periods": [1, 2]}, "at least 2"),
        ({"periods": []}, "at least 2"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], says: str) -> None:
    fields: dict[str, Any] = {"scores": [1, 0, 1], "labels": {"answer": [0, 1, 2]}, "clusters": [0, 0, 0]}
    with pytest.raises(InputError, match=says):
        scan_labelled(**(fields | change))
