"""Figures: what is refused early, and how one is written."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from phaseguard.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".png", ".svg", ".pdf")


def check_figure(path: str) -> None:
    """Refuse early what :func:`write_figure` would refuse late.

    Raises:
        MissingExtraError: without matplotlib.
        InputError: for a file of another kind, or in a folder that is not there.
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("A figure needs matplotlib: pip install 'phaseguard[plots]'.")
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise InputError(f"{path} is no figure that can be drawn: end it in one of {', '.join(_FORMATS)}.")
    if not target.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {target.parent}.")


def write_figure(figure: Figure, path: str) -> None:
    """Write a figure; the path's ending says which format.

    Raises:
        InputError: when the file cannot be written.
    """
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"The figure cannot be written to {path}: {error}.") from error
