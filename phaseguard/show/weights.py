"""What a checkpoint's compressors show, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

_SHOWN = 8


def render_weights(report: Mapping[str, Any]) -> Table:
    """One row a compressor.

    Args:
        report: what ``WeightsReport.to_dict`` gives.
    """
    strides = report["strides"]
    kind = f"stride {', '.join(map(str, strides))}" if strides else "stride unknown"
    table = Table(
        title=Text(f"{report['source']}: {kind}{_overlap(report['overlap'])}"),
        caption=Text(report["statement"]),
        box=box.SIMPLE,
        pad_edge=False,
        show_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("layer", justify="right")
    table.add_column("part")
    table.add_column("stride", justify="right")
    table.add_column("bias favours")
    table.add_column("share by phase, %", no_wrap=True)
    table.add_column("own chunk, %", no_wrap=True)
    table.add_column("chunk before, %", no_wrap=True)
    table.add_column("bias / gate", justify="right")
    for row in report["layers"]:
        favour = row["favour"]
        cells = ("no position bias", "", "", "") if favour is None else _favour(favour)
        table.add_row(
            str(row["layer"]),
            row["part"],
            str(row["stride"] or "?"),
            *cells,
            _against(favour, row["gate_scale"]),
        )
    return table


def schedule_words(schedule: Sequence[int]) -> str:
    """Strides by layer in words, pairs that alternate together.

    >>> schedule_words([0, 0, 4, 128, 4, 128, 4])
    '2 x 0, 2 x (4, 128), 4'
    >>> schedule_words([0, 2, 2, 1])
    '0, 2 x 2, 1'
    """
    words, at = [], 0
    while at < len(schedule):
        pair, times = tuple(schedule[at : at + 2]), 1
        while tuple(schedule[at + 2 * times : at + 2 * times + 2]) == pair:
            times += 1
        if times > 1 and len(set(pair)) == 2:
            words.append(f"{times} x ({pair[0]}, {pair[1]})")
            at += 2 * times
            continue
        run = next(len(list(same)) for _, same in groupby(schedule[at:]))
        words.append(f"{run} x {schedule[at]}" if run > 1 else str(schedule[at]))
        at += run
    return ", ".join(words)


def _overlap(overlap: bool | None) -> str:
    return {True: ", overlapping", False: ", without overlap", None: ""}[overlap]


def _favour(favour: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Favoured phases, then shares in per cent: by phase, and of the slots of each chunk."""
    listed = ", ".join(map(str, favour["favoured"][:_SHOWN])) or "none: flat"
    more = ", ..." if len(favour["favoured"]) > _SHOWN else ""
    return listed + more, _shares(favour["phases"]), _shares(favour["own"]), _shares(favour["previous"])


def _shares(shares: Sequence[float]) -> str:
    if len(shares) > _SHOWN:
        return f"{100 * min(shares):.2f} to {100 * max(shares):.2f}"
    return " ".join(f"{100 * share:.1f}" for share in shares) or "-"


def _against(favour: Mapping[str, Any] | None, gate: float | None) -> str:
    if favour is None:
        return "" if gate is None else f"- / {gate:.2f}"
    return f"{favour['bias_scale']:.2f} / {'?' if gate is None else f'{gate:.2f}'}"
