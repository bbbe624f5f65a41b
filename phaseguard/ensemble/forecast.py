"""What asking will cost, before the first call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

from phaseguard.ensemble.layouts import Layout, LayoutSet
from phaseguard.ensemble.poll import Limits
from phaseguard.ensemble.stops import Rules
from phaseguard.errors import InputError
from phaseguard.voting import Ballot, Cost, group, spent

_MOST_ENUMERATED = 10  # layouts whose 2 ** n outcomes are gone through
_ALL_BUT_CERTAIN = 0.999  # with certainty itself votes by probability would end earlier than they do
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices a million tokens, in any currency.

    Attributes:
        prompt: of tokens read anew; ``cached``: of tokens read from a cache, None for the same price;
            ``answer``: of tokens written.

    Raises:
        InputError: when a price is below 0 or infinite.

    >>> Prices(prompt=0.28, cached=0.028, answer=0.42).cached
    0.028
    >>> Prices(0.5, 2.0).cost(1_000_000, 100_000)
    0.7
    """

    prompt: float
    answer: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "answer", "cached"):
            price = getattr(self, name)
            if price is not None and not 0 <= price < math.inf:
                raise InputError(f"Price {price} of {name} tokens: prices are finite, give 0 or more.")

    def cost(self, prompt_tokens: float, answer_tokens: float, cached_tokens: float = 0) -> float:
        """Of calls with so many tokens; ``cached_tokens`` are read beside those of the prompt."""
        cached_price = self.prompt if self.cached is None else self.cached
        total = prompt_tokens * self.prompt + cached_tokens * cached_price + answer_tokens * self.answer
        return total / _MILLION


@dataclass(frozen=True, slots=True)
class Range:
    """The least, the expected and the most; expected is None where the profile has no strengths."""

    least: float
    expected: float | None
    most: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a question will cost.

    Least is when every layout gives the same sure answer; most is when nothing ends the vote early. Expected
    takes each layout to be right with the profile's strength, independently; right answers to be the same
    and all but certain, wrong ones all different and unsure. Not in it are calls that ``aask`` starts at
    once and then does not need, at most ``concurrency - 1``, and second opinions.

    Attributes:
        calls: number of calls.
        tokens: of prompts and answers; None for a model whose requests are not encoded.
        cached: tokens at the start that every call after the first shares with it, so that a prompt cache
            can keep them; None likewise.
        cost: in the currency of the prices; None without prices.
        layouts: what would be asked.
    """

    calls: Range
    tokens: Range | None
    cached: int | None
    cost: Range | None
    layouts: LayoutSet

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it, without the prompts."""
        return {
            "calls": asdict(self.calls),
            "tokens": None if self.tokens is None else asdict(self.tokens),
            "cached": self.cached,
            "cost": None if self.cost is None else asdict(self.cost),
            "period": self.layouts.period,
            "strong": sorted(self.layouts.strong),
            "layouts": [
                {
                    "layout": layout.number,
                    "phase": layout.phase,
                    "strength": layout.strength,
                    "tokens": layout.tokens,
                    "verified": layout.aligned.report.verified,
                }
                for layout in self.layouts.layouts
            ],
        }


def make_forecast(layouts: LayoutSet, rules: Rules, limits: Limits, prices: Prices | None) -> Forecast:
    """Work out what a question will cost.

    Raises:
        InputError: when the budget does not allow the first call.
    """
    asked = _affordable(layouts, limits)
    exact = replace(rules, grouping=lambda ballots: group(ballots, form=str))
    least = _stops_at(exact, asked)
    chances = _chances(exact, asked)
    tokens = list(accumulate(limits.estimate(layout).tokens for layout in asked))
    costs = None if prices is None else list(accumulate(_costs(layouts, asked, limits, prices)))
    encoded = layouts.shared is not None
    return Forecast(
        calls=_range(range(1, len(asked) + 1), least, chances),
        tokens=_range(tokens, least, chances) if encoded else None,
        cached=layouts.shared,
        cost=_range(costs, least, chances) if costs and encoded else None,
        layouts=layouts,
    )


def _range(totals: Sequence[float], least: int, chances: Sequence[float] | None) -> Range:
    """From what so many calls cost together."""
    expected = None
    if chances is not None:
        expected = sum(total * chance for total, chance in zip(totals, chances, strict=True))
    return Range(totals[least - 1], expected, totals[-1])


def _affordable(layouts: LayoutSet, limits: Limits) -> tuple[Layout, ...]:
    """The layouts that the budget of calls and tokens allows."""
    asked = limits.affordable(layouts)
    total = limits.estimate(asked[0])
    if spent(Cost(), limits.budget, total):
        raise InputError(f"The budget does not allow the first call, about {total.tokens} tokens: raise it.")
    for number, layout in enumerate(asked[1:], 1):
        if spent(total, limits.budget, limits.estimate(layout)):
            return asked[:number]
        total += limits.estimate(layout)
    return asked


def _right(layout: Layout, probability: float) -> Ballot:
    return Ballot(layout.number, "right", layout.phase, layout.strength, probability)


def _wrong(layout: Layout) -> Ballot:
    return Ballot(layout.number, f"wrong {layout.number}", layout.phase, layout.strength, 0.0)


def _stops_at(rules: Rules, asked: Sequence[Layout]) -> int:
    """Calls after which the vote ends when all are right."""
    ballots: list[Ballot] = []
    for number, layout in enumerate(asked, 1):
        ballots.append(_right(layout, 1.0))
        if rules.check(ballots, asked[number:]):
            return number
    return len(asked)


def _chances(rules: Rules, asked: Sequence[Layout]) -> list[float] | None:
    """Chance that the vote ends after 1, 2, ... calls; None when the strengths are not known."""
    strengths = [layout.strength for layout in asked if layout.strength is not None]
    if len(strengths) < len(asked) or len(asked) > _MOST_ENUMERATED:
        return None
    chances = [0.0] * len(asked)
    sure = max(_ALL_BUT_CERTAIN, rules.threshold or 0)

    def go_on(ballots: list[Ballot], chance: float) -> None:
        done = len(ballots)
        if done == len(asked) or (done and rules.check(ballots, asked[done:])):
            chances[done - 1] += chance
            return
        if strengths[done] < 1:
            go_on([*ballots, _wrong(asked[done])], chance * (1 - strengths[done]))
        go_on([*ballots, _right(asked[done], sure)], chance * strengths[done])

    go_on([], 1.0)
    return chances


def _costs(layouts: LayoutSet, asked: Sequence[Layout], limits: Limits, prices: Prices) -> list[float]:
    """What each call costs; every one but the first reads the shared tokens from the cache."""
    costs = []
    for number, layout in enumerate(asked):
        cached = (layouts.shared or 0) if number else 0
        costs.append(prices.cost((layout.tokens or 0) - cached, limits.answer_tokens, cached))
    return costs
