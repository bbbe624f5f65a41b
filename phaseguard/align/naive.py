"""The slow oracle of the solver: it tries every plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from phaseguard.align.solver import CUT, NEUTRAL, STRANGER, Plan, Problem, SiteNode, SpanNode, WindowNode


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
    added = [
        node.options[pick].tokens if isinstance(node, SiteNode) and pick >= 0 else 0
        for node, pick in zip(problem.nodes, picks, strict=True)
    ]
    value = 0
    for number, (node, pick) in enumerate(zip(problem.nodes, picks, strict=True)):
        if isinstance(node, SpanNode):
            value += node.values[sum(added[:number]) % problem.period]
        elif isinstance(node, WindowNode):
            value -= node.price * _strangers(problem, number, node, added)
        elif pick >= 0:
            value -= node.options[pick].price
    choices = tuple((number, pick) for number, pick in enumerate(picks) if pick >= 0)
    return Plan(value, choices, sum(added))


def _strangers(problem: Problem, number: int, node: WindowNode, added: Sequence[int]) -> int:
    """Write out every token beside the answer, and count in the chunks it shares."""
    row: list[int] = []
    for place, step in enumerate(node.walk):
        if step >= 0:
            row += [NEUTRAL] * added[step]
        elif step != CUT:
            row.append(step)
        elif added[node.walk[place - 1]]:
            row[-1] = STRANGER
    stride = problem.grid.stride
    shift = sum(added[:number])
    if node.behind:
        shift -= sum(added[step] for step in node.walk if step >= 0)
        last = node.index + shift - 1
        row = row[: (last // stride + 1) * stride - (last + 1)]
    else:
        first = node.index + shift
        row = row[: first - (first // stride - problem.grid.overlap) * stride]
    return row.count(STRANGER)
