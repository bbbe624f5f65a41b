"""Progress is a bar on a terminal, and lines or nothing elsewhere; a missing extra is named."""

from __future__ import annotations

import pytest

from phaseguard.cli_extras import for_training
from phaseguard.cli_progress import Steps
from phaseguard.errors import MissingExtraError


def test_lines_elsewhere_than_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps(4, every=2, unit="trained") as steps:
        for name in "abcd":
            steps.done(name)
    assert capsys.readouterr().err == "2 of 4 trained: b\n4 of 4 trained: d\n"


def test_a_run_that_goes_on_counts_from_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps(9, every=1, unit="steps") as steps:
        steps.reached(7, "loss 1")
        steps.done("loss 0")
    assert capsys.readouterr().err == "7 of 9 steps: loss 1\n8 of 9 steps: loss 0\n"


def test_a_step_that_is_not_done_yet_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps(9, every=2, unit="calls") as steps:
        for step in (0, 0, 2, 2, 3):
            steps.reached(step, "look 1")
    assert capsys.readouterr().err == "2 of 9 calls: look 1\n"


def test_nothing_unless_lines_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps(1) as steps:
        steps.done("a")
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.setenv("TERM", "xterm")
    with Steps(2, every=1, unit="models") as steps:
        steps.done("csa4-s0")
        steps.done("csa4-s1")
    shown = capsys.readouterr().err
    assert "2 of 2 models" in shown
    assert "2 of 2 models: csa4-s1" not in shown, "a bar, no lines"


def test_only_a_missing_torch_is_taken_for_one() -> None:
    with pytest.raises(MissingExtraError, match=r"phaseguard\[lab\]"), for_training():
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    with pytest.raises(ModuleNotFoundError, match="numpy"), for_training():
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
