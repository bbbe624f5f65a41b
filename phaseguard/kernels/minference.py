"""MInference's three patterns of sparse prefill attention, as masks.

Source: arXiv:2407.02490 and microsoft/MInference. A-shape: first tokens and a local window. Vertical-slash:
whole columns and whole diagonals, chosen by the attention of the last 64 queries. Block-sparse: blocks of 64
chosen by the products of mean queries and mean keys; its grid is the block. Only the prompt is read sparsely:
queries behind it see everything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_at_least, check_finite, check_shape, start_of
from phaseguard.kernels.entries import Entries, Floats, token_entries
from phaseguard.kernels.observe import check_attention, top_columns


def a_shape(
    kv: ArrayLike,
    scores: ArrayLike | None = None,  # noqa: ARG001 - every scheme takes it
    positions: ArrayLike | None = None,
    *,
    first: int = 100,
    local: int = 800,
) -> Entries:
    """Query t sees the ``first`` tokens and the ``local`` tokens up to itself.

    Args:
        kv: ``[..., T, d]``.
        scores: not used; None.
        positions: ``[T]`` absolute positions, consecutive; default from 0.
        first: tokens at the start of the context that all see.
        local: tokens up to and with the query's own, at least 1.

    Returns:
        Entries with values ``[..., T, d]`` and a pattern ``[T, T]``.

    Raises:
        KernelError: for shapes that do not fit, NaN, settings below their least.

    >>> a_shape(np.ones((5, 1)), first=1, local=2).visible([4]).astype(int).tolist()
    [[1, 0, 0, 1, 1]]
    """
    values, start = _tokens(kv, positions)
    back = _distance(values.shape[-2])
    near = back < check_at_least("local", local, 1)
    sink = np.arange(values.shape[-2]) < check_at_least("first", first, 0)
    return token_entries(values, start, (near | sink) & (back >= 0))


def vertical_slash(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    vertical: int = 1000,
    slash: int = 6096,
    first: int = 30,
    near: int = 30,
) -> Entries:
    """Query t sees the ``vertical`` best columns and the ``slash`` best diagonals.

    A column's score is the attention that the last queries pay to it, a diagonal's (all pairs of a query and
    a token ``o`` before it) the attention along it. Ties go to earlier columns and shorter distances.

    Args:
        kv: ``[..., T, d]``.
        scores: ``[..., O, T]``, what :func:`~phaseguard.kernels.observe.window_attention` returns for the
            last O queries (64 in the source).
        positions: ``[T]`` absolute positions, consecutive; default from 0.
        vertical: columns kept, at least ``first`` (raised to it).
        slash: diagonals kept, at least ``near`` (raised to it).
        first: leading columns that are always kept.
        near: nearest diagonals that are always kept, at least 1: the token itself.

    Returns:
        Entries with values ``[..., T, d]`` and a pattern ``[..., T, T]``.

    Raises:
        KernelError: for shapes that do not fit, NaN, settings below their least.

    >>> scores = np.array([[0.0, 0.7, 0.0, 0.0, 0.3]])
    >>> seen = vertical_slash(np.ones((5, 1)), scores, vertical=1, slash=1, first=0, near=1)
    >>> seen.visible([3, 4]).astype(int).tolist()
    [[0, 1, 0, 1, 0], [0, 1, 0, 0, 1]]
    """
    values, start = _tokens(kv, positions)
    weights = check_attention(scores, values)
    least = check_at_least("first", first, 0), check_at_least("near", near, 1)
    columns, diagonals = _sums(weights)
    columns[..., : least[0]] = np.inf
    diagonals[..., : least[1]] = np.inf
    kept = top_columns(columns, max(check_at_least("vertical", vertical, 0), least[0]))
    lines = top_columns(diagonals, max(check_at_least("slash", slash, 0), least[1]))
    back = _distance(values.shape[-2])
    pattern = (kept[..., None, :] | lines[..., np.maximum(back, 0)]) & (back >= 0)
    return token_entries(values, start, pattern)


def block_sparse(
    kv: ArrayLike,
    scores: ArrayLike | None,
    positions: ArrayLike | None = None,
    *,
    keys: ArrayLike | None = None,
    block: int = 64,
    blocks: int = 100,
) -> Entries:
    """Each block of queries sees the ``blocks`` best blocks of tokens, among those not after it.

    Args:
        kv: ``[..., T, d]``.
        scores: ``[..., T, e]``, the queries, averaged by block.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of ``block`` on; default from 0.
        keys: ``[..., T, e]``, averaged by block; kv by default (one latent for both).
        block: tokens of a block, at least 2; a shorter one at the end is filled up with zeros for its mean.
        blocks: blocks that a block of queries sees, at least 1.

    Returns:
        Entries with values ``[..., T, d]`` and a pattern ``[..., T, T]``. Ties go to earlier blocks; the
        query's own block is kept only if it is among the best. So does microsoft/MInference
        (``_build_block_index`` in ops/block_sparse_flash_attention.py), which also pads with zeros.

    Raises:
        KernelError: for shapes that do not fit, NaN, a block below 2, settings below their least.

    >>> rows = np.array([[1.0], [1.0], [-1.0], [-1.0], [2.0], [2.0]])
    >>> block_sparse(rows, rows, block=2, blocks=1).visible([1, 3, 5]).astype(int).tolist()
    [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    """
    block = check_at_least("block", block, 2)
    values, start = _tokens(kv, positions, block)
    if scores is None:
        raise KernelError("scores are missing: give the queries, [..., T, e].")
    queries = as_floats("scores", scores, "[..., T, e], the queries")
    targets = values if keys is None else as_floats("keys", keys, "[..., T, e]")
    check_shape("scores", queries.shape, (*values.shape[:-1], targets.shape[-1]))
    check_shape("keys", targets.shape, queries.shape)
    check_finite("scores", queries)
    check_finite("keys", targets)
    products = _means(queries, block) @ np.swapaxes(_means(targets, block), -1, -2)
    later = _distance(products.shape[-1]) < 0
    products[..., later] = -np.inf
    best = top_columns(products, check_at_least("blocks", blocks, 1))
    at = np.arange(values.shape[-2]) // block
    return token_entries(values, start, best[..., at[:, None], at] & (_distance(len(at)) >= 0))


def _tokens(kv: ArrayLike, positions: ArrayLike | None, grid: int = 1) -> tuple[Floats, int]:
    values = as_floats("kv", kv, "[..., T, d]")
    check_finite("kv", values)
    return values, start_of(positions, values.shape[-2], grid)


def _distance(tokens: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """How far a token lies before a query, ``[T, T]``; negative behind it."""
    at = np.arange(tokens)
    return at[:, None] - at


def _sums(weights: Floats) -> tuple[Floats, Floats]:
    """Attention by column ``[..., T]`` and by distance ``[..., T]``."""
    seen, tokens = weights.shape[-2:]
    columns = weights.sum(axis=-2, dtype=np.float64)
    diagonals = np.zeros_like(columns)
    for row in range(seen):
        reach = tokens - seen + row + 1
        diagonals[..., :reach] += weights[..., row, :reach][..., ::-1]
    return columns, diagonals


def _means(array: Floats, block: int) -> Floats:
    starts = np.arange(0, array.shape[-2], block)
    if not starts.size:
        return np.zeros((*array.shape[:-2], 0, array.shape[-1]))
    return np.asarray(np.add.reduceat(array.astype(np.float64), starts, axis=-2) / block)
