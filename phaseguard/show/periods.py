"""What ``phaseguard lab reproduce`` found, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

Dict = Mapping[str, Any]


def render_periods(found: Dict) -> tuple[Table, ...]:
    """Tables of models, gate cycling, filler and controls; those without rows are left out.

    Args:
        found: ``questions`` and ``studies``, each as ``phaseguard.lab.study.Study.to_dict`` gives it.
    """
    studies: Sequence[Dict] = found["studies"]
    tables = (_models(found), _cycling(studies), _filler(studies), _controls(studies))
    return tuple(table for table in tables if table.row_count)


def kernel_name(spec: Dict) -> str:
    """Window and stride, gate, bias and RoPE of a spec in a few words.

    >>> kernel_name({"stride": 4, "window": 8, "gate": "channel", "bias": True, "rope": False})
    'W8/S4 channel gate, bias'
    >>> kernel_name({"stride": 0, "rope": False})
    'full attention'
    """
    rope = ", RoPE" if spec["rope"] else ""
    if not spec["stride"]:
        return f"full attention{rope}"
    if spec["gate"] == "uniform":
        return f"W{spec['window']}/S{spec['stride']} mean{rope}"
    bias = "bias" if spec["bias"] else "no bias"
    return f"W{spec['window']}/S{spec['stride']} {spec['gate']} gate, {bias}{rope}"


def _models(found: Dict) -> Table:
    table = Table(
        title=f"Accuracy by phase of the answer's first token, {found['questions']:,} questions a row",
        caption="Questions that come again in a text are left out. W window, S stride. ±: half of the 95% "
        "interval. Gap: best less worst phase, in points [95% interval]. Period: smallest that explains the "
        "answers, p corrected for periods 2 to 16. Strong: not significantly below the best.",
    )
    for name in ("model", "kernel", "length", "by phase"):
        table.add_column(name, no_wrap=name in {"model", "length"}, overflow="fold")
    _add_verdict_columns(table)
    for study in found["studies"]:
        for number, row in enumerate(study["rows"]):
            first = number == 0
            table.add_row(
                study["model"] if first else "",
                kernel_name(study["spec"]) if first else "",
                f"{row['factor']}x",
                *_verdict(row),
                end_section=number == len(study["rows"]) - 1,
            )
    return table


def _add_verdict_columns(table: Table) -> None:
    table.add_column("gap", justify="right")
    table.add_column("period", justify="right")
    table.add_column("strong")


def _verdict(row: Dict) -> tuple[str, ...]:
    strong = "all" if len(row["strong"]) == len(row["phases"]) else ", ".join(map(str, row["strong"]))
    return (
        " ".join(_share(phase) for phase in row["phases"]),
        f"{row['gap']:.1f} [{row['gap_low']:.1f} {row['gap_high']:.1f}]",
        _period(row),
        strong,
    )


def _share(accuracy: Dict) -> str:
    return f"{accuracy['mean']:.3f}±{(accuracy['high'] - accuracy['low']) / 2:.3f}"


def _period(row: Dict) -> str:
    return f"{row['period'] or 'none'} (p={row['p_value']:.3f})"


def _cycling(studies: Sequence[Dict]) -> Table:
    table = Table(
        title="Gate cycling: accuracy by phase after a part of the kernel was moved by d slots",
        caption="Bias: the gate's position bias. Gates: bias and what is read of the content. Grid: chunks "
        "start d tokens later. Shift: by which the unmoved profile is likest to this one; r: correlation "
        "with it moved by d. A flat profile has none.",
    )
    for name in ("model", "moved", "d", "by phase", "shift", "r"):
        table.add_column(name, no_wrap=name != "by phase")
    for study in studies:
        for cycling in study["cycling"]:
            for number, move in enumerate(cycling["moves"]):
                first = number == 0
                table.add_row(
                    study["model"] if first else "",
                    cycling["part"] if first else "",
                    str(move["by"]),
                    " ".join(f"{phase['mean']:.3f}" for phase in move["phases"]),
                    str(move["shift"]) if move["correlation"] else "-",
                    f"{move['correlation']:.2f}" if move["correlation"] else "-",
                    end_section=number == len(cycling["moves"]) - 1,
                )
    return table


def _filler(studies: Sequence[Dict]) -> Table:
    table = Table(title="The same text behind filler: accuracy of answers that start at phase 0 without any")
    for name in ("model", "by filler tokens", "period"):
        table.add_column(name, no_wrap=name != "by filler tokens")
    for study in studies:
        if (probe := study["filler"]) is not None:
            shares = " ".join(f"{one['mean']:.2f}" for one in probe["by_filler"])
            table.add_row(study["model"], shares, _period(probe))
    return table


def _controls(studies: Sequence[Dict]) -> Table:
    table = Table(
        title="Schemes applied at inference to full attention: accuracy by phase of their own grid",
        caption="Phases of 4 tokens where a scheme has no grid. Read: share of tokens that could be read. "
        "One flat row in twenty shows a period by chance.",
    )
    for name in ("scheme", "grid", "length", "budget", "read", "by phase"):
        table.add_column(name, no_wrap=name != "by phase")
    _add_verdict_columns(table)
    for study in studies:
        for row in study["controls"]:
            table.add_row(
                row["control"],
                str(row["grid"] or "none"),
                f"{row['factor']}x",
                f"{row['budget']:.0%}",
                f"{row['read']:.0%}",
                *_verdict(row),
            )
    return table
