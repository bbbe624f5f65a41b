"""Every shipped model is what its manifest says, and reaches what the manifest says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phaseguard.lab.manifest import build, measured, trained_on
from phaseguard.lab.measure import by_phase
from phaseguard.lab.store import WEIGHTS, about, digest, load_model, shipped
from phaseguard.lab.tasks import Task

NAMES = sorted(shipped())
FIRST = [name for name in NAMES if name.endswith("-s0")]
# asked in ask-anything filler, with answers of one token among others
ASK = [
    name
    for name in NAMES
    if any((row["setting"], row["value_tokens"]) == ("ask", 1) for row in shipped()[name]["measured"])
]


def test_the_folder_holds_what_the_manifest_lists_and_nothing_else() -> None:
    assert {path.stem for path in WEIGHTS.glob("*.safetensors")} == set(NAMES)
    assert NAMES
    for entry in shipped().values():
        path = WEIGHTS / entry["file"]
        assert path.stat().st_size < 1_000_000
        assert digest(path) == entry["sha256"]
        assert entry["licence"] == "Apache-2.0"
        assert entry["command"].startswith("phaseguard lab train")
        assert str(Path.home()) not in json.dumps(entry)


@pytest.mark.parametrize(
    "name", [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_every_model_reaches_what_its_manifest_says(name: str) -> None:
    entry = shipped()[name]
    rows = measured(load_model(name), trained_on(about(WEIGHTS / entry["file"])))
    assert len(rows) == len(entry["measured"])
    for found, told in zip(rows, entry["measured"], strict=True):
        assert {key: found[key] for key in ("setting", "context", "value_tokens", "n")} == {
            key: told[key] for key in ("setting", "context", "value_tokens", "n")
        }
        # another machine's matrix product rounds otherwise, which may turn a few answers of thousands
        np.testing.assert_allclose(found["accuracy"], told["accuracy"], atol=0.004)
        assert all(
            low <= mean <= high
            for low, mean, high in zip(told["low"], told["accuracy"], told["high"], strict=True)
        )


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    name = NAMES[0]
    copy = tmp_path / f"{name}.safetensors"
    copy.write_bytes((WEIGHTS / shipped()[name]["file"]).read_bytes())
    told = build(tmp_path)["models"][name]
    assert told == shipped()[name]
    copy.write_bytes(copy.read_bytes()[:-4] + b"\0\0\0\1")
    assert digest(copy) != told["sha256"]


@pytest.mark.parametrize("name", [name for name in ASK if name.startswith(("csa4", "chunk4"))])
def test_full_attention_is_flat_and_pooled_chunks_are_not(name: str) -> None:
    """The effect on a laptop: a gap between phases with pooled chunks, none without."""
    task = Task("ask")
    full = [phase.mean for phase in by_phase(load_model("full-s0"), task, questions=2000)]
    pooled = by_phase(load_model(name), task, questions=4000)
    assert max(full) - min(full) < 0.01
    assert max(phase.low for phase in pooled) > min(phase.high for phase in pooled)


def test_the_page_tells_what_the_manifest_does() -> None:
    page = (Path(__file__).parents[2] / "docs/lab.md").read_text(encoding="utf-8")
    table = page.split("<!-- lab: begin -->")[1].split("<!-- lab: end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    told = [(line.split("`")[1], *line.split("|")[2:4]) for line in lines]
    assert {name for name, _, _ in told} == set(ASK) & set(FIRST)
    for name, context, accuracy in told:
        rows = [r for r in shipped()[name]["measured"] if r["value_tokens"] == 1]
        row = next(r for r in rows if r["context"] == int(context))
        assert accuracy.split() == [f"{share:.3f}" for share in row["accuracy"]]
