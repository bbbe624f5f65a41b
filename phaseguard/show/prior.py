"""Whether on-device models agree about strong phases, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table


def render_prior(shapes: Sequence[Mapping[str, Any]]) -> Table:
    """One row a model and task, grouped by answer length, and what each group says together.

    Args:
        shapes: what ``phaseguard.lab.prior.Shape.to_dict`` gives, one for each answer length.
    """
    table = Table(title="Accuracy on padded prompts by the phase that pads brought the answer to")
    for title in ("answer", "task", "model"):
        table.add_column(title)
    for phase in range(max(len(shape["mean"]) for shape in shapes)):
        table.add_column(f"phase {phase}", justify="right")
    for shape in shapes:
        tokens = f"{shape['answer_tokens']} token{'s' * (shape['answer_tokens'] > 1)}"
        for cell in sorted(shape["cells"], key=lambda cell: (cell["task"], cell["model"])):
            table.add_row(tokens, cell["task"], cell["model"], *(f"{a:.3f}" for a in cell["accuracy"]))
        table.add_row(
            tokens,
            "all",
            verdict(shape),
            *(f"{a:.3f}" for a in shape["mean"]),
            style="bold",
            end_section=True,
        )
    return table


def verdict(shape: Mapping[str, Any]) -> str:
    """What one answer length says, in words.

    >>> verdict({"order": [3, 0, 1, 2], "agreed": False, "best_phase_agreed": True, "contradictions": [0]})
    'phase 3 best or tied everywhere, the order is not agreed'
    """
    order = " > ".join(map(str, shape["order"]))
    if shape["agreed"]:
        return f"agreed: {order}"
    if shape["best_phase_agreed"]:
        return f"phase {shape['order'][0]} best or tied everywhere, the order is not agreed"
    return f"not agreed: {len(shape['contradictions'])} contradictions"
