"""Printing for the command line: results to stdout, reports and errors to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from phaseguard.show.words import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 120


def print_error(message: str) -> None:
    """One clear line."""
    line = visible(" ".join(message.split()))
    sys.stderr.write(f"phaseguard: error: {line}\n")


def print_status(message: str) -> None:
    """A line to stderr."""
    sys.stderr.write(f"{message}\n")


def print_lines(lines: Iterable[str], end: str = "\n") -> None:
    """Lines to stdout, as UTF-8 bytes: a diff keeps its line ends on every platform."""
    sys.stdout.flush()
    for line in lines:
        sys.stdout.buffer.write(f"{line}{end}".encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """A value as JSON to stdout."""
    import json  # noqa: PLC0415

    print_lines([json.dumps(value, indent=2)])


def print_rich(*parts: RenderableType, stderr: bool = False) -> None:
    """Rich text; colours only for a terminal, and a width that does not cut tables in a pipe."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        for part in parts:
            console.print(part, soft_wrap=False)
        return
    if "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=False)
    # tables fill their lines with blanks, which a terminal hides and a log keeps
    console.file.write(
        "".join(f"{line.rstrip()}\n" for line in captured.get().removesuffix("\n").split("\n"))
    )
    console.file.flush()
