"""Pooled schemes over a stream: tokens come in any cuts, entries leave as soon as their chunk is complete."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels import csa as csa_scheme
from phaseguard.kernels import hca as hca_scheme
from phaseguard.kernels.check import as_floats
from phaseguard.kernels.entries import Entries, Floats, chunk_entries
from phaseguard.kernels.grid import Grid
from phaseguard.kernels.pool import pool


class PoolStream:
    """Fed with tokens, gives the entries that they complete: bit for bit those of one call on all tokens.

    It keeps the tokens of the incomplete chunk, and of the chunks that the next entry looks back to.
    A call that is refused changes nothing.

    >>> stream = PoolStream(Grid(2, 2), gated=False)
    >>> [stream.feed(np.array([[x]])).values.ravel().tolist() for x in (1.0, 3.0, 5.0, 7.0)]
    [[], [2.0], [], [6.0]]
    """

    def __init__(self, grid: Grid, bias: ArrayLike | None = None, *, gated: bool = True) -> None:
        """Start at position 0; ``bias`` by slot as in ``chunk_gate``; without gates the mean is taken."""
        self._grid = grid
        self._bias = None if bias is None else as_floats("bias", bias, "[window, d] or [window, 1]")
        self._gated = gated
        self._kept: tuple[Floats, Floats] | None = None
        self._done = 0

    @property
    def tokens(self) -> int:
        """Tokens fed so far."""
        behind = min(self._done, self._grid.reach - 1)
        kept = 0 if self._kept is None else self._kept[0].shape[-2]
        return (self._done - behind) * self._grid.stride + kept

    def feed(self, kv: ArrayLike, scores: ArrayLike | None = None) -> Entries:
        """Take the next tokens ``[..., T, ...]``, T >= 0, and return the entries that are complete now.

        Raises:
            KernelError: for shapes or dtypes that differ from those fed before, NaN, missing scores.
        """
        values = as_floats("kv", kv, "[..., T, d]")
        gates = self._gates(values, scores)
        if self._kept is not None:
            values, gates = (
                _joined(name, old, new)
                for name, old, new in zip(("kv", "scores"), self._kept, (values, gates), strict=True)
            )
        behind = min(self._done, self._grid.reach - 1)
        pooled = pool(values, gates, self._bias, self._grid, skip=behind)
        entries = chunk_entries(pooled, 0, self._grid.stride, self._grid.window, self._done)
        done = self._done + pooled.shape[-2]
        drop = (done - min(done, self._grid.reach - 1) - self._done + behind) * self._grid.stride
        self._kept = values[..., drop:, :].copy(), gates[..., drop:, :].copy()
        self._done = done
        return entries

    def _gates(self, values: Floats, scores: ArrayLike | None) -> Floats:
        if not self._gated:
            return np.zeros((*values.shape[:-1], self._grid.blocks), values.dtype)
        if scores is None:
            raise KernelError("scores are missing: this stream is gated, give them with every call.")
        return as_floats("scores", scores, "[..., T, d]")


def _joined(name: str, old: Floats, new: Floats) -> Floats:
    if old.dtype != new.dtype or old.shape[:-2] != new.shape[:-2] or old.shape[-1] != new.shape[-1]:
        raise KernelError(
            f"{name} has shape {new.shape} and dtype {new.dtype}: the tokens before had "
            f"{(*old.shape[:-2], 'T', old.shape[-1])} and {old.dtype}; give the same, T may differ."
        )
    return np.concatenate([old, new], axis=-2)


def csa(bias: ArrayLike | None = None, *, stride: int = csa_scheme.STRIDE) -> PoolStream:
    """Stream of :mod:`phaseguard.kernels.csa`; bias ``[stride, 2d]``.

    >>> csa().feed(np.ones((9, 4)), np.zeros((9, 4))).last.tolist()
    [3, 7]
    """
    grid = Grid(stride, 2 * stride, split=True)
    if bias is None:
        return PoolStream(grid)
    rows = as_floats("bias", bias, "[stride, 2d]")
    return PoolStream(grid, csa_scheme.slot_bias(rows, stride, rows.shape[-1]))


def hca(bias: ArrayLike | None = None, *, stride: int = hca_scheme.STRIDE) -> PoolStream:
    """Stream of :mod:`phaseguard.kernels.hca`; bias ``[stride, d]``.

    >>> hca().feed(np.ones((300, 4)), np.zeros((300, 4))).last.tolist()
    [127, 255]
    """
    return PoolStream(Grid(stride, stride), bias)


def pair() -> PoolStream:
    """Stream of :mod:`phaseguard.kernels.pair`.

    >>> pair().feed(np.ones((5, 4)), np.zeros((5, 4))).last.tolist()
    [1, 3]
    """
    return PoolStream(Grid(2, 2))


def chunk_gate(
    stride: int = 4, window: int | None = None, *, split: bool = False, bias: ArrayLike | None = None
) -> PoolStream:
    """Stream of :mod:`phaseguard.kernels.chunk_gate`.

    >>> chunk_gate(3).feed(np.ones((7, 4)), np.zeros((7, 1))).last.tolist()
    [2, 5]
    """
    return PoolStream(Grid(stride, stride if window is None else window, split), bias)


def mean(stride: int = 4, window: int | None = None, *, split: bool = False) -> PoolStream:
    """Stream of :mod:`phaseguard.kernels.mean`; fed without scores.

    >>> mean(2).feed(np.arange(5.0)[:, None]).values.ravel().tolist()
    [0.5, 2.5]
    """
    return PoolStream(Grid(stride, stride if window is None else window, split), gated=False)
