"""Observations: what they refuse, and that parts make the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.calibrate.observations import Observations
from phaseguard.errors import InputError
from tests.calibrate.simulate import Endpoint


@given(st.integers(1, 6), st.integers(0, 9), st.booleans())
def test_parts_make_the_whole(items: int, seed: int, margins: bool) -> None:
    seen = Endpoint(4, 0.3).ask(np.random.default_rng(seed), items, shifts=4, margins=margins)
    again = Observations.concat([seen.take(seen.items < 2), seen.take(seen.items >= 2)])
    assert len(again) == len(seen)
    assert again.count == seen.count == items
    for name in ("right", "positions", "keys", "items"):
        assert np.array_equal(getattr(again, name), getattr(seen, name)), name
    assert (again.margins is not None) == margins


def test_margins_need_every_part() -> None:
    rng = np.random.default_rng(0)
    parts = [Endpoint().ask(rng, 2, margins=True), Endpoint().ask(rng, 2)]
    assert Observations.concat(parts).margins is None
    assert len(Observations.concat([])) == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"keys": [1]}, "one value an answer"),
        ({"right": [1, 0]}, "give booleans"),
        ({"positions": [0.5, 1.0]}, "give integers"),
        ({"margins": [0.0, float("inf")]}, "not finite"),
        ({"margins": [0.0]}, "one value an answer"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], says: str) -> None:
    fields: dict[str, Any] = {"right": [True, False], "positions": [5, 6], "keys": [1, 2], "items": [0, 0]}
    with pytest.raises(InputError, match=says):
        Observations.of(**(fields | change))
