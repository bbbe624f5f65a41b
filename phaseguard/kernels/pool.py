"""The engine under every pooled scheme: a softmax over slots, in tiles that stay in the cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phaseguard.errors import KernelError
from phaseguard.kernels.check import check_finite, check_shape
from phaseguard.kernels.entries import Array, Floats
from phaseguard.kernels.grid import Grid, Segment

TILE = 1 << 17
"""Weights in one tile: 512 KiB of float32."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """Rows ``low:high`` of the batch, entries ``begin:end`` counted from the first entry of the call."""

    low: int
    high: int
    begin: int
    end: int


def compute_dtype(*arrays: Array) -> np.dtype[np.floating]:
    """float64 if any array has it, else float32."""
    wide = any(array.dtype.itemsize > 4 for array in arrays)
    return np.dtype(np.float64 if wide else np.float32)


def pool(
    kv: Floats,
    scores: Floats,
    bias: Floats | None,
    grid: Grid,
    *,
    skip: int = 0,
    out: Floats | None = None,
) -> Floats:
    """Pool every complete chunk behind the first ``skip`` chunks.

    Args:
        kv: ``[..., T, d * blocks]``, from the first token of a chunk on. Tokens in front of it do not exist.
        scores: the same shape, or ``[..., T, blocks]``: one gate for all channels of a block.
        bias: ``[window, d]`` or ``[window, 1]``, added to the scores by slot.
        grid: stride, window and blocks.
        skip: chunks in front that only serve as predecessors (streaming).
        out: array to write to, ``[..., W, d]`` in the dtype of kv.

    Returns:
        ``[..., W, d]`` in the dtype of kv. A channel whose slots all have score -inf is 0.
    """
    width = grid.width(kv.shape, scores.shape)
    count = max(0, kv.shape[-2] // grid.stride - skip)
    shape = (*kv.shape[:-2], count, width)
    if bias is not None:
        grid.check_bias(bias.shape, width)
        check_finite("bias", bias, masked=True)
    if out is None:
        out = np.empty(shape, kv.dtype)
    check_shape("out", out.shape, shape)
    if out.dtype != kv.dtype or not out.flags.c_contiguous:
        raise KernelError(f"out has dtype {out.dtype}: give a contiguous array of dtype {kv.dtype}.")
    _check_unused(kv, scores, grid)
    flat_kv = kv.reshape(-1, *kv.shape[-2:]) if kv.size else kv.reshape(0, *kv.shape[-2:])
    flat_scores = scores.reshape(len(flat_kv), *scores.shape[-2:])
    flat_out = out.reshape(len(flat_kv), count, width)
    if flat_out.size:
        _Pooling(flat_kv, flat_scores, bias, grid, skip, flat_out).run()
    return out


def _check_unused(kv: Floats, scores: Floats, grid: Grid) -> None:
    """Tokens and blocks that reach no entry yet are refused like the others: cuts must not hide a NaN."""
    tail = max(0, kv.shape[-2] - kv.shape[-2] % grid.stride - grid.stride * (grid.blocks - 1))
    if grid.split and grid.window % grid.stride:
        tail = 0  # some blocks of every token are left out
    check_finite("kv", kv[..., tail:, :])
    check_finite("scores", scores[..., tail:, :], masked=True)


class _Pooling:
    """Buffers and views of one call."""

    def __init__(
        self, kv: Floats, scores: Floats, bias: Floats | None, grid: Grid, skip: int, out: Floats
    ) -> None:
        self.kv, self.scores, self.grid, self.skip, self.out = kv, scores, grid, skip, out
        self.dtype = compute_dtype(kv, scores)
        self.bias = None if bias is None else bias.astype(self.dtype)[:, None, None, :]
        self.width = out.shape[-1]
        self.gates = max(scores.shape[-1] // grid.blocks, 1 if bias is None else bias.shape[-1])
        self.per_entry = max(1, TILE // (grid.window * self.width))
        self.entries = min(out.shape[1], self.per_entry)
        self.rows = min(out.shape[0], max(1, self.per_entry // self.entries))
        room = grid.window * self.rows * self.entries
        self.weights = np.empty(room * self.gates, self.dtype)
        self.products = self.weights if self.gates == self.width else np.empty(room * self.width, self.dtype)
        self.segments = tuple(grid.segments())

    def run(self) -> None:
        batch, count = self.out.shape[:2]
        with np.errstate(over="ignore", invalid="ignore"):
            for low in range(0, batch, self.rows):
                for begin in range(0, count, self.entries):
                    tile = _Tile(low, min(batch, low + self.rows), begin, min(count, begin + self.entries))
                    self._tile(tile)

    def _tile(self, tile: _Tile) -> None:
        shape = (self.grid.window, tile.high - tile.low, tile.end - tile.begin)
        size = shape[0] * shape[1] * shape[2]
        weights = self.weights[: size * self.gates].reshape(*shape, self.gates)
        products = self.products[: size * self.width].reshape(*shape, self.width)
        self._load_scores(weights, tile)
        top = np.maximum.reduce(weights, axis=0)
        if not np.isfinite(top).all():
            top[np.isneginf(top)] = 0  # exp(-inf - 0) is 0, exp(-inf + inf) would be NaN
        weights -= top
        np.exp(weights, out=weights)
        total = np.add.reduce(weights, axis=0)
        if not total.all():
            total[total == 0] = 1
        self._multiply(weights, products, tile)
        pooled = np.add.reduce(products, axis=0)
        pooled /= total
        if not np.isfinite(pooled).all():
            self._complain(tile)
        self.out[tile.low : tile.high, tile.begin : tile.end] = pooled

    def _view(self, array: Floats, segment: Segment, tile: _Tile) -> tuple[Floats, int]:
        """Tokens of a segment as ``[slots, rows, entries, channels]``, and how many entries have none."""
        grid, first = self.grid, tile.begin + self.skip - segment.behind
        lost = min(max(0, -first), tile.end - tile.begin)
        channels = array.shape[-1] // grid.blocks
        low, high = (first + lost) * grid.stride, (first + tile.end - tile.begin) * grid.stride
        part = array[tile.low : tile.high, low : max(low, high), segment.block * channels :][..., :channels]
        chunks = part.reshape(part.shape[0], -1 if part.size else 0, grid.stride, channels)
        return np.moveaxis(chunks[:, :, segment.offset :], 2, 0), lost

    def _load_scores(self, weights: Floats, tile: _Tile) -> None:
        for segment in self.segments:
            view, lost = self._view(self.scores, segment, tile)
            slots = weights[segment.low : segment.high]
            slots[:, :, :lost] = -np.inf
            if self.bias is None:
                slots[:, :, lost:] = view
            else:
                np.add(view, self.bias[segment.low : segment.high], out=slots[:, :, lost:])

    def _multiply(self, weights: Floats, products: Floats, tile: _Tile) -> None:
        for segment in self.segments:
            view, lost = self._view(self.kv, segment, tile)
            slots = slice(segment.low, segment.high)
            products[slots, :, :lost] = 0
            np.multiply(weights[slots, :, lost:], view, out=products[slots, :, lost:])

    def _complain(self, tile: _Tile) -> None:
        grid = self.grid
        low = max(0, tile.begin + self.skip - grid.reach + 1) * grid.stride
        tokens = slice(low, (tile.end + self.skip) * grid.stride)
        rows = slice(tile.low, tile.high)
        check_finite(f"kv (from row {tile.low}, token {low} on)", self.kv[rows, tokens])
        check_finite(f"scores (from row {tile.low}, token {low} on)", self.scores[rows, tokens], masked=True)
        raise KernelError("The pooled values overflow: scale kv down or give float64.")
