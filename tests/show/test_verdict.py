"""A verdict for a terminal: every ballot a row, every error in full once, the answer whole."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from phaseguard.ensemble import Answer, Ensemble, Prices
from phaseguard.errors import AllCallsFailedError
from phaseguard.show.verdict import forecast_lines, render_verdict, render_votes
from tests.ensemble.scripted import COMMON, PROMPT, WHERE, Clock, Scripted


def shown(parts: Any) -> list[str]:
    console = Console(width=200, highlight=False, color_system=None, markup=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def verdict(replies: Any, **more: Any) -> dict[str, Any]:
    asking = Ensemble(Scripted(replies), **COMMON, **{"stop": "all", **more}, clock=Clock())
    return asking.ask(PROMPT, **WHERE).to_dict()


def test_ballots_errors_and_the_answer() -> None:
    reset = ConnectionError("reset by\npeer: try \x1b[31mlater")
    lines = shown(render_verdict(verdict([Answer("A\n 17", 0.5, 2, 90), reset, "a 17", reset])))
    rows = [line for line in lines if line.startswith("│")]
    assert rows[0] == "│ 0 │ 3 │ A 17 │ 0.500 │ 1.00 │ 92 │ │"
    assert [row.split(" │ ")[1] for row in rows] == ["3", "2", "1", "0"]
    assert rows[1].endswith("│ ConnectionError │")
    assert "layouts 1, 3: ConnectionError: reset by peer: try ␛[31mlater" in lines
    assert any(line.startswith("4 calls; every layout was asked;") for line in lines)
    assert any(line.startswith("2 of 2 ballots (rule majority), confidence 1.000: share") for line in lines)
    assert lines[-2:] == ["answer A", "17"]


def test_a_tie_names_those_that_tie() -> None:
    lines = shown(render_verdict(verdict(["A", "B", "C", ""], layouts=3, report_ties=True)))
    assert lines[-1] == "tie between: A; B; C"
    lines = shown(render_verdict(verdict(["A", "B", "B", "A"], report_ties=True)))
    assert lines[-1] == "tie between: A; B"


def test_calls_that_were_not_needed_are_rows_too() -> None:
    found = verdict(["A", "A", "A", "A"])
    found["unused"], found["votes"] = found["votes"][2:], found["votes"][:2]
    found["cancelled"] = 1
    lines = shown(render_verdict(found))
    assert sum("not needed" in line for line in lines) == 2
    assert any(", 1 cancelled;" in line for line in lines)


def test_votes_of_calls_that_all_failed() -> None:
    with pytest.raises(AllCallsFailedError) as caught:
        verdict([ConnectionError("reset"), "", ConnectionError("lost"), " "])
    lines = shown(render_votes([vote.to_dict() for vote in caught.value.votes]))
    assert lines[-3:] == [
        "layout 0: ConnectionError: reset",
        "layouts 1, 3: a reply without an answer",
        "layout 2: ConnectionError: lost",
    ]


def test_a_forecast_in_lines() -> None:
    asking = Ensemble(str, **COMMON, prices=Prices(1e6, 2e6, 5e5), answer_tokens=3)
    lines = forecast_lines(asking.forecast(PROMPT, **WHERE).to_dict())
    assert lines[0] == "4 layouts, phase of the answer 3, 2, 1, 0 of 4; strong phases: 2, 3"
    assert [line.split()[0] for line in lines[1:]] == ["calls", "tokens", "cost"]
    assert all(
        "at least, " in line and " expected, " in line and line.count(" at most") == 1 for line in lines[1:]
    )
