"""SnapKV: keep the tokens that the last window of the prompt attends to, one by one.

Source: arXiv:2404.14469. It has no grid: what is kept depends on the question at the prompt's end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_at_least, check_finite, start_of
from phaseguard.kernels.entries import Entries, kept_entries
from phaseguard.kernels.observe import check_attention, top_columns


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    budget: int = 128,
    kernel: int = 5,
) -> Entries:
    """Keep the observation window, and the best tokens before it, up to ``budget`` tokens.

    A token's score is the attention that the window pays to it, summed over the window's queries, then
    max-pooled over ``kernel`` neighbours so that a hit keeps its surroundings. Ties go to earlier tokens.

    Args:
        kv: ``[..., T, d]``; each row of the batch (or head) keeps tokens of its own.
        scores: ``[..., O, T]``, what :func:`~phaseguard.kernels.observe.window_attention` returns.
        positions: ``[T]`` absolute positions, consecutive; default from 0.
        budget: tokens kept in all, the window included.
        kernel: width of the max-pooling, odd.

    Returns:
        Entries with values ``[..., min(T, budget), d]``, tokens in order, for the queries behind the prompt:
        the prompt itself was read in full.

    Raises:
        KernelError: for shapes that do not fit, NaN, a budget smaller than the window, an even kernel.

    >>> scores = np.array([[0.0, 0.0, 0.9, 0.0, 0.0, 0.1]])
    >>> compress(np.ones((6, 1)), scores, budget=4, kernel=3).last.tolist()
    [1, 2, 3, 5]
    """
    values = as_floats("kv", kv, "[..., T, d]")
    check_finite("kv", values)
    weights = check_attention(scores, values)
    start = start_of(positions, values.shape[-2])
    if check_at_least("kernel", kernel, 1) % 2 == 0:
        raise KernelError(f"kernel is {kernel}: give an odd width, so that it has a middle.")
    tokens, window = values.shape[-2], weights.shape[-2]
    keep = np.ones((*values.shape[:-2], tokens), dtype=bool)
    if tokens > check_at_least("budget", budget, 1):
        if budget < window:
            raise KernelError(f"budget {budget} is below the observation window of {window}: give more.")
        hits = weights[..., : tokens - window].sum(axis=-2, dtype=np.float64)
        padding = [(0, 0)] * (hits.ndim - 1) + [(kernel // 2, kernel // 2)]
        padded = np.pad(hits, padding, constant_values=-np.inf)
        pooled = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=-1).max(axis=-1)
        keep[..., : tokens - window] = top_columns(pooled, budget - window)
    return kept_entries(values, keep, start)
