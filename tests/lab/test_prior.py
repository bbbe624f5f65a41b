"""A prior is offered where seeds and tasks agree, and not where one of them contradicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.lab.manifest import trained_for
from phaseguard.lab.prior import Cell, Shape, find_prior
from phaseguard.lab.spec import make_spec
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task
from phaseguard.show.prior import render_prior, verdict
from phaseguard.stats import clustered


def cell(name: str, *means: float, n: int = 400) -> Cell:
    phases = tuple(clustered(np.arange(n) < round(mean * n), np.arange(n)) for mean in means)
    return Cell(name, Task(), phases)


def test_seeds_that_agree_give_the_mean_with_the_span_of_all() -> None:
    shape = Shape(1, (cell("a", 0.9, 0.7, 0.8, 0.97), cell("b", 0.88, 0.72, 0.84, 0.95)))
    assert shape.order == (3, 0, 2, 1)
    strength = shape.strength
    assert strength is not None
    assert strength.mean == (0.89, 0.71, 0.82, 0.96)
    assert [low < least for low, least in zip(strength.low, (0.88, 0.7, 0.8, 0.95), strict=True)] == [
        True
    ] * 4
    assert [high > most for high, most in zip(strength.high, (0.9, 0.72, 0.84, 0.97), strict=True)] == [
        True
    ] * 4
    assert strength.n == 800


def test_one_seed_that_contradicts_is_enough_for_none() -> None:
    shape = Shape(1, (cell("a", 0.9, 0.6), cell("b", 0.9, 0.6), cell("c", 0.7, 0.9)))
    assert shape.order == (0, 1)
    assert shape.strength is None
    assert [(c.model, one, other) for c, one, other in shape.contradictions] == [("c", 1, 0)]
    assert not shape.best_everywhere
    assert verdict(shape.to_dict()) == "not agreed: 1 contradictions"


def test_a_difference_within_noise_does_not_contradict() -> None:
    shape = Shape(1, (cell("a", 0.9, 0.6), cell("b", 0.80, 0.81)))
    assert shape.strength is not None
    assert verdict(shape.to_dict()) == "agreed: 0 > 1"


def test_flat_models_give_no_prior() -> None:
    shape = Shape(1, (cell("a", 0.99, 0.99), cell("b", 0.98, 0.99)))
    assert all(one.flat for one in shape.cells)
    assert shape.strength is None


def test_the_best_phase_can_be_agreed_where_the_order_is_not() -> None:
    shape = Shape(1, (cell("a", 0.95, 0.8, 0.6), cell("b", 0.95, 0.6, 0.75)))
    assert shape.strength is None
    assert shape.best_everywhere
    assert verdict(shape.to_dict()).startswith("phase 0 best or tied everywhere")


def test_models_are_measured_on_what_they_were_trained_for() -> None:
    names: list[str] = []
    shapes = find_prior(
        {"pair2-s0": (load_model("pair2-s0"), (Task(), Task(value_tokens=2)))}, n=40, report=names.append
    )
    assert [(shape.tokens, len(shape.mean)) for shape in shapes] == [(1, 2), (2, 2)]
    assert names == ["pair2-s0"]
    assert render_prior([shape.to_dict() for shape in shapes]).row_count == 4
    with pytest.raises(InputError, match="No shipped model"):
        trained_for(make_spec("chunk4", stride=16))


@pytest.mark.slow
def test_the_page_shows_what_the_prior_finds() -> None:
    page = (Path(__file__).parents[2] / "docs/lab.md").read_text(encoding="utf-8")
    table = page.split("<!-- prior: begin -->")[1].split("<!-- prior: end -->")[0]
    told = {
        (cells[0], cells[1]): cells[2:]
        for line in table.strip().splitlines()[2:]
        if (cells := [cell.strip() for cell in line.split("|")[1:-1]])
    }
    found = find_prior(trained_for(make_spec("csa4")))
    groups: dict[tuple[str, str], list[Cell]] = {}
    for shape in found:
        for one in shape.cells:
            tokens = f"{shape.tokens} token{'s' * (shape.tokens > 1)}"
            groups.setdefault((tokens, one.label), []).append(one)
    assert told.keys() == groups.keys()
    for key, (models, *spans) in told.items():
        assert int(models) == len(groups[key])
        for phase, span in enumerate(spans):
            means = [one.phases[phase].mean for one in groups[key]]
            ends = [float(end) for end in span.split(" to ")]
            assert [ends[0], ends[-1]] == pytest.approx([min(means), max(means)], abs=0.006)
