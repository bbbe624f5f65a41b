"""DeepSeek-V4.1 pair pooling: stride 2, no overlap, no bias.

Source: the layer schedule of DeepSeek-V4.1-Flash, ratio 2 (18 of its layers). Its ratio-1 layers pool
nothing; they are :mod:`phaseguard.kernels.full`.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from phaseguard.kernels import chunk_gate
from phaseguard.kernels.entries import Entries, Floats


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    out: Floats | None = None,
) -> Entries:
    """Pool every two tokens into one entry, with a softmax over the pair for each channel.

    Args:
        kv: ``[..., T, d]``.
        scores: ``[..., T, d]``.
        positions: ``[T]`` absolute positions, consecutive, from an even one on; default from 0.
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        Entries with values ``[..., T // 2, d]``; entry w is visible to the query at t iff ``w < (t+1)//2``.

    Raises:
        KernelError: for shapes that do not fit, NaN, positions inside a pair.

    >>> import numpy as np
    >>> compress(np.arange(5.0)[:, None], np.zeros((5, 1))).values.ravel().tolist()
    [0.5, 2.5]
    """
    return chunk_gate.compress(kv, scores, positions, stride=2, out=out)
