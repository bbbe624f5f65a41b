"""What asking several layouts will cost, and what came of it, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from phaseguard.show.words import brief, count, visible

_ENDED = {
    "settled": "no further ballot changes the winner",
    "agreement": "two strong phases agree",
    "probability": "an answer is probable enough",
    "budget": "the budget is spent",
    "all": "every layout was asked",
}
_ANSWER, _ERROR, _ERROR_IN_FULL = 48, 30, 600  # characters


def forecast_lines(forecast: Mapping[str, Any]) -> list[str]:
    """What asking will cost, in words.

    Args:
        forecast: what ``phaseguard.ensemble.Forecast.to_dict`` gives.

    >>> calls = {"least": 2, "expected": None, "most": 4}
    >>> made = {"calls": calls, "tokens": None, "cached": None, "cost": None, "layouts": [{"phase": 1}]}
    >>> forecast_lines(made | {"strong": [], "period": 4})
    ['1 layout, phase of the answer 1 of 4; strong phases: none known', 'calls    2 at least, 4 at most']
    """
    layouts = forecast["layouts"]
    phases = ", ".join("-" if one["phase"] is None else str(one["phase"]) for one in layouts)
    strong = ", ".join(map(str, forecast["strong"])) or "none known"
    lines = [
        f"{count(len(layouts), 'layout')}, phase of the answer {phases} of {forecast['period']}; "
        f"strong phases: {strong}",
        "calls    " + _range(forecast["calls"], "{:,.4g}"),
    ]
    if forecast["tokens"] is not None:
        shared = f"; {forecast['cached']:,} at the start of all layouts"
        lines.append("tokens   " + _range(forecast["tokens"], "{:,.0f}") + shared)
    if forecast["cost"] is not None:
        lines.append("cost     " + _range(forecast["cost"], "{:.6f}"))
    return lines


def _range(values: Mapping[str, float | None], form: str) -> str:
    """The least, the expected and the most that are known."""
    expected = values["expected"]
    middle = "" if expected is None else f"{form.format(expected)} expected, "
    return f"{form.format(values['least'])} at least, {middle}{form.format(values['most'])} at most"


def render_votes(
    votes: Sequence[Mapping[str, Any]], unused: Sequence[Mapping[str, Any]] = ()
) -> Iterator[RenderableType]:
    """One row a call, then each error in full with the layouts that met it.

    Args:
        votes: what ``phaseguard.ensemble.Vote.to_dict`` gives.
        unused: likewise, of calls that were not needed.
    """
    table = Table()
    table.add_column("layout", justify="right")
    table.add_column("phase", justify="right")
    table.add_column("answer", overflow="fold")
    for name in ("probability", "seconds", "tokens"):
        table.add_column(name, justify="right")
    table.add_column("error", no_wrap=True)
    errors: dict[str, list[str]] = {}
    for vote, note in [*((vote, "") for vote in votes), *((vote, "not needed") for vote in unused)]:
        answer = "" if vote["answer"] is None else brief(vote["answer"], _ANSWER)
        numbers = (_shown(vote["probability"], ".3f"), f"{vote['seconds']:.2f}", _shown(vote["tokens"], ","))
        if vote["error"]:
            errors.setdefault(vote["error"], []).append(str(vote["layout"]))
            note = brief(vote["error"].partition(":")[0], _ERROR)  # noqa: PLW2901 - an error comes before it
        table.add_row(str(vote["layout"]), _shown(vote["phase"], ""), answer, *numbers, note)
    yield table
    for error, layouts in errors.items():
        where = "layout" if len(layouts) == 1 else "layouts"
        yield Text(f"{where} {', '.join(layouts)}: {brief(error, _ERROR_IN_FULL)}")


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def render_verdict(verdict: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The ballots, what they rest on, and the answer.

    Args:
        verdict: what ``phaseguard.ensemble.Verdict.to_dict`` gives.
    """
    yield from render_votes(verdict["votes"], verdict["unused"])
    cost, confidence = verdict["cost"], verdict["confidence"]
    calls = count(cost["calls"], "call") + (
        f", {verdict['cancelled']} cancelled" if verdict["cancelled"] else ""
    )
    yield Text(f"{calls}; {_ENDED[verdict['ended']]}; {cost['tokens']:,} tokens in {cost['seconds']:.2f} s")
    if verdict["tie"]:
        best = verdict["candidates"][0]["score"]
        tied = [brief(one["answer"], _ANSWER) for one in verdict["candidates"] if one["score"] == best]
        yield Text(f"tie between: {'; '.join(tied)}", "bold")
        return
    yield Text(
        f"{verdict['support']} of {count(verdict['counted'], 'ballot')} (rule {verdict['rule']}), "
        f"confidence {confidence['value']:.3f}: {confidence['meaning']}"
    )
    lines = verdict["answer"].split("\n")
    yield Text.assemble(("answer  ", "bold"), "\n".join(map(visible, lines)))
