"""The controls over all models: which models, what is told of them, tables, figure, training anew."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from phaseguard.errors import InputError, MissingExtraError
from phaseguard.lab.reproduce import leading, reproduce, run_all, subjects
from phaseguard.lab.scratch import train_kinds
from phaseguard.lab.store import load_model, shipped
from phaseguard.lab.study import Study
from phaseguard.show.period_figure import save_periods
from phaseguard.show.periods import render_periods

FOUND = subjects(shipped())
CHOSEN = [one for one in FOUND if one.name in {"full-s0", "csa4-s0", "csa4-s1"}]


@pytest.fixture(scope="module")
def studies() -> tuple[Study, ...]:
    return reproduce(CHOSEN, questions=1600, workers=1)


@pytest.fixture(scope="module")
def told(studies: tuple[Study, ...]) -> dict[str, Any]:
    return {"questions": 1600, "studies": [study.to_dict() for study in studies]}


def test_subjects_come_from_the_manifest() -> None:
    entries = {name: dict(entry) for name, entry in shipped().items()}
    assert {one.name for one in FOUND} <= entries.keys()
    plain = {"setting": "ask", "context": 96, "records": 24}
    for tasks, kept in (
        ([plain], True),
        ([plain, plain | {"value_tokens": 2}], True),
        ([plain | {"value_tokens": 2}], False),
        ([plain | {"key_tokens": 2}], False),
        ([plain, plain | {"setting": "records"}], False),
    ):
        changed = {"csa4-s0": entries["csa4-s0"] | {"tasks": tasks}, "full-s0": entries["full-s0"]}
        assert ("csa4-s0" in [one.name for one in subjects(changed)]) == kept, tasks
    with pytest.raises(InputError, match="train one"):
        subjects({})


def test_a_kind_is_a_spec_and_its_first_model_leads() -> None:
    leads = leading(FOUND)
    assert len({one.spec for one in FOUND}) == len(leads)
    assert "csa4-s1" not in [one.name for one in leads]
    assert [one.name for one in leading(CHOSEN)] == ["full-s0", "csa4-s0"]


def test_what_is_told(studies: tuple[Study, ...], told: dict[str, Any]) -> None:
    full, first, second = studies
    assert [study.subject for study in studies] == CHOSEN
    assert [[row.factor for row in study.rows] for study in studies] == [[1, 2, 4, 8], [1, 2, 4, 8], [1, 4]]
    assert [row.scan.period for row in full.rows] == [None] * 4
    assert [row.scan.period for row in (first.rows[0], second.rows[0])] == [4, 4]
    assert (second.filler, second.cycles, second.controls) == (None, (), ())
    assert first.filler is not None
    assert first.filler.scan.period == 4
    assert [cycling.part for cycling in first.cycles] == ["bias", "gates", "grid"]
    assert [turn.shift for turn in first.cycles[2].cycled] == [0, 1, 2, 3], (
        "the profile moves with the chunks"
    )
    assert {row.control for row in full.controls} >= {"chunkkv", "snapkv", "block-sparse", "dynamic"}
    row = told["studies"][1]["rows"][0]
    shares = [phase["mean"] for phase in row["phases"]]
    assert row["gap"] == pytest.approx(100 * (max(shares) - min(shares)), abs=0.1)
    assert sum(phase["n"] for phase in row["phases"]) == sum(depth["n"] for depth in row["depths"])
    assert 800 < sum(phase["n"] for phase in row["phases"]) < 1600, "what comes again is left out"
    assert [test["period"] for test in row["tests"]] == list(range(2, 17))
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_processes_change_nothing() -> None:
    pair = next(one for one in FOUND if one.spec.scheme == "pair2")
    both = [pair, replace(pair, name="again")]
    seen: list[str] = []
    found = reproduce(both, questions=320, workers=2, report=seen.append)
    assert sorted(seen) == ["again", pair.name]
    assert found == reproduce(both, questions=320, workers=1)
    assert found[0].rows[:1] + found[0].rows[2:3] == found[1].rows


def test_tables_hold_every_model_and_figure(told: dict[str, Any]) -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    tables = render_periods(told)
    assert len(tables) == 4
    for table in tables:
        console.print(table)
    text = console.export_text()
    for words in (
        "csa4-s1",
        "W8/S4 channel gate, bias",
        "full attention",
        "4 (p=0.001)",
        "block-sparse",
        "grid",
    ):
        assert words in text
    share = told["studies"][1]["rows"][0]["phases"][0]["mean"]
    assert f"{share:.3f}±" in text
    second = {"questions": 1600, "studies": [told["studies"][2]]}
    assert len(render_periods(second)) == 1, "tables without rows are left out"


def test_the_figure(told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "periods.png"
    save_periods(told, str(target))
    assert target.read_bytes().startswith(b"\x89PNG")
    assert target.stat().st_size > 20_000
    with pytest.raises(InputError, match="end it in"):
        save_periods(told, str(tmp_path / "periods.xls"))
    with pytest.raises(InputError, match="no folder"):
        save_periods(told, str(tmp_path / "none" / "periods.png"))
    monkeypatch.setattr("phaseguard.show.figure.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"phaseguard\[plots\]"):
        save_periods(told, str(target))


def test_two_kinds_from_scratch(tmp_path: Path) -> None:
    kinds = [one for one in FOUND if one.spec.scheme in {"pair2", "csa4"} and one.spec.bias == one.spec.split]
    seen: list[str] = []
    trained = train_kinds(kinds, tmp_path, steps=2, seed=4, workers=2, report=seen.append)
    assert [one.spec for one in trained] == [one.spec for one in leading(kinds)]
    assert sorted(seen) == sorted(one.name for one in trained)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{one.name}.safetensors" for one in trained
    )
    assert all(one.seed == 4 for one in trained)
    for one in trained:
        assert load_model(one.path).spec == one.spec
    rows = reproduce(trained[:1], questions=320, workers=1)[0].rows
    assert max(phase.mean for phase in rows[0].comparison.phases) < 0.2, "two steps teach nothing"


def test_calls_are_made_and_errors_come_through() -> None:
    assert sorted(run_all([partial(pow, 2, n) for n in range(4)], 2)) == [1, 2, 4, 8]
    with pytest.raises(ZeroDivisionError):
        list(run_all([partial(divmod, 1, 0)], 2))
    with pytest.raises(InputError, match="at least one"):
        list(run_all([], 0))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phaseguard", "lab", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    for arguments, says in (
        (("--questions", "10"), "give 320 or more"),
        (("--workers", "0"), "at least one"),
        (("--plot", "x.xls"), "end it in"),
        (("--plot", str(tmp_path / "none" / "x.png")), "no folder"),
        (("--from-scratch", "--folder", str(tmp_path / "none")), "no folder"),
        (("--from-scratch", "--steps", "0"), "at least 1"),
    ):
        done = run(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    target = tmp_path / "periods.png"
    done = run("--json", "--questions", "320", "--plot", str(target))
    assert done.returncode == 0, done.stderr
    assert [study["model"] for study in json.loads(done.stdout)["studies"]] == [one.name for one in FOUND]
    assert target.stat().st_size > 10_000
    assert f"{len(FOUND)} of {len(FOUND)} examined" in done.stderr
