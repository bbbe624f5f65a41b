"""``phaseguard calibrate --weights``: what a checkpoint says of its compression. One call, print."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from phaseguard.cli_print import print_json, print_rich, print_status
from phaseguard.errors import InputError


def weights_command(
    weights: str,
    *,
    name: str | None = None,
    tokenizer: str | None = None,
    chat: str | None = None,
    model: str | None = None,
    output: str | None = None,
    overwrite: bool = False,
    gates: bool = False,
    revision: str = "main",
    hub_url: str | None = None,
    as_json: bool = False,
) -> None:
    """Print a table of a checkpoint's compressors, and write a profile when a name or a file is given.

    Args:
        weights: a folder, a .safetensors file, or ``owner/name`` on a hub.
        name: the profile's name; the output's stem by default. Without name and output none is written.
        tokenizer: the profile's tokenizer.
        chat: its chat encoding.
        model: its model's id; by default the repository.
        output: write the profile here; by default, under its name among the user's own.
        overwrite: replace a profile of that name.
        gates: read the gates' weights too.
        revision: branch, tag or commit on the hub.
        hub_url: another hub.
        as_json: print JSON.

    Raises:
        InputError, ProfileError: as :func:`phaseguard.calibrate.weights.read_weights` and ``to_profile``.
    """
    from pathlib import Path  # noqa: PLC0415

    from phaseguard.calibrate.weights import read_weights  # noqa: PLC0415
    from phaseguard.profiles import save_profile  # noqa: PLC0415
    from phaseguard.show.weights import render_weights, schedule_words  # noqa: PLC0415

    if (tokenizer or chat) and not (name or output):
        raise InputError("A profile is written under a name or to a file: give --name or --out as well.")
    report = read_weights(weights, gates=gates, revision=revision, hub_url=hub_url)
    told = report.to_dict()
    if as_json:
        print_json(told)
    elif report.layers:
        print_rich(render_weights(told))
    else:
        print_rich(report.statement)
    if report.schedule.strides and not as_json:
        print_rich(f"Stride by layer in config.json: {schedule_words(report.schedule.strides)}")
    if name or output:
        profile = report.to_profile(
            name or Path(output or "").stem,
            tokenizer=tokenizer,
            chat=chat,
            model=model,
            date=datetime.now(UTC).date().isoformat(),
            command=shlex.join(["phaseguard", "calibrate", "--weights", weights]),
        )
        print_status(f"profile written: {save_profile(profile, output, overwrite=overwrite)}")
