"""``phaseguard lab agreement``: parse, one call, print."""

from __future__ import annotations

from typing import Annotated

import typer

from phaseguard.cli_print import print_json, print_rich


def agreement(
    scheme: Annotated[str, typer.Option(help="csa4, chunk4, chunk8, pair2 or mean4.")] = "csa4",
    setting: Annotated[str, typer.Option(help="ask, records or sentences.")] = "ask",
    questions: Annotated[int, typer.Option(min=10, help="Questions, each asked once a phase.")] = 1000,
    plot: Annotated[str | None, typer.Option(help="Write a figure here (.png, .svg, .pdf).")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: every figure with its interval.")
    ] = False,
) -> None:
    """How often is an answer right when 4, 3, 2 of 4 layouts agree, and when the model was this sure?"""
    from phaseguard.lab.agreement import measure_agreement  # noqa: PLC0415
    from phaseguard.lab.manifest import leading_name  # noqa: PLC0415
    from phaseguard.lab.spec import make_spec  # noqa: PLC0415
    from phaseguard.lab.store import load_model  # noqa: PLC0415
    from phaseguard.lab.tasks import standard_tasks  # noqa: PLC0415

    if plot is not None:  # refused before a minute is spent
        from phaseguard.show.figure import check_figure  # noqa: PLC0415

        check_figure(plot)
    (task,) = standard_tasks((setting,))  # type: ignore[arg-type]
    name = leading_name(make_spec(scheme), task.setting)
    found = measure_agreement(load_model(name), name, task=task, n=questions).to_dict()
    if plot is not None:
        from phaseguard.show.agreement import save_agreement  # noqa: PLC0415

        save_agreement(found, plot)
    if as_json:
        print_json(found)
        return
    from phaseguard.show.agreement import render_agreement  # noqa: PLC0415

    print_rich(*render_agreement(found))
