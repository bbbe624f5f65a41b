"""``phaseguard lab reproduce``: parse, calls, print."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaseguard.cli_extras import for_training
from phaseguard.cli_print import print_json, print_rich, print_status
from phaseguard.cli_progress import Steps
from phaseguard.errors import InputError

if TYPE_CHECKING:
    from phaseguard.lab.study import Subject


def reproduce(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, every figure with its interval.")
    ] = False,
    plot: Annotated[str | None, typer.Option(help="Write a figure here (.png, .svg, .pdf).")] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Train one model of each kind first (extra lab).")
    ] = False,
    questions: Annotated[int, typer.Option(help="Least number of questions a row.")] = 2400,
    steps: Annotated[int, typer.Option(help="With --from-scratch: batches of 32 sequences a model.")] = 1500,
    folder: Annotated[
        str | None, typer.Option(help="With --from-scratch: keep the weights here, and go on if interrupted.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
) -> None:
    """Which kernels have a period? The paper's controls on the shipped models."""
    from phaseguard.lab.reproduce import reproduce, subjects  # noqa: PLC0415
    from phaseguard.lab.store import shipped  # noqa: PLC0415

    if plot is not None:  # refused before a minute is spent
        from phaseguard.show.figure import check_figure  # noqa: PLC0415

        check_figure(plot)
    found = subjects(shipped())
    with ExitStack() as stack:
        if from_scratch:
            where = Path(folder) if folder else Path(stack.enter_context(tempfile.TemporaryDirectory()))
            found = _trained(found, where, steps, workers)
        examined = stack.enter_context(Steps(len(found), every=1, unit="examined"))
        done = reproduce(found, questions=questions, workers=workers, report=examined.done)
    told = {"questions": questions, "studies": [study.to_dict() for study in done]}
    if plot is not None:
        from phaseguard.show.period_figure import save_periods  # noqa: PLC0415

        save_periods(told, plot)
        print_status(f"{plot}: written")
    if as_json:
        print_json(told)
        return
    from phaseguard.show.periods import render_periods  # noqa: PLC0415

    print_rich(*render_periods(told))


def _trained(found: tuple[Subject, ...], where: Path, steps: int, workers: int) -> tuple[Subject, ...]:
    if not where.is_dir():
        raise InputError(f"There is no folder {where}: make it, or give another with --folder.")
    with for_training():
        from phaseguard.lab.scratch import train_kinds  # noqa: PLC0415
    from phaseguard.lab.reproduce import leading  # noqa: PLC0415

    with Steps(len(leading(found)), every=1, unit="trained") as trained:
        return train_kinds(found, where, steps=steps, workers=workers, report=trained.done)
