"""Accuracy by agreement and by probability, as tables and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from phaseguard.show.figure import check_figure, write_figure
from phaseguard.show.words import share


def render_agreement(found: Mapping[str, Any]) -> tuple[Table, Table]:
    """Two tables, of agreement and of probability: one row a group of questions.

    Args:
        found: what ``phaseguard.lab.agreement.Agreement.to_dict`` gives.
    """
    head = f"{found['model']}, {found['task']['setting']}: {found['n']:,} questions [Wilson 95%]"
    votes = _table(f"{head}\nvote over {found['layouts']}", "ballots that agree", "right")
    for level in found["agreement"]:
        agreeing = f"{round(level['least'] * found['layouts'])} of {found['layouts']}"
        votes.add_row(agreeing, f"{level['n']:,}", share(level))
    votes.add_row("all", f"{found['n']:,}", share(found["vote"]), style="bold")
    first = _table("the strongest layout alone", "probability told", "right", "mean told")
    for level in found["probability"]:
        told = f"{level['told']:.3f}" if level["n"] else "-"
        first.add_row(f"{level['least']:g} to {level['most']:g}", f"{level['n']:,}", share(level), told)
    first.add_row("all", f"{found['n']:,}", share(found["first"]), "", style="bold")
    return votes, first


def _table(title: str, group: str, *columns: str) -> Table:
    table = Table(title=title)
    table.add_column(group, no_wrap=True)
    for column in ("questions", *columns):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def save_agreement(found: Mapping[str, Any], path: str) -> None:
    """Write the calibration curves: what the signal says against how often the answer is right.

    Args:
        found: as for :func:`render_agreement`.
        path: where to; its ending says which format (.png, .svg, .pdf).

    Raises:
        MissingExtraError: without matplotlib.
        InputError: when the file cannot be written, or its ending is not known.
    """
    check_figure(path)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="told as it is")
    series: tuple[tuple[str, str, str], ...] = (
        ("agreement", "C0", f"share of {found['layouts']} ballots, the vote"),
        ("probability", "C3", "probability, the strongest layout alone"),
    )
    for which, colour, label in series:
        levels: Sequence[Mapping[str, Any]] = [level for level in found[which] if level["n"]]
        ends = [
            [level["mean"] - level["low"] for level in levels],
            [level["high"] - level["mean"] for level in levels],
        ]
        told, right = [level["told"] for level in levels], [level["mean"] for level in levels]
        axes.errorbar(told, right, yerr=ends, fmt="o-", color=colour, label=label, capsize=3)
    axes.set_xlabel("share of the ballots, or probability")
    axes.set_ylabel("right answers [Wilson 95%]")
    axes.set_title(f"{found['model']}, {found['task']['setting']}, {found['n']:,} questions")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    write_figure(figure, path)
