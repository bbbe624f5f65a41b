"""The exact solver: dynamic programming over sites, with the phase shift as state.

Values are integers (see :mod:`phaseguard.align.evidence`), so that equal plans are equal to the last
digit and ties are decided by the rule, never by rounding.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that may be done at a site: it adds ``tokens`` tokens and costs ``price``."""

    tokens: int
    price: int


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A place where at most one of the options may be taken; doing nothing is always possible."""

    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class SpanNode:
    """An answer span: its value when everything before it was shifted by 0, 1, ... period - 1 tokens."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Sites and spans in the order in which they stand in the request.

    Attributes:
        period: length of every ``SpanNode.values``.
        nodes: sites and spans in order.
        budget: most tokens that may be added in all, or None.
    """

    period: int
    nodes: tuple[SiteNode | SpanNode, ...]
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do.

    Attributes:
        value: value of all spans minus all prices.
        choices: ``(node, option)`` index pairs of the sites that are used, ascending.
        tokens: tokens added.
    """

    value: int
    choices: tuple[tuple[int, int], ...]
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """The best plan so far that ends in one state, as a chain back to the start."""

    value: int
    pads: int
    tokens: int
    choice: tuple[int, int]
    parent: _Partial | None


def solve(problem: Problem) -> Plan:
    """Return the best plan: highest value, then fewest pads, then earliest sites, then first options.

    Agrees with :func:`phaseguard.align.naive.enumerate_plans`, which tries everything.
    Takes O(nodes x states x options) with ``period`` states, or up to ``budget + 1`` with a budget.

    >>> problem = Problem(2, (SiteNode((Option(1, 5),)), SpanNode((0, 100))))
    >>> solve(problem)
    Plan(value=95, choices=((0, 0),), tokens=1)
    """
    free = _solve(problem, None)
    if problem.budget is None or free.tokens <= problem.budget:
        return free  # the best of all plans is the best of those within the budget
    return _solve(problem, problem.budget)


def _solve(problem: Problem, budget: int | None) -> Plan:
    states = {0: _Partial(0, 0, 0, (-1, -1), None)}
    gained = {0: 0}
    for number, node in enumerate(problem.nodes):
        if isinstance(node, SpanNode):
            gained = {key: gained[key] + node.values[key % problem.period] for key in states}
        elif node.options:
            states, gained = _step(number, node, states, gained, problem.period, budget)
    best: _Partial | None = None
    best_value = 0
    for key, partial in states.items():
        if best is None or _better(gained[key], partial, best_value, best):
            best, best_value = partial, gained[key]
    assert best is not None  # noqa: S101 - the state of doing nothing is never dropped
    return Plan(best_value, _choices(best), best.tokens)


def _step(
    number: int,
    node: SiteNode,
    states: dict[int, _Partial],
    gained: dict[int, int],
    period: int,
    budget: int | None,
) -> tuple[dict[int, _Partial], dict[int, int]]:
    """Offer one site to every state. A state is the shift, or the tokens added when a budget binds."""
    new_states, new_gained = dict(states), dict(gained)
    for key, partial in states.items():
        for index, option in enumerate(node.options):
            tokens = partial.tokens + option.tokens
            if budget is not None and tokens > budget:
                continue
            goal = tokens if budget is not None else (key + option.tokens) % period
            value = gained[key] - option.price
            candidate = _Partial(value, partial.pads + 1, tokens, (number, index), partial)
            if goal not in new_states or _better(value, candidate, new_gained[goal], new_states[goal]):
                new_states[goal], new_gained[goal] = candidate, value
    return new_states, new_gained


def _better(value: int, one: _Partial, other_value: int, other: _Partial) -> bool:
    if value != other_value:
        return value > other_value
    if one.pads != other.pads:
        return one.pads < other.pads
    return _earlier(one, other)


def _earlier(one: _Partial, other: _Partial) -> bool:
    """Whether ``one``'s choices come first in lexicographic order; both have as many pads."""
    earlier = False
    a: _Partial | None = one
    b: _Partial | None = other
    while a is not b and a is not None and b is not None:
        if a.choice != b.choice:
            earlier = a.choice < b.choice
        a, b = a.parent, b.parent
    return earlier


def _choices(partial: _Partial) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    at: _Partial | None = partial
    while at is not None and at.parent is not None:
        found.append(at.choice)
        at = at.parent
    return tuple(reversed(found))
