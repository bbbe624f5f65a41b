"""Agreement against accuracy: groups hold what they say, and the figures are those of the ballots."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.lab.agreement import PROBABILITIES, Agreement, Level, by_level, measure_agreement
from phaseguard.lab.cases import draw_cases
from phaseguard.lab.manifest import leading_name
from phaseguard.lab.padded import calibrated
from phaseguard.lab.poll import poll_phases
from phaseguard.lab.spec import SCHEMES
from phaseguard.lab.store import load_model
from phaseguard.lab.strategies import Defender
from phaseguard.lab.tasks import Task
from phaseguard.show.agreement import render_agreement, save_agreement
from phaseguard.stats import wilson
from tests.lab.test_cli import phaseguard


@pytest.fixture(scope="module")
def found() -> Agreement:
    return measure_agreement(load_model("csa4-s0"), "csa4-s0", n=200)


def test_groups_hold_every_question_once(found: Agreement) -> None:
    for levels, whole in ((found.agreement, found.vote), (found.probability, found.first)):
        assert sum(level.accuracy.n for level in levels) == whole.n == 200
        assert sum(level.accuracy.right for level in levels) == whole.right
    assert [level.least for level in found.agreement] == [0.25, 0.5, 0.75, 1.0]
    assert [level.told for level in found.agreement if level.accuracy.n] == [
        level.least for level in found.agreement if level.accuracy.n
    ]
    assert found.probability[0].least == PROBABILITIES[0]
    for level in found.probability:
        assert level.accuracy.n == 0 or level.least <= level.told <= level.most


def test_figures_are_those_of_the_ballots(found: Agreement) -> None:
    model = load_model("csa4-s0")
    defender = Defender.of(calibrated(model, "csa4-s0", (Task(),), seed=11))
    cases = draw_cases(Task(), 200, period=4, window=8, seed=13)
    unanimous: list[bool] = []
    for case, ballots in zip(cases, poll_phases(model, defender, cases).ballots(), strict=True):
        answers = [ballot.answer for ballot in ballots]
        if len(set(answers)) == 1:
            unanimous.append(answers[0] == f"word{case.answer[0]}")
        assert [ballot.phase for ballot in ballots] == list(defender.order)
    top = found.agreement[-1].accuracy
    assert (top.n, top.right) == (len(unanimous), sum(unanimous))
    assert (top.low, top.high) == pytest.approx(wilson(top.right, top.n)), "one question, one cluster"


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1),
    st.lists(st.floats(0.01, 0.99), unique=True, max_size=5),
)
def test_an_answer_belongs_to_the_last_group_that_it_reaches(
    answers: list[tuple[float, bool]], cuts: list[float]
) -> None:
    ends = [0.0, *sorted(cuts), 1.0]
    levels = list(pairwise(ends))
    grouped = by_level(np.array([s for s, _ in answers]), np.array([r for _, r in answers]), levels)
    for (low, high), level in zip(levels, grouped, strict=True):
        mine = [(s, r) for s, r in answers if low <= s and (s < high or high == s == 1)]
        assert (level.accuracy.n, level.accuracy.right) == (len(mine), sum(r for _, r in mine))
        assert math.isnan(level.told) == (not mine)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="shapes"):
        by_level(np.array([0.5]), np.array([True, False]), [(0, 1)])
    with pytest.raises(InputError, match="below all groups"):
        by_level(np.array([0.1]), np.array([True]), [(0.5, 1)])
    with pytest.raises(InputError, match="no phase"):
        measure_agreement(load_model("full-s0"), "full-s0")
    with pytest.raises(InputError, match="at least 1"):
        measure_agreement(load_model("csa4-s0"), "csa4-s0", n=0)
    with pytest.raises(InputError, match="pair2-sentences-s0"):
        leading_name(SCHEMES["pair2"], "sentences")


def test_tables_and_figure_show_every_group(found: Agreement, tmp_path: Path) -> None:
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    votes, first = render_agreement(told)
    assert (votes.row_count, first.row_count) == (5, len(PROBABILITIES))
    assert list(votes.columns[0].cells) == ["1 of 4", "2 of 4", "3 of 4", "4 of 4", "all"]
    top = told["agreement"][-1]
    shown = f"{top['mean']:.3f} [{top['low']:.3f} {top['high']:.3f}]"
    assert list(votes.columns[2].cells)[-2] == shown
    path = tmp_path / "agreement.svg"
    save_agreement(told, str(path))
    assert "<!-- probability, the strongest layout alone -->" in path.read_text(encoding="utf-8")


def test_the_command_prints_tables_json_and_a_figure(tmp_path: Path) -> None:
    figure = tmp_path / "agreement.png"
    done = phaseguard(
        "lab", "agreement", "--setting", "records", "--questions", "20", "--json", "--plot", str(figure)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "csa4-records-s0"
    assert figure.read_bytes().startswith(b"\x89PNG")
    table = phaseguard("lab", "agreement", "--questions", "10")
    assert "ballots that agree" in table.stdout, table.stderr
    assert "probability told" in table.stdout
    refused = phaseguard("lab", "agreement", "--scheme", "full", "--questions", "10")
    assert refused.returncode == 2
    assert refused.stderr.startswith("phaseguard: error: Full attention has no phase")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["csa4", "chunk4"])
@pytest.mark.parametrize("setting", ["ask", "records"])
def test_agreement_and_probability_tell_right_from_wrong(scheme: str, setting: str) -> None:
    name = f"{scheme}{'' if setting == 'ask' else '-records'}-s0"
    found = measure_agreement(load_model(name), name, task=Task(setting))  # type: ignore[arg-type]
    for levels, doubtful, trusted in ((found.agreement, 0.5, 0.75), (found.probability, 0.5, 0.9)):
        few = _together([level for level in levels if level.least <= doubtful])
        many = _together([level for level in levels if level.least >= trusted])
        assert few[1] + many[1] >= 0.9 * 1000
        assert wilson(*many)[0] > max(0.985, wilson(*few)[1]), "what is doubtful is more often wrong"
    page = (Path(__file__).parents[2] / "docs/lab.md").read_text(encoding="utf-8")
    table = page.split("<!-- agreement: begin -->")[1].split("<!-- agreement: end -->")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.strip().splitlines()]
    column = lines[0].index(f"{scheme}, {setting}")
    for line, level in zip(lines[2:], (*found.agreement, *found.probability), strict=True):
        mean, _, n = line[column].partition(" of ")
        # another machine's matrix product rounds otherwise, which may move an answer or two to another level
        assert int(n) == pytest.approx(level.accuracy.n, abs=3), line[0]
        assert float(mean) == pytest.approx(level.accuracy.mean, abs=0.02 + 2 / level.accuracy.n), line[0]


def _together(levels: Sequence[Level]) -> tuple[int, int]:
    return sum(level.accuracy.right for level in levels), sum(level.accuracy.n for level in levels)
