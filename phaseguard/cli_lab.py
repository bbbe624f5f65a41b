"""``phaseguard lab``: train, list and measure on-device models. Parse, one call, print."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from phaseguard.cli_extras import for_training
from phaseguard.cli_print import print_json, print_lines, print_rich, print_status
from phaseguard.cli_progress import Steps
from phaseguard.errors import InputError

app = typer.Typer(
    name="lab",
    help="Train and measure small on-device models with real compression kernels: no GPU, no API key.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def train(
    scheme: Annotated[str, typer.Option(help="full, csa4, chunk4, chunk8, pair2 or mean4.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Write the weights here (.safetensors).")],
    stride: Annotated[int | None, typer.Option(help="Another stride, at least 2.")] = None,
    rope: Annotated[bool, typer.Option("--rope/--no-rope", help="RoPE in the second block.")] = False,
    uniform_gate: Annotated[bool, typer.Option("--uniform-gate", help="Pool by the mean.")] = False,
    scalar_gate: Annotated[bool, typer.Option("--scalar-gate", help="One gate for all channels.")] = False,
    no_bias: Annotated[bool, typer.Option("--no-bias", help="No position bias in the gate.")] = False,
    setting: Annotated[
        list[str] | None, typer.Option(help="ask (the default), records or sentences; may be repeated.")
    ] = None,
    value_tokens: Annotated[
        list[int] | None, typer.Option(help="Tokens of an answer, 1 (the default) to 3; may be repeated.")
    ] = None,
    key_tokens: Annotated[int, typer.Option(help="Tokens of a key, 1 or 2.")] = 1,
    gap: Annotated[
        list[int] | None, typer.Option(help="Tokens between key and answer in records; may be repeated.")
    ] = None,
    echoes: Annotated[int, typer.Option(help="Of 16 questions, how many are asked again right away.")] = 3,
    steps: Annotated[int, typer.Option(help="Batches of 32 sequences.")] = 3000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal weights.")] = 0,
) -> None:
    """Train a model; interrupted, the same command goes on where it stopped."""
    from phaseguard.lab.spec import make_spec  # noqa: PLC0415
    from phaseguard.lab.tasks import standard_tasks  # noqa: PLC0415

    spec = make_spec(
        scheme,
        stride=stride,
        rope=rope,
        uniform_gate=uniform_gate,
        scalar_gate=scalar_gate,
        bias=False if no_bias else None,
    )
    tasks = standard_tasks(
        tuple(setting or ("ask",)),  # type: ignore[arg-type]
        tuple(value_tokens or (1,)),
        key_tokens=key_tokens,
        gaps=tuple(gap or (0,)),
    )
    target = Path(output)
    if not target.parent.is_dir():
        raise InputError(f"{output} cannot be written: there is no folder {target.parent}.")
    with for_training():
        from phaseguard.lab.train import Progress, Recipe, train  # noqa: PLC0415
    from phaseguard.lab.model import LabModel  # noqa: PLC0415
    from phaseguard.lab.store import save_model  # noqa: PLC0415

    checkpoint = target.with_name(f"{target.name}.checkpoint")
    with Steps(steps, every=500, unit="steps") as done:

        def show(progress: Progress) -> None:
            done.reached(
                progress.step,
                f"loss {progress.loss:.3f}, accuracy {progress.accuracy:.2f}, length {progress.share:.0%}",
            )

        recipe = Recipe(tasks, steps=steps, echoes=echoes)
        weights = train(spec, recipe, seed=seed, checkpoint=checkpoint, report=show)
    command = shlex.join(["phaseguard", *sys.argv[1:]]).replace(output, target.name)
    told = {
        "command": command,
        "seed": seed,
        "steps": steps,
        "echoes": echoes,
        "tasks": [asdict(task) for task in tasks],
    }
    digest = save_model(target, LabModel(spec, weights), told)
    print_status(f"{output}: {sum(w.size for w in weights.values()):,} parameters, sha256 {digest}")


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the shipped models: scheme, seed, command, digest."""
    from phaseguard.lab.store import shipped  # noqa: PLC0415

    known = shipped()
    if as_json:
        print_json(known)
        return
    print_lines(f"{name}: {entry['command']}" for name, entry in known.items())


@app.command()
def measure(
    model: Annotated[str, typer.Argument(help="A shipped model's name, or a .safetensors file.")] = "csa4-s0",
    as_json: AsJson = False,
) -> None:
    """Accuracy by the phase of the answer's first token, on what the model was trained for."""
    from phaseguard.lab.manifest import measured, trained_on  # noqa: PLC0415
    from phaseguard.lab.store import about, find_file, load_file  # noqa: PLC0415

    path = find_file(model)
    rows = measured(load_file(path), trained_on(about(path)))
    if as_json:
        print_json(rows)
        return
    from phaseguard.show.phases import render_phases  # noqa: PLC0415

    print_rich(render_phases(model, rows))
