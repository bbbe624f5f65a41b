"""``phaseguard demo`` and ``phaseguard lab prior``: parse, one call, print."""

from __future__ import annotations

from typing import Annotated

import typer

from phaseguard.cli_print import print_json, print_lines, print_rich
from phaseguard.cli_progress import Steps

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: every figure with its interval.")]


def demo(
    scheme: Annotated[str, typer.Option(help="csa4, chunk4, chunk8, pair2 or mean4.")] = "csa4",
    model: Annotated[str | None, typer.Option(help="Another model: a name, or a .safetensors file.")] = None,
    questions: Annotated[int, typer.Option(min=10, help="Prompts, one question each.")] = 500,
    setting: Annotated[str, typer.Option(help="ask, records or sentences.")] = "ask",
    plot: Annotated[str | None, typer.Option(help="Write a figure here (.png, .svg, .pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the defences on a small model with a real compression kernel: offline, no GPU, no API key."""
    from phaseguard.lab.demo import STRATEGIES, run_demo  # noqa: PLC0415
    from phaseguard.lab.manifest import leading_name  # noqa: PLC0415
    from phaseguard.lab.spec import make_spec  # noqa: PLC0415
    from phaseguard.lab.store import load_model  # noqa: PLC0415
    from phaseguard.lab.tasks import standard_tasks  # noqa: PLC0415
    from phaseguard.profiles.store import profile_name  # noqa: PLC0415

    if plot is not None:  # refused before a minute is spent
        from phaseguard.show.figure import check_figure  # noqa: PLC0415

        check_figure(plot)
    (task,) = standard_tasks((setting,))  # type: ignore[arg-type]
    name = model or leading_name(make_spec(scheme), task.setting)
    loaded = load_model(name)
    with Steps(STRATEGIES, unit="strategies") as steps:
        found = run_demo(loaded, profile_name(name), task=task, n=questions, report=steps.done).to_dict()
    if plot is not None:
        from phaseguard.show.strategies import save_strategies  # noqa: PLC0415

        save_strategies(found, plot)
    if as_json:
        print_json(found)
        return
    from phaseguard.show.strategies import render_strategies  # noqa: PLC0415

    print_rich(render_strategies(found))
    print_lines(_notes(found["profile"]["strengths"]["1"]["mean"]))


def _notes(strengths: list[float]) -> list[str]:
    shown = ", ".join(f"{mean:.3f}" for mean in strengths)
    return [
        f"Strengths by phase, measured on other, padded prompts: {shown}.",
        "A prompt starts behind 0 to period - 1 decorative blank lines; pads count as tokens added.",
    ]


def prior(
    scheme: Annotated[str, typer.Option(help="Which shipped models.")] = "csa4",
    questions: Annotated[int, typer.Option(min=10, help="Questions a phase, model and task.")] = 400,
    as_json: AsJson = False,
) -> None:
    """Do the shipped models agree which phases are strong on padded prompts? By answer length and task."""
    from phaseguard.lab.manifest import trained_for  # noqa: PLC0415
    from phaseguard.lab.prior import find_prior  # noqa: PLC0415
    from phaseguard.lab.spec import make_spec  # noqa: PLC0415

    models = trained_for(make_spec(scheme))
    with Steps(len(models), unit="models") as steps:
        shapes = [shape.to_dict() for shape in find_prior(models, n=questions, report=steps.done)]
    if as_json:
        print_json(shapes)
        return
    from phaseguard.show.prior import render_prior  # noqa: PLC0415

    print_rich(render_prior(shapes))
