"""What the last queries of a prompt attend to: the evidence of SnapKV, ChunkKV and MInference."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_finite
from phaseguard.kernels.entries import Bools, Floats
from phaseguard.kernels.pool import compute_dtype


def window_attention(queries: ArrayLike, keys: ArrayLike, scale: float | None = None) -> Floats:
    """Causal softmax of the last O queries over all T keys.

    Args:
        queries: ``[..., O, d]``, the queries of the last O tokens, after rotary embedding.
        keys: ``[..., T, d]``, T >= O.
        scale: factor on the products; ``d ** -0.5`` by default.

    Returns:
        ``[..., O, T]`` weights in float32, or float64 if an input has it.

    Raises:
        KernelError: for shapes that do not fit, or NaN.

    >>> window_attention(np.zeros((2, 1)), np.zeros((4, 1))).round(2).tolist()
    [[0.33, 0.33, 0.33, 0.0], [0.25, 0.25, 0.25, 0.25]]
    """
    q, k = as_floats("queries", queries, "[..., O, d]"), as_floats("keys", keys, "[..., T, d]")
    if q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1] or q.shape[-2] > k.shape[-2]:
        raise KernelError(
            f"queries have shape {q.shape} and keys {k.shape}: give [..., O, d] and [..., T, d] with T >= O."
        )
    check_finite("queries", q)
    check_finite("keys", k)
    dtype = compute_dtype(q, k)
    seen, tokens = q.shape[-2], k.shape[-2]
    factor = dtype.type(max(1, q.shape[-1]) ** -0.5 if scale is None else scale)
    logits = (q.astype(dtype) * factor) @ np.swapaxes(k.astype(dtype), -1, -2)
    future = np.arange(tokens) > np.arange(tokens - seen, tokens)[:, None]
    logits[..., future] = -np.inf
    weights: Floats = (
        np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)) if logits.size else logits
    )
    return weights / weights.sum(axis=-1, keepdims=True) if logits.size else weights


def check_attention(scores: ArrayLike | None, kv: Floats) -> Floats:
    """The observed weights ``[..., O, T]``, or why they cannot be used."""
    if scores is None:
        raise KernelError("scores are missing: give the weights that window_attention returns, [..., O, T].")
    array = as_floats("scores", scores, "[..., O, T], the weights that window_attention returns")
    if array.shape[:-2] != kv.shape[:-2] or array.shape[-1] != kv.shape[-2] or array.shape[-2] > kv.shape[-2]:
        raise KernelError(
            f"scores have shape {array.shape} and kv {kv.shape}: give [..., O, T] for kv [..., T, d], O <= T."
        )
    check_finite("scores", array)
    if kv.shape[-2] and not array.shape[-2]:
        raise KernelError("scores hold no query: give the attention of at least one.")
    return array


def top_columns(weights: Floats, count: int) -> Bools:
    """The ``count`` largest of ``[..., N]`` as a mask; ties go to the earlier."""
    order = np.argsort(-weights, axis=-1, kind="stable")[..., : max(0, count)]
    mask = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(mask, order, values=True, axis=-1)
    return mask
