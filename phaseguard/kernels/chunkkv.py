"""ChunkKV: keep or drop whole chunks, by the attention that the last window of the prompt pays to them.

Source: arXiv:2502.00299 (chunks of 10 tokens; 20 in NVIDIA's kvpress). Its grid is the chunk length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_at_least, check_finite, start_of
from phaseguard.kernels.entries import Bools, Entries, Floats, kept_entries
from phaseguard.kernels.observe import check_attention, top_columns


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    chunk: int = 10,
    budget: int = 128,
) -> Entries:
    """Keep the observation window, and the best whole chunks before it, at most ``budget`` tokens.

    A chunk's score is the attention that the window's queries pay to its tokens, summed (algorithm 1 of the
    paper). The chunks are cut from position 0 on; the last one before the window may be shorter, and its sum
    is of fewer tokens. NVIDIA's kvpress ranks by the mean instead, which differs for that chunk alone, cuts
    the window into chunks too, and smooths the attention as SnapKV does. Ties go to earlier chunks.

    Args:
        kv: ``[..., T, d]``; each row of the batch (or head) keeps chunks of its own.
        scores: ``[..., O, T]``, what :func:`~phaseguard.kernels.observe.window_attention` returns.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of ``chunk`` on; default from 0.
        chunk: tokens of a chunk, at least 2.
        budget: tokens kept at most, the window included: ``(budget - O) // chunk`` chunks.

    Returns:
        Entries with values ``[..., W, d]``, the kept tokens in order, for the queries behind the prompt: the
        prompt itself was read in full. Rows that keep the shorter chunk are filled up (``ready`` is NEVER).

    Raises:
        KernelError: for shapes that do not fit, NaN, a chunk below 2, a budget smaller than the window.

    >>> scores = np.array([[0.1, 0.0, 0.0, 0.5, 0.2, 0.0, 0.2]])
    >>> compress(np.ones((7, 1)), scores, chunk=2, budget=3).last.tolist()
    [2, 3, 6]
    """
    chunk = check_at_least("chunk", chunk, 2)
    values = as_floats("kv", kv, "[..., T, d]")
    check_finite("kv", values)
    weights = check_attention(scores, values)
    start = start_of(positions, values.shape[-2], chunk)
    if values.shape[-2] <= check_at_least("budget", budget, 1):
        keep = np.ones(values.shape[:-1], dtype=bool)
    else:
        keep = _best_chunks(weights, chunk, budget)
    return kept_entries(values, keep, start)


def _best_chunks(weights: Floats, chunk: int, budget: int) -> Bools:
    window, tokens = weights.shape[-2:]
    if budget < window:
        raise KernelError(f"budget {budget} is below the observation window of {window}: give more.")
    prefix = tokens - window
    hits = weights[..., :prefix].sum(axis=-2, dtype=np.float64)
    sums = np.add.reduceat(hits, np.arange(0, prefix, chunk), axis=-1) if prefix else hits
    best = top_columns(sums, (budget - window) // chunk)
    kept = np.repeat(best, chunk, axis=-1)[..., :prefix]
    return np.concatenate([kept, np.ones((*kept.shape[:-1], window), dtype=bool)], axis=-1)
