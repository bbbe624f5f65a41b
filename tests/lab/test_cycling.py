"""Moving gates and chunks: what moves is what was asked for, and the profile follows the chunks."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.lab.cycling import _likeness, cycle_gates, cycle_model, parts_of
from phaseguard.lab.model import LabModel
from phaseguard.lab.spec import make_spec
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task, draw
from tests.lab.untrained import untrained

CSA = load_model("csa4-s0")


@pytest.mark.parametrize("part", ["bias", "gates", "grid"])
def test_no_move_changes_nothing_and_a_move_does(part: str) -> None:
    drawn = draw(Task("ask"), 2, np.random.default_rng(0))
    plain = CSA.logits(drawn.tokens, drawn.positions)
    for by in (0, 4):
        found = cycle_model(CSA, part, by).logits(drawn.tokens, drawn.positions)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, plain)
    other = cycle_model(CSA, part, 1).logits(drawn.tokens, drawn.positions)  # type: ignore[arg-type]
    assert np.abs(other - plain).max() > 0.1


def test_later_chunks_are_the_chunks_of_a_shorter_text() -> None:
    """Two tokens in front and chunks two tokens later: the same tokens are pooled in the same slots."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(1, 16, CSA.spec.width)).astype(np.float32)
    front = rng.normal(size=(1, 2, CSA.spec.width)).astype(np.float32)
    moved = cycle_model(CSA, "grid", 2)
    longer = np.concatenate([front, hidden], 1)
    np.testing.assert_allclose(moved._entries(longer), CSA._entries(hidden), rtol=1e-6)
    assert moved._complete(np.array([4, 5, 8, 9])).tolist() == [0, 1, 1, 2]


def test_moved_gates_weigh_another_token() -> None:
    """With gates that differ by content alone, token p + 1 gets the weight of token p."""
    spec = make_spec("chunk4", bias=False)
    model = untrained(spec)
    hidden = np.random.default_rng(1).normal(size=(1, 8, spec.width)).astype(np.float32)
    gates = model._pool_gates(hidden)
    moved = cycle_model(model, "gates", 1)._pool_gates(hidden)
    np.testing.assert_array_equal(moved[:, [1, 2, 3, 0]], gates[:, :4])
    np.testing.assert_array_equal(moved[:, [5, 6, 7, 4]], gates[:, 4:])


def test_the_profile_follows_the_chunks() -> None:
    found = cycle_gates(CSA, Task("ask"), "grid", questions=3000)
    assert [turn.by for turn in found.cycled] == [0, 1, 2, 3]
    assert found.follows
    assert all(turn.correlation > 0.5 for turn in found.cycled)


def test_the_likest_roll_is_found() -> None:
    still = np.array([0.1, 0.9, 0.5, 0.4])
    for by in range(4):
        assert _likeness(still, 0.3 + 0.2 * np.roll(still, by), by) == (by, pytest.approx(1.0))
        shift, correlation = _likeness(still, np.roll(still, by), (by + 1) % 4)
        assert shift == by
        assert correlation < 0.9
    assert _likeness(still, np.ones(4), 1) == (0, 0.0), "a flat profile is like none"


def test_what_cannot_move_is_refused() -> None:
    models: dict[str, LabModel] = {
        name: untrained(make_spec(name)) for name in ("full", "pair2", "mean4", "csa4")
    }
    assert [parts_of(model) for model in models.values()] == [
        (),
        ("gates", "grid"),
        ("grid",),
        ("bias", "gates", "grid"),
    ]
    for name, part, says in (
        ("full", "grid", "no chunks"),
        ("pair2", "bias", "no position bias"),
        ("mean4", "gates", "no gates"),
    ):
        with pytest.raises(InputError, match=says):
            cycle_model(models[name], part, 1)  # type: ignore[arg-type]
