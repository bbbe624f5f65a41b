"""Forecasts: what they say is what scripted models then cost."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest

from phaseguard.ensemble import Answer, Ensemble, Prices, Range
from phaseguard.errors import InputError
from phaseguard.voting import Budget
from tests.ensemble.scripted import COMMON, LAYOUTS, PROMPT, WHERE, Scripted

RULES: list[dict[str, Any]] = [
    {},
    {"stop": "all"},
    {"stop": "agree"},
    {"stop": 0.9, "rule": "probability"},
    {"rule": "weighted"},
    {"rule": "probability-sum"},
    {"report_ties": True},
    {"budget": Budget(calls=3)},
    {"layouts": 2},
]


def replies(outcome: tuple[bool, ...]) -> list[Answer]:
    """Right answers are the same and all but certain, wrong ones different and unsure."""
    return [Answer("right", 0.999) if right else Answer(f"wrong{n}", 0.0) for n, right in enumerate(outcome)]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_expected_calls_and_tokens_are_those_of_all_outcomes(rules: dict[str, Any]) -> None:
    forecast = Ensemble(str, **COMMON, **rules, answer_tokens=5).forecast(PROMPT, **WHERE)
    calls = tokens = total = 0.0
    seen = set()
    for outcome in product([True, False], repeat=4):
        strengths = [layout.strength or 0 for layout in LAYOUTS.layouts]
        chance = prod(s if right else 1 - s for s, right in zip(strengths, outcome, strict=True))
        model = Scripted(replies(outcome))
        cost = Ensemble(model, **COMMON, **rules, answer_tokens=5).ask(PROMPT, **WHERE).cost
        calls, tokens, total = calls + chance * cost.calls, tokens + chance * cost.tokens, total + chance
        seen.add(cost.calls)
    assert total == pytest.approx(1)
    assert forecast.calls.expected == pytest.approx(calls)
    assert forecast.tokens is not None
    assert forecast.tokens.expected == pytest.approx(tokens)
    assert forecast.calls.least <= min(seen) <= max(seen) <= forecast.calls.most
    sure = Scripted([Answer("right", 1.0)] * 4)
    verdict = Ensemble(sure, **COMMON, **rules, answer_tokens=5).ask(PROMPT, **WHERE)
    assert (forecast.calls.least, forecast.tokens.least) == (verdict.cost.calls, verdict.cost.tokens)


def test_costs_know_of_the_cached_prefix() -> None:
    prices = Prices(prompt=3.0, cached=1.0, answer=10.0)
    forecast = Ensemble(str, **COMMON, stop="all", answer_tokens=5, prices=prices).forecast(PROMPT, **WHERE)
    shared = LAYOUTS.shared or 0
    assert 0 < shared == forecast.cached
    tokens = [layout.tokens or 0 for layout in LAYOUTS.layouts]
    fresh = tokens[0] + sum(one - shared for one in tokens[1:])
    assert forecast.cost is not None
    assert forecast.cost.most * 1e6 == pytest.approx(3 * fresh + 3 * shared + 4 * 5 * 10)
    plain = Ensemble(str, **COMMON, stop="all", prices=Prices(3.0, 10.0)).forecast(PROMPT, **WHERE)
    assert plain.cost is not None
    assert plain.cost.most * 1e6 == pytest.approx(3 * sum(tokens))
    assert Ensemble(str, **COMMON).forecast(PROMPT, **WHERE).cost is None
    with pytest.raises(InputError, match="cached"):
        Prices(1, 1, cached=-1)


def test_nothing_is_expected_where_nothing_is_known() -> None:
    forecast = Ensemble(str).forecast(PROMPT, **WHERE)
    assert forecast.calls == Range(2, None, 4)
    assert forecast.tokens is not None
    assert forecast.tokens.expected is None
    one = Ensemble(str, profile="llama-3", prices=Prices(1, 1)).forecast(PROMPT, **WHERE)
    assert (one.calls, one.tokens, one.cached, one.cost) == (Range(1, None, 1), None, None, None)


def test_the_budget_bounds_it() -> None:
    first = LAYOUTS.layouts[0].tokens or 0
    some = Ensemble(str, **COMMON, stop="all", budget=Budget(tokens=2 * first + 4)).forecast(PROMPT, **WHERE)
    assert some.calls.most == 2
    assert some.tokens is not None
    assert some.tokens.most <= 2 * first + 4
    with pytest.raises(InputError, match="budget"):
        Ensemble(str, **COMMON, budget=Budget(tokens=1)).forecast(PROMPT, **WHERE)


def test_forecasting_makes_no_call() -> None:
    model = Scripted("AAAA")
    Ensemble(model, **COMMON, on_disagreement=model).forecast(PROMPT, **WHERE)
    assert model.asked == []
