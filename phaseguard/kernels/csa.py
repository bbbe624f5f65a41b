"""DeepSeek-V4 CSA (compressed sparse attention): stride 4, overlapping window of 8.

Source: DeepSeek-V4's inference code and ``DeepseekV4CSACompressor`` of transformers (>= 5.8), which agree.
Left out: the indexer, which selects among these entries, and what follows pooling (RMSNorm over d, then
rotary embedding of the last 64 channels at the entry's anchor; see :mod:`phaseguard.kernels.finish`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.kernels import chunk_gate
from phaseguard.kernels.check import as_floats, check_at_least, check_shape
from phaseguard.kernels.entries import Entries, Floats

STRIDE = 4


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    bias: ArrayLike | None = None,
    stride: int = STRIDE,
    out: Floats | None = None,
) -> Entries:
    """Pool 8 slots into one entry every 4 tokens.

    Entry w pools the first halves of tokens ``4(w-1)..4(w-1)+3``, then the second halves of tokens
    ``4w..4w+3``, with a softmax over the slots for each channel. So token t reaches entries ``t//4`` and
    ``t//4 + 1``, and no other. The first entry has no predecessor: those slots weigh exactly 0.

    Args:
        kv: ``[..., T, 2d]``; ``[..., :d]`` for the next chunk's entry, ``[..., d:]`` for the token's own.
        scores: ``[..., T, 2d]`` likewise.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of the stride on; default from 0.
        bias: ``[4, 2d]``, added by absolute position mod 4 (``position_bias`` in transformers, ``ape`` in
            DeepSeek's code).
        stride: 4 in every release; another stride m pools 2m slots.
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        Entries with values ``[..., T // 4, d]``; entry w is visible to the query at t iff ``w < (t+1)//4``.

    Raises:
        KernelError: for shapes that do not fit, NaN, a stride below 2, positions inside a chunk.

    >>> kv = np.concatenate([np.full((8, 1), 9.0), np.arange(8.0)[:, None]], axis=1)
    >>> compress(kv, np.zeros((8, 2))).values.ravel().tolist()
    [1.5, 7.25]
    """
    stride = check_at_least("stride", stride, 2)
    slots = None if bias is None else slot_bias(as_floats("bias", bias, "[4, 2d]"), stride, np.shape(kv)[-1])
    return chunk_gate.compress(
        kv, scores, positions, stride=stride, window=2 * stride, split=True, bias=slots, out=out
    )


def slot_bias(bias: Floats, stride: int, channels: int) -> Floats:
    """The bias by position ``[stride, 2d]`` as a bias by slot ``[2 * stride, d]``.

    >>> slot_bias(np.array([[1.0, 3.0], [2.0, 4.0]]), 2, 2).ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    check_shape("bias", bias.shape, (stride, channels))
    half = bias.shape[1] // 2
    return np.concatenate([bias[:, :half], bias[:, half:]])
