"""Before the run: what stands in front of prompts, what will be asked, what it costs."""

from __future__ import annotations

import dataclasses
import math

import pytest

from phaseguard.calibrate.check import check_lengths
from phaseguard.calibrate.plan import make_plan
from phaseguard.calibrate.settings import base_profile
from phaseguard.ensemble import Prices
from phaseguard.errors import EndpointError, InputError, ProfileError
from phaseguard.profiles import load_profile
from tests.calibrate.test_record import answered

CHAT = load_profile("deepseek-v4-flash")
BASE = load_profile("deepseek-v4-flash-base")
LENGTHS = (100, 150, 220, 300)


def told(*more: int | None):
    return [
        answered(-1 - n, tokens=length, prompt_tokens=None if extra is None else length + extra)
        for n, (length, extra) in enumerate(zip(LENGTHS, more, strict=True))
    ]


@pytest.mark.parametrize(
    ("profile", "more", "offset", "unexplained"),
    [(CHAT, 0, 0, 0), (CHAT, 7, 7, 7), (BASE, 1, 1, 0), (BASE, 0, 0, -1), (BASE, 9, 9, 8)],
)
def test_a_constant_number_of_tokens_is_taken_over(profile, more, offset, unexplained) -> None:
    check = check_lengths(told(*[more] * 4), profile)
    assert (check.prefix_offset, check.unexplained) == (offset, unexplained)
    assert ("as many tokens as predicted" in check.note) == (unexplained == 0)


@pytest.mark.parametrize("more", [(0, 0, 0, 1), (7, 8, 7, 7), (1, 2, 3, 4)])
def test_a_varying_number_stops_with_an_explanation(more) -> None:
    with pytest.raises(EndpointError, match=r"varies .*hidden system prompt.*--chat"):
        check_lengths(told(*more), CHAT)


def test_fewer_tokens_than_rendered_stop_too() -> None:
    with pytest.raises(EndpointError, match="3 tokens fewer"):
        check_lengths(told(*[-3] * 4), CHAT)


def test_an_endpoint_that_does_not_count_is_believed() -> None:
    check = check_lengths(told(0, None, 0, 0), BASE)
    assert (check.prefix_offset, check.unexplained) == (1, None)
    assert "not checked" in check.note


def plan(**more):
    return make_plan(**{"prompt_tokens": 8000, "answer_tokens": 10, "periods": (2, 4, 8), **more})


def test_a_plan_counts_calls_and_dollars() -> None:
    made = plan(items=60, prices=Prices(0.5, 2.0))
    assert made.calls == 4 + 60 * 8 + 20 * 4 * 3
    assert made.prompt_tokens == made.calls * 8000
    assert made.cost == pytest.approx(made.calls * (8000 * 0.5 + 10 * 2.0) / 1e6)
    assert made.looks == (20, 40, 60)
    assert plan(items=60).cost is None


@pytest.mark.parametrize("calls", [100, 333, 1000, 5000])
def test_a_plan_stays_within_the_calls(calls) -> None:
    made = plan(max_calls=calls)
    assert made.calls <= calls
    assert made.calls + 2 * 8 + 12 > min(calls, plan(items=600).calls)


def test_a_budget_is_kept() -> None:
    made = plan(budget=1.0, prices=Prices(0.5, 2.0))
    assert 0.9 < made.cost <= 1.0


def test_more_items_see_smaller_gaps() -> None:
    few, many = plan(items=12), plan(items=120)
    assert all(many.sees[period] < few.sees[period] for period in (2, 4, 8))


def test_controls_keep_to_their_calls() -> None:
    made = plan(items=60, periods=range(2, 17))
    for period in range(2, 17):
        controls = made.controls(period)
        assert controls.shifts % period == 0
        assert controls.items >= 2
        assert controls.items * controls.shifts <= made.control_items * 4
    assert plan(items=60, controls=False).controls(4).items == 0


@pytest.mark.parametrize("more", [{"max_calls": 130}, {"items": 60, "periods": (*range(2, 17), 128)}])
def test_controls_that_would_take_more_calls_are_not_asked(more) -> None:
    made = plan(**{"periods": range(2, 17), **more})
    for period in made.periods:
        controls = made.controls(period)
        assert 4 + made.items * made.shifts + 3 * controls.items * controls.shifts <= made.calls
    assert made.controls(made.shifts).items == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"budget": 1.0}, "--price-input"),
        ({"budget": 0.001, "prices": Prices(0.5, 2.0)}, "are the least"),
        ({"budget": -1.0, "prices": Prices(0.5, 2.0)}, "above 0"),
        ({"budget": math.inf, "prices": Prices(0.5, 2.0)}, "above 0"),
        ({"max_calls": 20}, "are the least"),
        ({"items": 2}, "are the least"),
        ({"periods": (1, 2)}, "at least 2"),
        ({"periods": ()}, "at least 2"),
    ],
)
def test_plans_that_cannot_be_made(more, said) -> None:
    with pytest.raises(InputError, match=said):
        plan(**more)


def test_prices_are_numbers() -> None:
    with pytest.raises(InputError, match="prices"):
        Prices(-1.0, math.inf)


def test_a_known_model_has_its_profile() -> None:
    assert base_profile("deepseek-v4-flash").tokenizer == "deepseek-v4"
    assert base_profile("deepseek-ai/DeepSeek-V4-Flash").name == "deepseek-v4-flash"
    assert base_profile("deepseek-v4-flash", reasoning="low").reasoning == "low"
    assert base_profile("deepseek-v4-flash", completions=True).chat == "plain"


def test_an_unknown_model_needs_a_tokenizer_and_a_chat_encoding() -> None:
    made = base_profile("org/New Model", tokenizer="cl100k_base", chat="plain")
    assert (made.name, made.model, made.period) == ("New-Model", "org/New Model", 1)
    with pytest.raises(InputError, match=r"--tokenizer .* --chat"):
        base_profile("new-model", tokenizer="cl100k_base")
    with pytest.raises(InputError, match="No profile is of model"):
        base_profile("new-model", completions=True)
    with pytest.raises(ProfileError, match="Unknown profile"):
        base_profile("new-model", profile="none")


def test_what_is_compared_here_can_fail() -> None:
    rows = told(0, 0, 0, 0)
    rows[2] = dataclasses.replace(rows[2], prompt_tokens=None)
    assert check_lengths(rows, CHAT).counted == ()
