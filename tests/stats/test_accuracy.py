"""Intervals of shares: what they must hold, and that clusters widen them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.stats import clustered, wilson


@given(st.integers(1, 500), st.floats(0, 1), st.floats(0.5, 0.999))
def test_wilson_holds_the_share_and_widens_with_confidence(n: int, part: float, confidence: float) -> None:
    right = round(part * n)
    low, high = wilson(right, n, confidence)
    assert 0 <= low <= right / n + 1e-12
    assert right / n - 1e-12 <= high <= 1
    wider = wilson(right, n, (1 + confidence) / 2)
    assert wider[0] <= low + 1e-12
    assert high <= wider[1] + 1e-12


def test_wilson_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for confidence in (0.8, 0.95):
        drawn = rng.binomial(200, 0.3, 2000)
        inside = np.mean([low <= 0.3 <= high for low, high in (wilson(k, 200, confidence) for k in drawn)])
        assert abs(inside - confidence) < 0.02


def test_nothing_asked_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    empty = clustered(np.empty(0, bool), np.empty(0, np.int64))
    assert (empty.n, empty.low, empty.high) == (0, 0.0, 1.0)
    assert np.isnan(empty.mean)
    for confidence in (0.0, 1.0, 95, float("nan")):
        with pytest.raises(InputError, match="probability"):
            wilson(1, 2, confidence)


def test_equal_answers_of_a_cluster_count_as_one() -> None:
    rng = np.random.default_rng(0)
    alone = clustered(rng.random(4000) < 0.5, np.arange(4000))
    together = clustered(np.repeat(rng.random(400) < 0.5, 10), np.repeat(np.arange(400), 10))
    assert together.high - together.low > 2.5 * (alone.high - alone.low)
    assert clustered(np.ones(20, bool), np.repeat([7, -3], 10)).high == pytest.approx(1.0)
