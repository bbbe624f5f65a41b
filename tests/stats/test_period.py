"""The period test by simulation: false positives, the period that is found, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.stats import PeriodScan, scan_periods
from tests.stats.drawn import SHAPES, draw_answers


def scan(answers: Any, **settings: Any) -> PeriodScan:
    return scan_periods(answers.right, answers.positions, answers.clusters, **settings)


def slow_chi_square(answers: Any, period: int) -> float:
    """The statistic by its definition, in loops."""
    groups = {
        c: [r for r, k in zip(answers.right, answers.clusters, strict=True) if k == c]
        for c in answers.clusters
    }
    left = [
        float(r) - sum(groups[c]) / len(groups[c])
        for r, c in zip(answers.right, answers.clusters, strict=True)
    ]
    variance = sum(e * e for e in left) / (len(left) - len(groups))
    phases = {int(p) % period for p in answers.positions}
    total = 0.0
    for phase in phases:
        mine = [e for e, p in zip(left, answers.positions, strict=True) if p % period == phase]
        total += sum(mine) ** 2 / (len(mine) * variance)
    return total / max(1, len(phases) - 1)


@given(st.integers(2, 6), st.integers(2, 30), st.integers(0, 999))
@settings(max_examples=25)
def test_the_statistic_is_its_definition(period: int, clusters: int, seed: int) -> None:
    answers = draw_answers(np.random.default_rng(seed), 4, 0.5, clusters=clusters, each=3)
    if answers.right.all():
        return
    found = scan(answers, periods=[period], permutations=99)
    try:
        wanted = slow_chi_square(answers, period)
    except ZeroDivisionError:  # no cluster has both right and wrong answers
        wanted = 0.0
    assert found.tests[0].statistic == pytest.approx(wanted)


def test_order_names_and_difficulty_of_clusters_do_not_matter() -> None:
    answers = draw_answers(np.random.default_rng(0), 4, 0.3)
    found = scan(answers)
    order = np.random.default_rng(1).permutation(len(answers.right))
    mixed = scan_periods(answers.right[order], answers.positions[order], -7 * answers.clusters[order])
    assert [test.statistic for test in mixed.tests] == pytest.approx([test.statistic for test in found.tests])
    assert mixed.period == found.period == 4
    # a cluster that is all right or all wrong tells nothing of phase
    more = scan_periods(
        np.append(answers.right, np.zeros(4, bool)),
        np.append(answers.positions, np.zeros(4, np.int64)),
        np.append(answers.clusters, np.full(4, 999)),
    )
    assert more.period == 4


def test_seeds_and_batches_of_permutations(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = draw_answers(np.random.default_rng(0), 4, 0.05)
    first = scan(answers)
    assert first == scan(answers)
    monkeypatch.setattr("phaseguard.stats.period._CELLS", 50_000)
    assert scan(answers) == first, "permutations in batches are the same permutations"
    assert scan(answers, seed=1).tests != first.tests


def test_answers_without_variance_have_no_period() -> None:
    for right in (np.ones(400, bool), np.zeros(400, bool), np.repeat([True, False], 200)):
        found = scan_periods(right, np.arange(400), np.repeat(np.arange(40), 10))
        assert found.period is None
        assert found.p_value == 1.0


def test_an_effect_of_difficulty_alone_is_none() -> None:
    """All answers of a cluster share a phase and a fate: that is the cluster's, not the phase's."""
    clusters = np.repeat(np.arange(100), 8)
    found = scan_periods(clusters % 2 == 0, 4 * np.tile(np.arange(8), 100) + clusters % 4, clusters)
    assert found.period is None


def test_no_false_alarms() -> None:
    """At most 5% (here: of 200) of scans without an effect name a period."""
    rng = np.random.default_rng(3)
    alarms = 0
    for number in range(200):
        answers = draw_answers(rng, 1, 0.0, clusters=40, paired=number % 2 == 0)
        alarms += scan(answers, permutations=199).period is not None
    assert alarms <= 17, "98% of all binomials with 200 trials at 5% are within"


@pytest.mark.parametrize("period", [2, 4, 8])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_right_period_is_found(period: int, shape: str) -> None:
    """In at least 95% of detected effects, at a gap of 25 points and 4,000 answers."""
    rng = np.random.default_rng(100 * period + len(shape))
    found = [
        scan(draw_answers(rng, period, 0.25, shape=shape, paired=number % 2 == 0), permutations=199).period
        for number in range(40)
    ]
    detected = [one for one in found if one is not None]
    assert len(detected) >= 39
    assert sum(one == period for one in detected) >= 0.95 * len(detected), found


@pytest.mark.parametrize("period", [3, 5, 6, 7, 10, 12, 16])
def test_other_periods_are_found_too(period: int) -> None:
    answers = draw_answers(np.random.default_rng(period), period, 0.5, shape="half")
    assert scan(answers).period == period


def test_the_corrected_p_value_is_never_the_smaller() -> None:
    found = scan(draw_answers(np.random.default_rng(0), 1, 0.0))
    assert all(test.p_corrected >= test.p_value >= 1 / 1000 for test in found.tests)
    assert found.p_value == min(test.p_corrected for test in found.tests)
    alone = scan(draw_answers(np.random.default_rng(0), 1, 0.0), periods=[4])
    assert alone.tests[0].p_corrected == alone.tests[0].p_value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"right": []}, "at least one answer"),
        ({"right": [True]}, "one number an answer"),
        ({"right": [1, 0, 1]}, "give booleans"),
        ({"positions": [0.5, 1.0, 2.0]}, "integers"),
        ({"periods": [1, 4]}, "at least 2"),
        ({"periods": []}, "at least 2"),
        ({"permutations": 50}, "999 or more"),
        ({"alpha": 0.0}, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], says: str) -> None:
    given_ = {"right": [True, False, True], "positions": [0, 1, 2], "clusters": [0, 0, 0]} | change
    with pytest.raises(InputError, match=says):
        scan_periods(given_.pop("right"), given_.pop("positions"), given_.pop("clusters"), **given_)
