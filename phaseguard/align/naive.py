"""The slow oracle of the solver: it tries every plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from phaseguard.align.solver import Plan, Problem, SiteNode


def enumerate_plans(problem: Problem) -> Plan:
    """Return the best of all plans, by the same rule as :func:`phaseguard.align.solver.solve`.

    Takes time exponential in the number of sites.

    >>> from phaseguard.align.solver import Option, SpanNode
    >>> enumerate_plans(Problem(2, (SiteNode((Option(1, 5),)), SpanNode((0, 100)))))
    Plan(value=95, choices=((0, 0),), tokens=1)
    """
    return min(_plans(problem), key=lambda plan: (-plan.value, len(plan.choices), plan.choices))


def _plans(problem: Problem) -> Iterator[Plan]:
    menus = [range(-1, len(node.options)) if isinstance(node, SiteNode) else (-1,) for node in problem.nodes]
    for picks in product(*menus):
        plan = _evaluate(problem, picks)
        if problem.budget is None or plan.tokens <= problem.budget:
            yield plan


def _evaluate(problem: Problem, picks: tuple[int, ...]) -> Plan:
    value = tokens = 0
    for node, pick in zip(problem.nodes, picks, strict=True):
        if not isinstance(node, SiteNode):
            value += node.values[tokens % problem.period]
        elif pick >= 0:
            value -= node.options[pick].price
            tokens += node.options[pick].tokens
    choices = tuple((number, pick) for number, pick in enumerate(picks) if pick >= 0)
    return Plan(value, choices, tokens)
