"""The solver agrees with enumeration on every small case."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard.align.naive import enumerate_plans
from phaseguard.align.solver import Option, Problem, SiteNode, SpanNode, solve


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    period = draw(st.integers(1, 5))
    # few distinct numbers, so that ties are common
    option = st.builds(Option, st.integers(1, 6), st.sampled_from([0, 1, 2, 3]))
    site = st.builds(SiteNode, st.lists(option, max_size=3).map(tuple))
    values = st.lists(st.integers(-4, 4), min_size=period, max_size=period).map(tuple)
    span = st.builds(SpanNode, values)
    sites = draw(st.lists(site, max_size=5))
    spans = draw(st.lists(span, max_size=4))
    nodes = draw(st.permutations([*sites, *spans]))
    budget = draw(st.none() | st.integers(0, 12))
    return Problem(period, tuple(nodes), budget)


@given(problems())
@settings(max_examples=800, deadline=None)
def test_agrees_with_enumeration(problem: Problem) -> None:
    assert solve(problem) == enumerate_plans(problem)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_oracle_can_tell(problem: Problem) -> None:
    """Enumeration on other prices gives another value whenever the plan uses a site."""
    plan = solve(problem)
    dearer = dataclasses.replace(
        problem,
        nodes=tuple(
            SiteNode(tuple(Option(o.tokens, o.price + 100) for o in n.options))
            if isinstance(n, SiteNode)
            else n
            for n in problem.nodes
        ),
    )
    assert (enumerate_plans(dearer).value != plan.value) == bool(plan.choices)


def test_nothing_to_do() -> None:
    assert solve(Problem(4, ())).choices == ()
    assert solve(Problem(4, (SiteNode((Option(1, 1),)),))).choices == ()


def test_ties_go_to_fewer_pads_then_earlier_sites() -> None:
    two = SiteNode((Option(1, 1), Option(2, 2)))
    span = SpanNode((0, 0, 50, 0))
    assert solve(Problem(4, (two, two, span))).choices == ((0, 1),)


def test_a_budget_is_exact() -> None:
    site = SiteNode((Option(1, 1), Option(2, 2), Option(3, 3)))
    nodes = (site, SpanNode((0, 0, 0, 90)), site, SpanNode((90, 0, 0, 0)))
    assert solve(Problem(4, nodes, budget=3)).value == 90  # either key, not both
    assert solve(Problem(4, nodes, budget=4)).tokens == 4
    assert solve(Problem(4, nodes, budget=0)).choices == ()


@pytest.mark.parametrize("keys", [400])
def test_many_keys(keys: int) -> None:
    """Hundreds of keys with ties everywhere stay solvable: the cost does not grow with the square."""
    site = SiteNode((Option(1, 1), Option(2, 2), Option(3, 3)))
    nodes: list[SiteNode | SpanNode] = []
    for key in range(keys):
        values = [0, 0, 0, 0]
        values[key % 4] = 100
        nodes += [site, site, site, SpanNode(tuple(values))]
    plan = solve(Problem(4, tuple(nodes)))
    assert plan.value == keys * 100 - plan.tokens
    assert len(plan.choices) == keys - 1
