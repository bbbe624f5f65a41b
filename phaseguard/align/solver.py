"""The exact solver: dynamic programming over sites, with the phase shift as state.

Values are integers (see :mod:`phaseguard.align.evidence`), so that equal plans are equal to the last
digit and ties are decided by the rule, never by rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from phaseguard.align.grid import NO_CHUNKS, Grid

NEUTRAL, STRANGER, CUT = -1, -2, -3  # steps of a walk that are no site


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
class WindowNode:
    """One side of an answer's window. It stands behind every site of its walk.

    Attributes:
        index: token index without pads: of the answer's first token, or of the token behind its last.
        behind: whether it is the side behind the answer.
        walk: what is met walking away from the answer: a token that is :data:`NEUTRAL` or a
            :data:`STRANGER`, or the number of a site node, whose pads are neutral. A :data:`CUT` behind
            a site in front of the answer tells that its pads cut a token in two: one token of those that
            they add, the one furthest away, is the strange half of it.
        price: cost of each stranger that the window holds.
    """

    index: int
    behind: bool
    walk: tuple[int, ...]
    price: int


Node = SiteNode | SpanNode | WindowNode


@dataclass(frozen=True, slots=True)
class Problem:
    """Sites, spans and windows in the order in which they stand in the request.

    Attributes:
        period: length of every ``SpanNode.values``; a multiple of the grid's stride.
        nodes: sites, spans and windows in order.
        budget: most tokens that may be added in all, or None.
        grid: the chunks of the windows; needed where there are any.
    """

    period: int
    nodes: tuple[Node, ...]
    budget: int | None = None
    grid: Grid = NO_CHUNKS


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
    Takes O(nodes x states x options) with ``period`` states, or up to ``budget + 1`` with a budget; times
    the amounts that may stand at the sites of a window, as long as it is not counted.

    >>> problem = Problem(2, (SiteNode((Option(1, 5),)), SpanNode((0, 100))))
    >>> solve(problem)
    Plan(value=95, choices=((0, 0),), tokens=1)
    """
    free = _Search(problem, None).best()
    if problem.budget is None or free.tokens <= problem.budget:
        return free  # the best of all plans is the best of those within the budget
    return _Search(problem, problem.budget).best()


# the shift, or the tokens added when a budget binds; then the tokens at each site that a window asks for
_State = tuple[int, ...]


@dataclass(slots=True)
class _Search:
    """The states reached so far, each with its best plan and that plan's value."""

    problem: Problem
    budget: int | None
    asked: list[int] = field(default_factory=list)
    plans: dict[_State, _Partial] = field(default_factory=lambda: {(0,): _Partial(0, 0, 0, (-1, -1), None)})
    values: dict[_State, int] = field(default_factory=lambda: {(0,): 0})

    def best(self) -> Plan:
        uses = _uses(self.problem)
        for number, node in enumerate(self.problem.nodes):
            if isinstance(node, SpanNode):
                period = self.problem.period
                self.values = {key: self.values[key] + node.values[key[0] % period] for key in self.plans}
            elif isinstance(node, WindowNode):
                self._count(node)
                self._forget({site for site in self.asked if uses[site].last == number})
            else:
                self._offer(number, node, uses.get(number))
        value, best = 0, None
        for key, plan in self.plans.items():
            if best is None or _better(self.values[key], plan, value, best):
                value, best = self.values[key], plan
        assert best is not None  # noqa: S101 - the state of doing nothing is never dropped
        return Plan(value, _choices(best), best.tokens)

    def _offer(self, number: int, node: SiteNode, use: _Use | None) -> None:
        """Offer one site to every state."""
        period, budget = self.problem.period, self.budget
        before = tuple(self.plans.items())
        old = self.values
        if use is not None:
            self.asked.append(number)
            self.plans = {(*key, 0): plan for key, plan in before}
            self.values = {(*key, 0): old[key] for key, _ in before}
        else:
            self.plans, self.values = dict(self.plans), dict(old)
        for key, plan in before:
            for index, option in enumerate(node.options):
                tokens = plan.tokens + option.tokens
                if budget is not None and tokens > budget:
                    continue
                shift = tokens if budget is not None else (key[0] + option.tokens) % period
                here = () if use is None else (use.kept(option.tokens, period),)
                goal = (shift, *key[1:], *here)
                value = old[key] - option.price
                candidate = _Partial(value, plan.pads + 1, tokens, (number, index), plan)
                self._reach(goal, value, candidate)

    def _count(self, node: WindowNode) -> None:
        """Charge every state the strangers of one side of a window."""
        grid = self.problem.grid
        for key in self.plans:
            amounts = dict(zip(self.asked, key[1:], strict=True))
            self.values[key] -= node.price * strangers(node, grid, key[0], amounts)

    def _forget(self, sites: set[int]) -> None:
        """What stands at these sites matters no more: of plans that differ in it alone the best is kept."""
        if not sites:
            return
        kept = [0, *(place for place, site in enumerate(self.asked, 1) if site not in sites)]
        plans, values = self.plans, self.values
        self.plans, self.values = {}, {}
        for key, plan in plans.items():
            self._reach(tuple(key[place] for place in kept), values[key], plan)
        self.asked = [site for site in self.asked if site not in sites]

    def _reach(self, key: _State, value: int, plan: _Partial) -> None:
        if key not in self.plans or _better(value, plan, self.values[key], self.plans[key]):
            self.plans[key], self.values[key] = plan, value


@dataclass(frozen=True, slots=True)
class _Use:
    """What windows ask of a site: ``last``, the number of the last of them, and the slots they may need."""

    last: int
    slots: int

    def kept(self, tokens: int, period: int) -> int:
        """The smallest amount that fills as many slots and shifts by as much."""
        return tokens if tokens <= self.slots else self.slots + (tokens - self.slots) % period


def _uses(problem: Problem) -> dict[int, _Use]:
    uses: dict[int, _Use] = {}
    for number, node in enumerate(problem.nodes):
        if isinstance(node, WindowNode):
            most = problem.grid.most_behind if node.behind else problem.grid.most_before
            for place, step in enumerate(node.walk):
                if step >= 0:
                    before = sum(other in (NEUTRAL, STRANGER) for other in node.walk[:place])
                    before -= CUT in node.walk[place + 1 : place + 2]  # whether the last slot is full counts
                    slots = uses[step].slots if step in uses else 0
                    uses[step] = _Use(number, max(slots, most - before, 0))
    return uses


def strangers(node: WindowNode, grid: Grid, shift: int, amounts: Mapping[int, int]) -> int:
    """Strangers on one side of a window, when ``shift`` tokens were added in front of its node.

    >>> strangers(WindowNode(5, False, (0, NEUTRAL, STRANGER), 1), Grid(4, overlap=False), 2, {0: 2})
    0
    """
    if node.behind:
        room = grid.behind(node.index + shift - sum(amounts.get(step, 0) for step in node.walk if step >= 0))
    else:
        room = grid.before(node.index + shift)
    found = pads = 0
    for step in node.walk:
        if step == CUT:
            found += pads > 0 and room >= 0
            continue
        if room <= 0:
            break
        pads = 0 if step < 0 else amounts.get(step, 0)
        room -= 1 if step < 0 else pads
        found += step == STRANGER
    return found


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
