"""DeepSeek-V4 HCA (heavily compressed attention): stride 128, no overlap.

Source: DeepSeek-V4's inference code and ``DeepseekV4HCACompressor`` of transformers (>= 5.8), which agree.
There is no indexer: every visible entry is attended.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from phaseguard.kernels import chunk_gate
from phaseguard.kernels.entries import Entries, Floats

STRIDE = 128


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    bias: ArrayLike | None = None,
    stride: int = STRIDE,
    out: Floats | None = None,
) -> Entries:
    """Pool every 128 tokens into one entry, with a softmax over the tokens for each channel.

    Args:
        kv: ``[..., T, d]``.
        scores: ``[..., T, d]``.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of the stride on; default from 0.
        bias: ``[128, d]``, added by absolute position mod 128.
        stride: 128 in every release.
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        Entries with values ``[..., T // 128, d]``; entry w is visible to the query at t iff
        ``w < (t+1)//128``.

    Raises:
        KernelError: for shapes that do not fit, NaN, a stride below 2, positions inside a chunk.

    >>> import numpy as np
    >>> entries = compress(np.ones((300, 2)), np.zeros((300, 2)))
    >>> entries.values.shape, entries.last.tolist()
    ((2, 2), [127, 255])
    """
    return chunk_gate.compress(kv, scores, positions, stride=stride, bias=bias, out=out)
