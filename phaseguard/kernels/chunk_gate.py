"""The general chunk gate: a learned softmax over the tokens of a chunk, and of the chunks before it.

Source: "Periodic Weak Spots" (arXiv:2609.36322) trains its controls with windows and strides 8/8, 4/4, 8/4,
8/6 and 12/12, scalar and per-channel gates, with and without bias. :mod:`csa`, :mod:`hca` and :mod:`pair`
are instances.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, start_of
from phaseguard.kernels.entries import Entries, Floats, chunk_entries
from phaseguard.kernels.grid import Grid
from phaseguard.kernels.pool import pool


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    stride: int = 4,
    window: int | None = None,
    split: bool = False,
    bias: ArrayLike | None = None,
    out: Floats | None = None,
) -> Entries:
    """Pool ``window`` tokens into one entry every ``stride`` tokens.

    Entry w closes tokens ``w*stride .. w*stride+stride-1``; slot k of it is the token at
    ``w*stride + stride - window + k``: ``sum_k softmax_k(scores_k + bias_k) * kv_k``, channel by channel.
    Slots in front of the context have weight exactly 0; a tail shorter than the stride emits nothing.

    Args:
        kv: ``[..., T, d]``, or with ``split`` ``[..., T, d * ceil(window / stride)]``: one block of channels
            for each chunk the token takes part in, the last block for its own chunk.
        scores: as kv (a gate a channel), or one number a block (a scalar gate); -inf is a weight of zero.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of the stride on; default from 0.
        stride: tokens per entry, at least 2.
        window: slots of an entry, at least the stride (the default).
        split: whether tokens carry a block of channels for each chunk.
        bias: ``[window, d]`` or ``[window, 1]``, added to the scores by slot.
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        Entries with values ``[..., T // stride, d]`` in the dtype of kv. The softmax runs in float32, or in
        float64 if kv or scores have it. A channel whose slots all have score -inf is 0.

    Raises:
        KernelError: for shapes that do not fit, NaN, a stride below 2, positions inside a chunk.

    >>> import numpy as np
    >>> kv = np.arange(8.0)[:, None]
    >>> compress(kv, np.zeros((8, 1)), stride=4).values.ravel().tolist()
    [1.5, 5.5]
    """
    if scores is None:
        raise KernelError("scores are missing: give gates, or use the scheme 'mean'.")
    grid = Grid(stride, stride if window is None else window, split)
    values = as_floats("kv", kv, "[..., T, d]")
    gates = as_floats("scores", scores, "[..., T, d] or [..., T, 1]")
    slots = None if bias is None else as_floats("bias", bias, "[window, d] or [window, 1]")
    start = start_of(positions, values.shape[-2], grid.stride)
    pooled = pool(values, gates, slots, grid, out=out)
    return chunk_entries(pooled, start, grid.stride, grid.window)
