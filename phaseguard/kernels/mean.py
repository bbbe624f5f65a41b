"""Uniform mean of every chunk, also with overlap.

Source: "Periodic Weak Spots" (arXiv:2609.36322), the control without learned gates; selection stages that
mean-pool keys do the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.kernels import chunk_gate
from phaseguard.kernels.check import as_floats
from phaseguard.kernels.entries import Entries, Floats
from phaseguard.kernels.grid import Grid


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None = None,  # noqa: ARG001 - every scheme takes it
    positions: ArrayLike | None = None,
    *,
    stride: int = 4,
    window: int | None = None,
    split: bool = False,
    out: Floats | None = None,
) -> Entries:
    """Average ``window`` tokens into one entry every ``stride`` tokens; tokens before the first do not count.

    Args:
        kv: ``[..., T, d]``, or with ``split`` one block of channels for each chunk, as in ``chunk_gate``.
        scores: not used; None.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of the stride on; default from 0.
        stride: tokens per entry, at least 2.
        window: tokens averaged, at least the stride (the default).
        split: whether tokens carry a block of channels for each chunk.
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        Entries with values ``[..., T // stride, d]``, computed in float32, or in float64 if kv has it.

    Raises:
        KernelError: for shapes that do not fit, NaN, a stride below 2, positions inside a chunk.

    >>> compress(np.arange(8.0)[:, None], stride=2, window=4).values.ravel().tolist()
    [0.5, 1.5, 3.5, 5.5]
    """
    values = as_floats("kv", kv, "[..., T, d]")
    blocks = Grid(stride, stride if window is None else window, split).blocks
    flat = np.broadcast_to(np.zeros(1, values.dtype), (*values.shape[:-1], blocks))
    return chunk_gate.compress(values, flat, positions, stride=stride, window=window, split=split, out=out)
