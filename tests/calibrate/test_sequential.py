"""Alpha spending: what the looks add up to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.calibrate.sequential import spending
from phaseguard.errors import InputError


@given(st.sets(st.integers(1, 500), min_size=1, max_size=6), st.floats(0.001, 0.3))
def test_the_levels_add_up_to_alpha(looks: set[int], alpha: float) -> None:
    levels = spending(sorted(looks), alpha)
    assert sum(levels) == pytest.approx(alpha)
    assert len(levels) == len(looks)
    assert min(levels) >= 0


def test_little_is_spent_early() -> None:
    levels = spending([15, 30, 45, 60])
    assert list(levels) == sorted(levels)
    assert levels[0] < 0.001
    assert levels[-1] > 0.02


def test_bad_plans_are_refused() -> None:
    for looks in ([], [0, 5], [5, 5], [9, 3]):
        with pytest.raises(InputError, match="ascending"):
            spending(looks)
    with pytest.raises(InputError, match="probability"):
        spending([10], 5.0)
