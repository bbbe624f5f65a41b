"""The example runs as a user would run it; the figures of the README are those that are measured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = Path(__file__).parents[1]
ACCURACY = ROOT / "examples" / "frameworks" / "llama_index_accuracy.py"


def run(script: Path, *arguments: str, where: Path) -> str:
    done = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=True, cwd=where
    )
    assert done.stderr == ""
    return done.stdout


def test_the_query_engine_moves_the_answer(tmp_path: Path) -> None:
    script = ROOT / "examples" / "llama_index_query.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) < 60
    before, after = run(script, where=tmp_path).splitlines()
    assert re.fullmatch(r"as it is: ImportError at token \d+, phase \d", before)
    assert re.fullmatch(r"phaseguard: ImportError at token \d+, phase 1", after)


def worst(printed: str) -> list[str]:
    return re.findall(r"worst (\d\.\d{3}) \[(\d\.\d{3}) (\d\.\d{3})\]", printed)


def test_the_worst_offset_is_better_with_phaseguard(tmp_path: Path) -> None:
    (plain, guarded) = worst(run(ACCURACY, "24", where=tmp_path))
    assert float(guarded[1]) > float(plain[2])


@pytest.mark.slow
def test_the_readme_says_what_is_measured(tmp_path: Path) -> None:
    readme = (PACKAGE / "README.md").read_text(encoding="utf-8")
    for mean, low, high in worst(run(ACCURACY, where=tmp_path)):
        assert f"{mean} [{low}, {high}]" in readme
