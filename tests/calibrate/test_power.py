"""Forecast power against the judge on scripted endpoints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from phaseguard.calibrate.judge import judge
from phaseguard.calibrate.power import power, smallest_gap
from phaseguard.errors import InputError
from tests.calibrate.simulate import Endpoint


def seen_power(items: int, gap: float, period: int, runs: int) -> float:
    """Share of scripted endpoints with equally hard items whose effect is found."""
    rng = np.random.default_rng([items, period])
    endpoint = Endpoint(period, gap / 100, "one weak", spread=0.0, depth=0.0)
    return float(np.mean([judge(endpoint.ask(rng, items)).verdict == "effect" for _ in range(runs)]))


def test_the_forecast_is_near_what_is_seen() -> None:
    assert abs(power(40, 20.0, 8, correlation=0.0) - seen_power(40, 20.0, 8, 40)) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "gap", "period"), [(60, 20.0, 8), (60, 12.0, 4), (30, 10.0, 2), (100, 20.0, 16)]
)
def test_the_forecast_is_what_is_seen(items: int, gap: float, period: int) -> None:
    assert abs(power(items, gap, period, correlation=0.0) - seen_power(items, gap, period, 300)) < 0.08


def test_more_is_seen_with_more_items_larger_gaps_and_a_laxer_level() -> None:
    assert power(30, 15.0, 4) < power(60, 15.0, 4) < power(480, 15.0, 4)
    assert power(60, 8.0, 4) < power(60, 16.0, 4)
    assert power(60, 10.0, 4, level=0.01) < power(60, 10.0, 4)
    assert power(60, 0.0, 4) < 0.1


def test_the_smallest_gap_is_where_power_reaches_the_wanted() -> None:
    gap = smallest_gap(60, 8, wanted=0.8)
    assert power(60, gap, 8) >= 0.8 > power(60, gap - 1, 8)
    assert smallest_gap(2, 16) == math.inf


def test_impossible_plans_are_refused() -> None:
    for plan in ((1, 10.0, 4), (60, 10.0, 1)):
        with pytest.raises(InputError, match="at least 2"):
            power(*plan)
    for gap, accuracy in ((90.0, 0.85), (-1.0, 0.85), (10.0, 1.5)):
        with pytest.raises(InputError, match="impossible"):
            power(60, gap, 4, accuracy=accuracy)
    with pytest.raises(InputError, match="chance"):
        smallest_gap(60, 4, wanted=90)
