"""Content-defined chunks: a boundary stands where neighbouring keys stop being alike.

Source: H-Net's routing, arXiv:2507.07955 (eqs. 3-4): ``p_t = (1 - cos(q_t, k_{t-1})) / 2``, ``p_0 = 1``, a
chunk starts where ``p_t >= 0.5``. It has no grid: boundaries move with the content.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_finite, start_of
from phaseguard.kernels.entries import NEVER, Entries, Floats
from phaseguard.kernels.pool import compute_dtype


def boundary_probability(keys: ArrayLike, queries: ArrayLike | None = None) -> NDArray[np.float64]:
    """How probable it is that a chunk starts at each token: ``[..., T]`` in float64.

    Args:
        keys: ``[..., T, e]``; token t - 1's is compared with token t's query.
        queries: the same shape; the keys themselves by default (H-Net starts both projections as identity).

    >>> boundary_probability(np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])).tolist()
    [1.0, 0.0, 1.0]
    """
    k = as_floats("keys", keys, "[..., T, e]")
    q = k if queries is None else as_floats("queries", queries, "[..., T, e]")
    if q.shape != k.shape:
        raise KernelError(f"queries have shape {q.shape} and keys {k.shape}: give the same shape.")
    check_finite("scores", k)
    check_finite("queries", q)
    left, right = _unit(k[..., :-1, :]), _unit(q[..., 1:, :])
    chance = np.ones(k.shape[:-1])
    chance[..., 1:] = np.clip((1 - (left * right).sum(axis=-1)) / 2, 0, 1)
    return chance


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    threshold: float = 0.5,
    pool: Literal["mean", "first"] = "mean",
) -> Entries:
    """One entry a chunk of the content.

    Args:
        kv: ``[..., T, d]``.
        scores: ``[..., T, e]``, the keys whose likeness is judged.
        positions: ``[T]`` absolute positions, consecutive; default from 0.
        threshold: a chunk starts where the probability reaches it, in (0, 1].
        pool: "first" keeps a chunk's first token, as H-Net's downsampling does: its entry is visible from
            that token on. "mean" averages the chunk, as a cache would: the entry is visible from the token
            that opens the next chunk on, and the open chunk at the end emits nothing.

    Returns:
        Entries with values ``[..., W, d]``, W chunks of the row that has most; the others are filled up
        (``ready`` is NEVER, values 0).

    Raises:
        KernelError: for shapes that do not fit, NaN, a threshold or pool that does not exist.

    >>> keys = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1], [1.0, 0.0]])
    >>> entries = compress(np.arange(5.0)[:, None], keys)
    >>> entries.values.ravel().tolist(), entries.first.tolist(), entries.ready.tolist()
    ([0.5, 2.5], [0, 2], [2, 4])
    """
    values = as_floats("kv", kv, "[..., T, d]")
    check_finite("kv", values)
    if scores is None:
        raise KernelError("scores are missing: give the keys whose likeness is judged, [..., T, e].")
    if pool not in {"mean", "first"}:
        raise KernelError(f"pool is {pool!r}: give 'mean' or 'first'.")
    if not 0 < threshold <= 1:
        raise KernelError(f"threshold is {threshold}: give a probability above 0 and up to 1.")
    starts = boundary_probability(scores) >= threshold
    if starts.shape != values.shape[:-1]:
        raise KernelError(f"scores have shape {np.shape(scores)}: give {values.shape[:-1]} and a last axis.")
    start = start_of(positions, values.shape[-2])
    wide = values.reshape(starts.size // max(1, starts.shape[-1]), *values.shape[-2:])
    rows = [_chunks(row, mask, pool) for row, mask in zip(wide, starts.reshape(wide.shape[:2]), strict=True)]
    return _stack(rows, values, start)


def _unit(array: Floats) -> NDArray[np.float64]:
    wide = array.astype(np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=-1, keepdims=True), 1e-12))


def _chunks(row: Floats, starts: NDArray[np.bool_], pool: str) -> tuple[Floats, NDArray[np.int64]]:
    """Values of one row's chunks, and ``[3, W]``: first, last and ready of each, from 0 on."""
    first = np.flatnonzero(starts)
    if pool == "first":
        return row[first], np.stack([first, first, first])
    first, end = first[:-1], first[1:]
    if not first.size:
        return row[:0], np.zeros((3, 0), np.int64)
    wide = row[: end[-1]].astype(compute_dtype(row))
    sums = np.add.reduceat(wide, first, axis=0)
    return (sums / (end - first)[:, None].astype(wide.dtype)).astype(row.dtype), np.stack(
        [first, end - 1, end]
    )


def _stack(rows: list[tuple[Floats, NDArray[np.int64]]], values: Floats, start: int) -> Entries:
    lead, most = values.shape[:-2], max((len(row) for row, _ in rows), default=0)
    out = np.zeros((len(rows), most, values.shape[-1]), values.dtype)
    at = np.full((3, len(rows), most), NEVER, np.int64)
    for number, (row, places) in enumerate(rows):
        out[number, : len(row)] = row
        at[:, number, : len(row)] = start + places
    first, last, ready = at.reshape(3, *lead, most)
    return Entries(out.reshape(*lead, most, values.shape[-1]), first, last, first, ready, start=start)
