"""What a calibration will ask, what it will cost, and what it can see: known before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from phaseguard.calibrate.check import CALLS
from phaseguard.calibrate.power import smallest_gap
from phaseguard.calibrate.sequential import spending
from phaseguard.ensemble import Prices
from phaseguard.errors import InputError
from phaseguard.stats.period import PERIODS

ITEMS = 60
LEAST_ITEMS = 6
SECONDS_A_CALL = 3.0  # for short answers without reasoning
NOT_CONFIRMED = "Nothing was asked: the plan was not confirmed."
_CONTROLS = 3  # probes beside the records
_CONTROL_SHARE = 3  # of the items, one in so many
_LEAST_SHIFTS = 4
_LEAST_CONTROLS = 2
_TOLD_PERIODS = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be asked at most; a clear verdict ends it sooner.

    Attributes:
        items: texts, each asked with its record at ``shifts`` places.
        looks: numbers of items after which the answers are judged.
        periods: candidates.
        alpha: chance of a false alarm over all of them.
        smallest: gap in points that counts as worth finding.
        control_items: texts of each negative control; 0 for none.
        calls: requests at most; ``prompt_tokens``, ``answer_tokens``: of all of them, about.
        cost: dollars at most, about; None without prices.
        seconds: in all, if a call takes ``seconds_a_call``.
        sees: by period, the gap in points that is found with a chance of 90%; infinite where none is.
    """

    items: int
    shifts: int
    looks: tuple[int, ...]
    periods: tuple[int, ...]
    alpha: float
    smallest: float
    control_items: int
    calls: int
    prompt_tokens: int
    answer_tokens: int
    cost: float | None
    seconds: float
    seconds_a_call: float
    sees: Mapping[int, float]

    def controls(self, period: int) -> Controls:
        """How controls are asked once a period is found: at few shifts, for the calls that are planned.

        Without texts where the calls are for less than two: one tells nothing.
        """
        shifts = min(self.shifts, period * max(1, -(-_LEAST_SHIFTS // period)))
        items = self.control_items * _LEAST_SHIFTS // shifts
        return Controls(items if items >= _LEAST_CONTROLS else 0, shifts)


@dataclass(frozen=True, slots=True)
class Controls:
    """Texts of each control, and the shifts at which each is asked."""

    items: int
    shifts: int


def make_plan(
    *,
    prompt_tokens: int,
    answer_tokens: int,
    items: int | None = None,
    max_calls: int | None = None,
    budget: float | None = None,
    prices: Prices | None = None,
    periods: Iterable[int] = PERIODS,
    controls: bool = True,
    alpha: float = 0.05,
    smallest: float = 20.0,
    concurrency: int = 8,
) -> Plan:
    """Plan for a number of items, or as many as calls or dollars allow.

    Args:
        prompt_tokens: of one request, about.
        answer_tokens: likewise.
        items: texts; where it is not given 60, or as many as the calls or dollars allow, up to 600.
        max_calls: requests at most.
        budget: dollars at most; needs prices.
        prices: of the endpoint.
        periods: candidates; records are moved to each phase of the largest.
        controls: whether negative controls are asked once an effect is found.
        alpha: chance of a false alarm.
        smallest: gap in points worth finding.
        concurrency: requests under way at once, for the time.

    Raises:
        InputError: for a budget without prices, or one that allows too few items.

    >>> plan = make_plan(prompt_tokens=8000, answer_tokens=10, prices=Prices(0.3, 1.2))
    >>> plan.items, plan.looks, plan.calls, round(plan.cost, 2)
    (60, (20, 40, 60), 1204, 2.9)
    """
    candidates = tuple(sorted(set(periods)))
    if not candidates or candidates[0] < 2:
        raise InputError(f"periods are {candidates}: give whole numbers of at least 2.")
    shifts = candidates[-1]
    each = shifts + (_CONTROLS * _LEAST_SHIFTS / _CONTROL_SHARE if controls else 0)
    price = prices.cost(prompt_tokens, answer_tokens) if prices else None
    allowed = _allowed(max_calls, budget, price)
    most = ITEMS if items is None else items
    if allowed is not None:
        most = min(most if items is not None else 10 * ITEMS, int((allowed - CALLS) // each))
    if most < LEAST_ITEMS:
        raise InputError(
            f"This allows {max(most, 0)} items at {shifts} shifts, and {LEAST_ITEMS} are the least: allow "
            f"{math.ceil(LEAST_ITEMS * each) + CALLS} calls, or try fewer periods."
        )
    looks = tuple(sorted({-(-most // 3), -(-2 * most // 3), most}))
    control_items = most // _CONTROL_SHARE if controls else 0
    calls = CALLS + most * shifts + control_items * _LEAST_SHIFTS * _CONTROLS
    level = spending(looks, alpha)[-1]
    return Plan(
        most,
        shifts,
        looks,
        candidates,
        alpha,
        smallest,
        control_items,
        calls,
        calls * prompt_tokens,
        calls * answer_tokens,
        None if price is None else calls * price,
        calls * SECONDS_A_CALL / concurrency,
        SECONDS_A_CALL,
        {
            period: smallest_gap(most, period, shifts=shifts, periods=candidates, level=level)
            for period in _TOLD_PERIODS
            if period in candidates
        },
    )


def _allowed(max_calls: int | None, budget: float | None, price: float | None) -> int | None:
    """Most calls, or None for no limit."""
    limits: list[int] = []
    if max_calls is not None:
        limits.append(max_calls)
    if budget is not None:
        if not price:
            raise InputError(
                "A budget needs prices: give --price-input and --price-output, per million tokens."
            )
        if not 0 < budget < math.inf:
            raise InputError(f"The budget is {budget}: give dollars above 0.")
        limits.append(int(budget / price))
    return min(limits, default=None)
