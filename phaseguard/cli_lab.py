"""``phaseguard lab``: train, list and measure on-device models. Parse, one call, print."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaseguard.cli_print import print_json, print_lines, print_rich, print_status
from phaseguard.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from phaseguard.lab.train import Progress

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
    try:
        from phaseguard.lab.train import Recipe, train  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("Training needs torch: pip install 'phaseguard[lab]'.") from error
    from phaseguard.lab.model import LabModel  # noqa: PLC0415
    from phaseguard.lab.store import save_model  # noqa: PLC0415

    checkpoint = target.with_name(f"{target.name}.checkpoint")
    with _Bar(steps) as bar:
        weights = train(
            spec, Recipe(tasks, steps=steps, echoes=echoes), seed=seed, checkpoint=checkpoint, report=bar.show
        )
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


class _Bar:
    """A progress bar on a terminal, a line every 500 steps elsewhere."""

    def __init__(self, steps: int) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        console = Console(stderr=True)
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn("step {task.completed:.0f} of {task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
        )
        self._task = self._bar.add_task("", total=steps)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, progress: Progress) -> None:
        """Take one step."""
        text = f"loss {progress.loss:.3f}, accuracy {progress.accuracy:.2f}, length {progress.share:.0%}"
        self._bar.update(self._task, completed=progress.step, description=text)
        if not self._live and progress.step % 500 == 0:
            print_status(f"step {progress.step} of {progress.steps}: {text}")


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
