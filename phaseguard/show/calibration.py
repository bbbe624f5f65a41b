"""A calibration in a terminal: the plan before it, the verdict with its figures after it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from phaseguard.profiles import user_folder

_STYLES = {"effect": "bold yellow", "no effect": "bold green", "undecided": "bold", "holds": "bold green"}
_SHOWN_PERIODS = 5
_BAR = 30


def plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """What will be asked at most, what it costs, and what it can see.

    Args:
        plan: of :class:`phaseguard.calibrate.Plan`, as a dict.
    """
    sees = ", ".join(
        f"{gap:.0f} points at period {period}"
        if gap is not None and gap < 100
        else f"none at period {period}"
        for period, gap in plan["sees"].items()
    )
    cost = "unknown without prices" if plan["cost"] is None else f"${plan['cost']:.2f} at most"
    return [
        f"{plan['items']} texts at {plan['shifts']} shifts, judged after {_list(plan['looks'])} texts",
        f"at most {plan['calls']:,} calls, about {plan['prompt_tokens']:,} prompt tokens and "
        f"{plan['answer_tokens']:,} answer tokens",
        f"cost: {cost}; time: {_time(plan['seconds'])} if a call takes {plan['seconds_a_call']:g} s",
        f"smallest effect that is found 9 times of 10: {sees}",
    ]


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def render_calibration(found: Mapping[str, Any]) -> list[Table | Text]:
    """The verdict, accuracy by phase, the periods tried, controls, and what to do next.

    Args:
        found: of :meth:`phaseguard.calibrate.Calibration.to_dict`.
    """
    judged = found["judgement"]
    parts: list[Table | Text] = [_verdict(judged["verdict"], judged["reason"])]
    if judged["verdict"] == "effect":
        for shape, row in found["strengths"].items():
            parts.append(
                _phases(f"answers of {_tokens(shape)}, moved by the pads of aligning", row, found["strong"])
            )
    else:
        parts.append(_phases("all answers", judged["phases"], ()))
    parts.append(_periods(judged))
    if found["controls"]:
        parts.append(_controls(found["controls"]))
    parts += [Text(f"note: {note}") for note in found["notes"]]
    parts.append(Text(_spent(found["spent"])))
    parts.append(Text(_next(found)))
    return parts


def render_revalidation(found: Mapping[str, Any]) -> list[Table | Text]:
    """Whether a profile still holds.

    Args:
        found: of :meth:`phaseguard.calibrate.Revalidation.to_dict`.
    """
    parts: list[Table | Text] = [_verdict(found["verdict"], found["reason"])]
    for shape, row in found["strengths"].items():
        parts.append(_phases(f"answers of {_tokens(shape)} now", row, found["strong"]))
    parts += [Text(found["check"]["note"]), Text(_spent(found["spent"]))]
    return parts


def _verdict(word: str, reason: str) -> Text:
    return Text.assemble((word, _STYLES.get(word, "bold red")), f": {reason}")


def _phases(title: str, row: Iterable[Mapping[str, Any]], strong: Iterable[int]) -> Table:
    table = Table(box=box.SIMPLE, title=title, title_justify="left", pad_edge=False, show_edge=False)
    for name in ("phase", "accuracy", "95% interval", "n", ""):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    best = set(strong)
    for phase, accuracy in enumerate(row):
        bar = "█" * round(_BAR * accuracy["mean"])
        interval = f"{accuracy['low']:.3f} to {accuracy['high']:.3f}"
        mark = " strong" if phase in best else ""
        table.add_row(str(phase), f"{accuracy['mean']:.3f}", interval, str(accuracy["n"]), bar + mark)
    return table


def _tokens(shape: str) -> str:
    return {"1": "1 token", "3": "3 tokens and more"}.get(shape, f"{shape} tokens")


def _periods(judged: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE, title="periods", title_justify="left", pad_edge=False, show_edge=False)
    for name in ("period", "statistic", "p, corrected"):
        table.add_column(name, justify="right")
    tests = sorted(judged["scan"]["tests"], key=lambda test: (test["p_corrected"], -test["statistic"]))
    for test in sorted(tests[:_SHOWN_PERIODS], key=lambda test: test["period"]):
        chosen = " <" if test["period"] == judged["period"] else ""
        table.add_row(f"{test['period']}{chosen}", f"{test['statistic']:.1f}", f"{test['p_corrected']:.4f}")
    return table


def _controls(controls: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE, title="controls", title_justify="left", pad_edge=False, show_edge=False)
    for name in ("probe", "expected", "verdict", "p"):
        table.add_column(name, no_wrap=True)
    for probe, judged in controls.items():
        expected = "effect" if probe == "filler" else "no effect"
        table.add_row(probe, expected, judged["verdict"], f"{judged['p_value']:.4f}")
    return table


def _spent(spent: Mapping[str, Any]) -> str:
    cost = "" if spent["cost"] is None else f", ${spent['cost']:.2f}"
    before = f", {spent['resumed']:,} of them from before" if spent["resumed"] else ""
    return (
        f"{spent['calls']:,} calls{before}, {spent['prompt_tokens']:,} prompt tokens{cost}, "
        f"{spent['seconds']:.2f} s a call"
    )


def _next(found: Mapping[str, Any]) -> str:
    profile, path = found["profile"], found["path"]
    if profile is None:
        return "No profile was written. Ask more texts (--items) with another results file."
    where = "not saved" if path is None else f"saved: {path}"
    if profile["period"] == 1:
        return f"profile {profile['name']}, {where}: aligning does nothing for it"
    return f"profile {profile['name']}, {where}; use it with --profile {shlex.quote(named_by(found))}"


def named_by(found: Mapping[str, Any]) -> str:
    """What loads the profile of a calibration: its name among the user's own, else its file.

    Args:
        found: of :meth:`phaseguard.calibrate.Calibration.to_dict`, with a profile.

    >>> named_by({"profile": {"name": "mine"}, "path": "out/mine.json"})
    'out/mine.json'
    """
    name, path = str(found["profile"]["name"]), found["path"]
    if path is None or Path(path).resolve() == (user_folder() / f"{name}.json").resolve():
        return name
    return str(path) if str(path).endswith(".json") else os.path.join(".", path)  # a bare word is a name
