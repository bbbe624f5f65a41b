"""The examples run as a user would run them, and say what the documentation promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
SAYS = {
    "langchain_rag.py": ("answer: ImportError", r"phase 0 -> token \d+, phase 1"),
    "langchain_agent.py": ("sent again byte for byte in 5 of 5 turns", r"phase 0 -> token \d+, phase 1"),
    "langchain_accuracy.py": ("200 questions", r"with phaseguard: 1.000 at the worst offset"),
}


def run(name: str, where: Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, text=True, check=True, cwd=where
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_should(name: str, tmp_path: Path) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) < 60
    printed = run(name, tmp_path)
    words, pattern = SAYS[name]
    assert words in printed
    assert re.search(pattern, printed)


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("langchain_*.py")} == SAYS.keys()


def test_every_key_of_the_agent_ends_on_the_strong_phase(tmp_path: Path) -> None:
    ends = re.findall(r"phase (\d)$", run("langchain_agent.py", tmp_path), re.MULTILINE)
    assert ends == ["1"] * 6
