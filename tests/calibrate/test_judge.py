"""The judge on scripted endpoints: false alarms, power, the right period, anchors, and what is no matter."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard.calibrate.judge import Judgement, judge
from phaseguard.calibrate.observations import Observations
from phaseguard.errors import InputError
from tests.calibrate.simulate import SHAPES, Endpoint

NULLS = (
    Endpoint(missing=0.1),
    Endpoint(accuracy=0.6, depth=4.0),
    Endpoint(accuracy=0.95, spread=2.0),
    Endpoint(accuracy=0.75, spread=0.0, depth=0.0),
)
LOOKS = (20, 40, 60)


def alarms(numbers: Iterable[int], *, margins: bool = False) -> int:
    """How many null endpoints of different size, difficulty and kind are said to have an effect."""
    found = 0
    for number in numbers:
        rng = np.random.default_rng([1, number])
        seen = NULLS[number % 4].ask(rng, 20 + number % 41, shifts=(16, 8)[number % 3 == 0], margins=margins)
        found += judge(seen, seed=number).verdict == "effect"
    return found


def in_sequence(seen: Observations) -> Judgement:
    """The verdict of the first look that is done."""
    for look, items in enumerate(LOOKS):
        found = judge(seen.take(seen.items < items), looks=LOOKS, look=look)
        if found.done:
            return found
    raise AssertionError("the last look is always done")


def detected(endpoint: Endpoint, runs: int, *, margins: bool = False, items: int = 60) -> list[Judgement]:
    rng = np.random.default_rng([2, endpoint.period, len(endpoint.shape), runs])
    found = [judge(endpoint.ask(rng, items, margins=margins)) for _ in range(runs)]
    return [one for one in found if one.verdict == "effect"]


def test_few_false_alarms() -> None:
    assert alarms(range(60)) <= 7, "99% of all binomials with 60 trials at 5% are within"


def drifting(number: int, items: int, kind: str) -> Observations:
    """No effect of phase, but answers of one item are not exchangeable; items start at random."""
    rng = np.random.default_rng([8, number])
    seen = NULLS[3].ask(rng, items, margins=True)
    assert seen.margins is not None
    shifts = seen.keys - seen.keys.reshape(items, 16).min(1)[seen.items]
    away = {
        "odd pads": -1.5 * (shifts % 2),
        "long pads": -shifts / 5,
        "walk": np.cumsum(rng.normal(size=(items, 16)), 1).ravel(),
    }[kind]
    margins = seen.margins + away
    return Observations(margins > 0, seen.positions, seen.keys, seen.items, margins)


@pytest.mark.parametrize("kind", ["odd pads", "long pads", "walk"])
@pytest.mark.parametrize("margins", [True, False])
def test_what_drifts_with_the_pads_is_no_period(kind: str, margins: bool) -> None:
    found = 0
    for number in range(80):
        seen = drifting(number, 40, kind)
        plain = Observations(seen.right, seen.positions, seen.keys, seen.items)
        found += judge(seen if margins else plain, seed=number).verdict == "effect"
    assert found <= 9, "99% of all binomials with 80 trials at 5% are within"


@pytest.mark.slow
def test_false_alarms_are_at_most_five_percent() -> None:
    assert alarms(range(1000)) <= 50
    assert alarms(range(300), margins=True) <= 24, "99% of all binomials with 300 trials at 5% are within"


@pytest.mark.slow
def test_looking_often_brings_no_more_false_alarms() -> None:
    found = 0
    for number in range(1000):
        seen = NULLS[number % 4].ask(np.random.default_rng([3, number]), LOOKS[-1])
        found += in_sequence(seen).verdict == "effect"
    assert found <= 50


@pytest.mark.parametrize("period", [2, 4, 8])
def test_an_effect_is_found_with_its_period(period: int) -> None:
    found = detected(Endpoint(period, 0.3, "half weak"), 5)
    assert [one.period for one in found] == [period] * 5
    for one in found:
        assert len(one.phases) == period
        assert one.gap_low < 30 < one.gap_high
        assert set(one.strong) <= {p for p in range(period) if 2 * p >= period}
        assert one.p_value <= one.level == pytest.approx(0.05)
        assert one.statistic == "accuracy"
        assert one.done


@pytest.mark.slow
@pytest.mark.parametrize("period", [2, 4, 8])
def test_power_and_period_at_twenty_points_and_sixty_items(period: int) -> None:
    right = every = 0
    for shape in SHAPES:
        found = detected(Endpoint(period, 0.2, shape), 200)
        assert len(found) >= 180, f"power at least 90% ({shape})"
        right += sum(one.period == period for one in found)
        every += len(found)
    assert right >= 0.95 * every


@pytest.mark.slow
@pytest.mark.parametrize("period", [2, 4, 8])
def test_the_gap_and_the_best_phase_hold_the_truth(period: int) -> None:
    endpoint = Endpoint(period, 0.2, "one weak")
    found = [one for one in detected(endpoint, 200) if one.period == period]
    assert sum(one.gap_low <= 20 <= one.gap_high for one in found) >= 0.92 * len(found)
    best = Endpoint(period, 0.3, "one strong")
    found = [one for one in detected(best, 100) if one.period == period]
    assert sum(period - 1 in one.strong for one in found) >= 0.95 * len(found)


@pytest.mark.parametrize("anchor", ["answer", "key"])
def test_key_and_answer_are_told_apart(anchor: str) -> None:
    endpoint = Endpoint(4, 0.35, "one strong", anchor="key" if anchor == "key" else "answer")
    found = detected(endpoint, 5)
    assert [one.anchor for one in found] == [anchor] * 5
    assert [one.strong for one in found] == [(3,)] * 5


def test_one_distance_tells_no_anchor() -> None:
    seen = Endpoint(4, 0.4).ask(np.random.default_rng(0))
    same = Observations(seen.right, seen.positions, seen.positions - 7, seen.items)
    found = judge(same)
    assert found.verdict == "effect"
    assert found.anchor == "unknown"
    assert found.period == 4


def test_margins_see_more_with_fewer_items() -> None:
    endpoint = Endpoint(8, 0.2, "one weak")
    with_them, without = detected(endpoint, 12, items=25, margins=True), detected(endpoint, 12, items=25)
    assert all(one.statistic == "margin" for one in with_them)
    assert len(with_them) > len(without)
    assert all("margin" in one.reason for one in with_them)


def test_a_wild_margin_rules_nothing() -> None:
    seen = Endpoint(4, 0.4).ask(np.random.default_rng(0), margins=True)
    assert seen.margins is not None
    wild = np.where(np.arange(len(seen)) % 97 == 0, -1e6, seen.margins)
    found = judge(Observations(seen.right, seen.positions, seen.keys, seen.items, wild))
    assert (found.verdict, found.period) == ("effect", 4)


def test_a_flat_endpoint_without_errors_has_no_effect() -> None:
    seen = Endpoint(accuracy=1.0, spread=0.0, depth=0.0).ask(np.random.default_rng(0))
    found = judge(Observations(np.ones(len(seen), bool), seen.positions, seen.keys, seen.items))
    assert (found.verdict, found.period, found.p_value) == ("no effect", 1, 1.0)
    assert found.excluded is not None
    assert 0 < found.excluded < 6, "even without an error there is room for one"


def test_too_few_data_leave_it_undecided() -> None:
    seen = Endpoint(8, 0.2, "one weak").ask(np.random.default_rng(1), 6)
    found = judge(seen)
    assert (found.verdict, found.period, found.done) == ("undecided", None, True)
    assert found.excluded is None or found.excluded > 20
    assert not judge(seen, looks=LOOKS, look=0).done, "there are looks to come"
    quiet = Endpoint().ask(np.random.default_rng(1), 6)
    narrow = judge(quiet.take(quiet.positions % 16 > 0))
    assert narrow.excluded is None
    assert "never asked" in narrow.reason


def test_what_is_excluded_is_rarely_there() -> None:
    """Of endpoints with a gap, few have a smaller one as upper limit."""
    rng = np.random.default_rng(5)
    limits = [judge(Endpoint(8, 0.2, "one weak").ask(rng)).excluded for _ in range(20)]
    assert sum(limit is not None and limit < 20 for limit in limits) <= 3


def test_a_clear_effect_stops_at_the_first_look() -> None:
    seen = Endpoint(4, 0.6, "one strong", accuracy=0.95).ask(np.random.default_rng(0))
    found = judge(seen.take(seen.items < 20), looks=LOOKS, look=0)
    assert (found.verdict, found.done, found.period) == ("effect", True, 4)
    assert found.level < 0.001


def test_a_period_longer_than_the_shifts() -> None:
    endpoint = Endpoint(128, 0.6, "half weak", accuracy=0.9)
    seen = endpoint.ask(np.random.default_rng(0), 200)
    found = judge(seen, periods=[*range(2, 17), 128])
    assert (found.verdict, found.period) == ("effect", 128)
    quiet = [judge(NULLS[0].ask(np.random.default_rng([9, n]), 30), periods=(4, 128)) for n in range(20)]
    assert sum(one.verdict == "effect" for one in quiet) <= 4


@given(st.integers(0, 99), st.integers(1, 5), st.booleans())
@settings(max_examples=10, deadline=None)
def test_order_names_and_whole_periods_do_not_matter(seed: int, times: int, margins: bool) -> None:
    rng = np.random.default_rng(seed)
    seen = Endpoint(4, 0.15, missing=0.1).ask(rng, 20, margins=margins)
    order, names = rng.permutation(len(seen)), rng.permutation(1000)
    mixed = seen.take(order)
    away = times * math.lcm(*range(2, 17))
    moved = Observations(
        mixed.right, mixed.positions + away, mixed.keys + away, names[mixed.items] - 7, mixed.margins
    )
    first, second = judge(seen), judge(moved)
    assert (first.verdict, first.period, first.anchor, first.strong) == (
        second.verdict,
        second.period,
        second.anchor,
        second.strong,
    )
    assert first.p_value == pytest.approx(second.p_value, abs=1e-12)
    assert first.excluded == pytest.approx(second.excluded)


def test_bad_input_is_refused() -> None:
    seen = Endpoint().ask(np.random.default_rng(0), 3)
    with pytest.raises(InputError, match="at least one answer"):
        judge(Observations.of([], [], [], []))
    with pytest.raises(InputError, match="look is 3 of 3"):
        judge(seen, looks=LOOKS, look=3)
    with pytest.raises(InputError, match="at least 2"):
        judge(seen, periods=[1, 2])
