"""The comparison of defences as a table and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from phaseguard.show.figure import check_figure, write_figure
from phaseguard.show.words import share


def render_strategies(demo: Mapping[str, Any]) -> Table:
    """One row a strategy.

    Args:
        demo: what ``phaseguard.lab.demo.Demo.to_dict`` gives.
    """
    table = Table(title=f"{demo['model']}: {demo['n']:,} questions [95% intervals]")
    table.add_column("strategy", no_wrap=True)
    table.add_column("accuracy", justify="right", no_wrap=True)
    table.add_column("worst initial phase", justify="right", no_wrap=True)
    table.add_column("calls", justify="right")
    table.add_column("tokens added", justify="right")
    for row in demo["rows"]:
        table.add_row(
            row["strategy"],
            share(row["accuracy"]),
            share(row["worst"]),
            f"{row['calls']:.2f}",
            f"{row['tokens_added']:.1f}",
        )
    return table


def save_strategies(demo: Mapping[str, Any], path: str) -> None:
    """Write the comparison as a figure: accuracy with its interval, and the worst initial phase.

    Args:
        demo: as for :func:`render_strategies`.
        path: where to; its ending says which format (.png, .svg, .pdf).

    Raises:
        MissingExtraError: without matplotlib.
        InputError: when the file cannot be written, or its ending is not known.
    """
    check_figure(path)
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows: Sequence[Mapping[str, Any]] = demo["rows"][::-1]
    figure = Figure(figsize=(8, 0.4 * len(rows) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    series = (("accuracy", "C0", "all prompts", 0.12), ("worst", "C3", "worst initial phase", -0.12))
    for which, colour, label, lift in series:
        means = [row[which]["mean"] for row in rows]
        ends = [
            [mean - row[which]["low"] for mean, row in zip(means, rows, strict=True)],
            [row[which]["high"] - mean for mean, row in zip(means, rows, strict=True)],
        ]
        heights = [number + lift for number in range(len(rows))]  # side by side, so that none is hidden
        axes.errorbar(means, heights, xerr=ends, fmt="o", color=colour, label=label, capsize=3)
    axes.set_yticks(range(len(rows)), [row["strategy"] for row in rows])
    axes.set_xlabel("accuracy [95% interval]")
    axes.set_title(f"{demo['model']}, {demo['n']:,} questions")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower left")
    write_figure(figure, path)
