"""Checks of arrays and settings that all schemes share. Each error says what to give instead."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.entries import Array, Floats


def as_floats(name: str, value: ArrayLike, shape: str, least: int = 2) -> Floats:
    """The array as it is, if it has a floating dtype and at least ``least`` dimensions."""
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.floating):
        raise KernelError(f"{name} has dtype {array.dtype}: give an array of a floating dtype, {shape}.")
    if array.ndim < least:
        raise KernelError(f"{name} has shape {array.shape}: give {shape}.")
    return array


def check_finite(name: str, array: Array, *, masked: bool = False) -> None:
    """Refuse NaN and infinities; ``masked`` allows -inf, which stands for a weight of zero."""
    wrong = ~np.isfinite(array)
    if masked:
        wrong &= ~np.isneginf(array)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        allowed = "finite numbers, or -inf for a weight of zero" if masked else "finite numbers"
        raise KernelError(
            f"{name} holds {array[at]} at index {at} ({int(wrong.sum())} such values): give {allowed}."
        )


def check_shape(name: str, got: tuple[int, ...], *wanted: tuple[int, ...]) -> None:
    """Refuse a shape that is none of ``wanted``."""
    if got not in wanted:
        raise KernelError(f"{name} has shape {got}: give {' or '.join(str(shape) for shape in wanted)}.")


def check_at_least(name: str, value: int, least: int) -> int:
    """The whole number as it is, if it is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise KernelError(f"{name} is {value!r}: give a whole number of at least {least}.")
    return int(value)


def start_of(positions: ArrayLike | None, tokens: int, stride: int = 1) -> int:
    """First absolute position; positions must be consecutive and start at a multiple of ``stride``."""
    if positions is None:
        return 0
    array = np.asarray(positions)
    if array.shape != (tokens,) or (tokens and not np.issubdtype(array.dtype, np.integer)):
        raise KernelError(
            f"positions have shape {array.shape} and dtype {array.dtype}: give {tokens} whole numbers, "
            "one absolute position a token, the same for the whole batch."
        )
    if not tokens:
        return 0
    start = int(array[0])
    if start < 0 or not np.array_equal(array, start + np.arange(tokens)):
        raise KernelError(
            "positions are not consecutive: give start, start + 1, ..., padding only on the right."
        )
    if start % stride:
        raise KernelError(
            f"positions start at {start}, inside a chunk of {stride}: "
            f"give the tokens from position {start - start % stride} on."
        )
    return start
