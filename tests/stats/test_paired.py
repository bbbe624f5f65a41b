"""Phases compared within items: limits by definition, coverage, and the gain from pairing."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.stats import compare_paired, compare_phases, largest_gap
from phaseguard.stats.paired import difference_limits
from tests.calibrate.simulate import Endpoint


def test_margins_have_the_limits_of_paired_differences() -> None:
    """Balanced items: Student's limit of the items' differences, with t(0.975; 29) from a table."""
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (30, 4)) + rng.normal(0, 3, (30, 1)) + np.array([0.0, 0.5, 1.0, 0.0])
    limits = difference_limits(
        table.ravel(), np.tile(np.arange(4), 30), np.repeat(np.arange(30), 4), 4, 0.025
    )
    for a in range(4):
        for b in range(4):
            away = table[:, a] - table[:, b]
            wanted = away.mean() - 2.04523 * away.std(ddof=1) / np.sqrt(30)
            assert limits[a, b] == pytest.approx(wanted, abs=1e-4)


def test_pairing_narrows_the_gap_of_items_that_differ() -> None:
    rng = np.random.default_rng(1)
    items = np.repeat(np.arange(60), 8)
    easy = rng.random(60)[items] < 0.5
    positions = np.tile(np.arange(8), 60)
    right = np.where(easy, rng.random(480) < 0.97, rng.random(480) < np.where(positions % 2, 0.5, 0.1))
    paired, unpaired = (compare(right, positions, items, 2) for compare in (compare_paired, compare_phases))
    assert paired.gap == unpaired.gap
    assert paired.phases == unpaired.phases
    assert paired.gap_high - paired.gap_low < 0.8 * (unpaired.gap_high - unpaired.gap_low)
    assert paired.strong == (1,)


@pytest.mark.parametrize("gap", [0.0, 0.25])
def test_limits_hold_the_truth(gap: float) -> None:
    rng = np.random.default_rng(2)
    below = over = kept = 0
    for _ in range(150):
        seen = Endpoint(4, gap, "one strong").ask(rng)
        found = compare_paired(seen.right, seen.positions, seen.items, 4)
        below += found.gap_low > 100 * gap
        over += found.gap_high < 100 * gap
        kept += 3 in found.strong
    assert below + over <= 13, "98% of all binomials with 150 trials at 5% are within"
    assert kept >= 137


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_few_items_that_always_fail_at_a_phase_are_not_excluded(share: float) -> None:
    """The answers of an item are alike: 480 right ones of 60 items are no 480 trials."""
    rng = np.random.default_rng(4)
    items = np.repeat(np.arange(60), 16)
    missed = 0
    for _ in range(100):
        positions = np.repeat(rng.integers(0, 5000, 60), 16) + np.tile(np.arange(16), 60)
        right = ~((rng.random(60) < share)[items] & (positions % 2 == 0))
        limit = largest_gap(right, [positions], items, [2], 0.05)
        assert limit is not None
        missed += limit < 100 * share
    assert missed <= 11, "99% of all binomials with 100 trials at 5% are within"


def test_margins_tell_more_phases_apart() -> None:
    rng = np.random.default_rng(3)
    fewer = 0
    for _ in range(10):
        seen = Endpoint(4, 0.15, "one strong").ask(rng, 40, margins=True)
        data = (seen.right, seen.positions, seen.items, 4)
        plain, sharp = compare_paired(*data), compare_paired(*data, margins=seen.margins)
        assert 3 in sharp.strong
        assert sharp.gap == plain.gap
        fewer += len(plain.strong) - len(sharp.strong)
    assert fewer > 0


def test_the_largest_gap_of_nothing_asked_is_unknown() -> None:
    right, items = np.ones(320, bool), np.repeat(np.arange(20), 16)
    assert largest_gap(right, [4 * np.arange(320)], items, [4], 0.05) is None
    one, two = (largest_gap(right, [np.arange(320)], items, periods, 0.05) for periods in ([2], [2, 16]))
    assert one is not None
    assert two is not None
    assert 0 < one <= two < 20


def test_bad_input_is_refused() -> None:
    data = (np.ones(3, bool), np.arange(3), np.zeros(3, int))
    for period, says in ((4, "Phase 3 of period 4"), (1, "at least 2"), (0, "at least 2")):
        with pytest.raises(InputError, match=says):
            compare_paired(*data, period)
