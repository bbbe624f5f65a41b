"""Accuracy by phase as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table


def render_phases(model: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row a task: accuracy and interval at each phase of the answer's first token.

    Args:
        model: the model's name, for the title.
        rows: each with setting, context and value_tokens, and n, accuracy, low and high by phase.
    """
    table = Table(title=f"{model}: accuracy by phase of the answer's first token [Wilson 95%]")
    table.add_column("task")
    table.add_column("context", justify="right")
    table.add_column("answer")
    for phase in range(max((len(row["accuracy"]) for row in rows), default=0)):
        table.add_column(f"phase {phase}", justify="right", no_wrap=True)
    table.add_column("questions", justify="right")
    for row in rows:
        cells = [
            f"{mean:.3f} [{low:.2f} {high:.2f}]"
            for mean, low, high in zip(row["accuracy"], row["low"], row["high"], strict=True)
        ]
        tokens = row["value_tokens"]
        table.add_row(
            row["setting"],
            str(row["context"]),
            f"{tokens} token{'s' * (tokens > 1)}",
            *cells,
            f"{sum(row['n']):,}",
        )
    return table
