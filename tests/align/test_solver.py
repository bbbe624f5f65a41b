"""The solver agrees with enumeration on every small case."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard.align.grid import Grid
from phaseguard.align.naive import enumerate_plans
from phaseguard.align.solver import (
    CUT,
    NEUTRAL,
    STRANGER,
    Node,
    Option,
    Problem,
    SiteNode,
    SpanNode,
    WindowNode,
    solve,
)


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


@st.composite
def crowded(draw: st.DrawFn) -> Problem:
    """Sites and answers with windows on both sides, which walk over the sites near them."""
    stride = draw(st.integers(2, 4))
    grid = Grid(stride, draw(st.booleans()))
    period = stride * draw(st.integers(1, 2))
    option = st.builds(Option, st.integers(1, grid.most_pads), st.sampled_from([0, 1, 2, 3]))
    site = st.builds(SiteNode, st.lists(option, max_size=4).map(tuple))
    token = st.sampled_from([NEUTRAL, STRANGER, STRANGER])
    tokens = st.lists(token, max_size=3)
    nodes: list[Node] = []
    row: list[int] = draw(tokens)  # tokens and site numbers in order
    open_windows: list[tuple[int, int, int]] = []  # place in the row, index, price
    for _ in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(0, 2))):
            row.append(len(nodes))
            nodes.append(draw(site))
            row += draw(tokens)
        open_windows = _close(open_windows, row, nodes, draw(st.integers(0, 1)))
        price, index = draw(st.integers(0, 3)), sum(step < 0 for step in row)
        nodes.append(SpanNode(tuple(draw(st.lists(st.integers(-4, 4), min_size=period, max_size=period)))))
        walk = row[::-1]
        for place in range(len(walk), 0, -1):
            if walk[place - 1] >= 0 and draw(st.booleans()):
                walk.insert(place, CUT)
        nodes.append(WindowNode(index, False, tuple(walk), price))
        row += [NEUTRAL] * draw(st.integers(1, 2))
        open_windows.append((len(row), sum(step < 0 for step in row), price))
        row += draw(tokens)
    _close(open_windows, row, nodes, 0)
    return Problem(period, tuple(nodes), draw(st.none() | st.integers(0, 12)), grid)


def _close(
    windows: list[tuple[int, int, int]], row: list[int], nodes: list[Node], keep: int
) -> list[tuple[int, int, int]]:
    for place, index, price in windows[: len(windows) - keep]:
        nodes.append(WindowNode(index, True, tuple(row[place:]), price))
    return windows[len(windows) - keep :]


@given(crowded())
@settings(max_examples=500, deadline=None)
def test_windows_agree_with_enumeration(problem: Problem) -> None:
    assert solve(problem) == enumerate_plans(problem)


def test_strangers_are_kept_out_where_that_pays() -> None:
    pads = SiteNode(tuple(Option(tokens, 2 * tokens) for tokens in range(1, 11)))
    walk = (NEUTRAL, 0, *[STRANGER] * 7)  # one token of the record between the site and its answer
    nodes = (pads, SpanNode((0, 0, 0, 1)), WindowNode(9, False, walk, 30))
    for overlap, tokens in ((True, 3), (False, 0)):  # index 9 + 3 is the first slot of a chunk
        plan = solve(Problem(4, nodes, None, Grid(4, overlap)))
        assert plan.tokens == tokens
    assert solve(Problem(4, nodes, 2, Grid(4, overlap=True))).tokens == 0


def test_a_wrong_walk_is_seen() -> None:
    """The oracle tells a window whose strangers stand one token further away."""
    pads = SiteNode((Option(2, 1),))
    plans = [
        enumerate_plans(Problem(4, (pads, WindowNode(6, False, (0, *walk), 9)), None, Grid(4, overlap=False)))
        for walk in ((STRANGER,), (NEUTRAL, NEUTRAL, STRANGER))
    ]
    assert [plan.tokens for plan in plans] == [2, 0]


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
    nodes: list[Node] = []
    for key in range(keys):
        values = [0, 0, 0, 0]
        values[key % 4] = 100
        nodes += [site, site, site, SpanNode(tuple(values))]
    plan = solve(Problem(4, tuple(nodes)))
    assert plan.value == keys * 100 - plan.tokens
    assert len(plan.choices) == keys - 1
