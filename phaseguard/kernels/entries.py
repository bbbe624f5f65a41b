"""What a compression scheme leaves of a context: entries, the tokens they stand for, and who may see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

NEVER = int(np.iinfo(np.int64).max)
"""Position of an entry that only fills up a ragged batch: no query sees it."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """W compressed entries of a context of T tokens.

    Attributes:
        values: ``[..., W, d]``, in the dtype of the input.
        first: absolute position of the first token that an entry was made of, ``[W]`` or ``[..., W]``.
        last: absolute position of the last one, same shape.
        anchor: position that a rotary embedding of the entry uses (first token of its own chunk), same shape.
        ready: the first query position that sees the entry, same shape.
        pattern: for schemes that thin out the prefill only, which of the T queries may see which entry,
            ``[..., T, W]``; queries behind the context see everything. None where ``ready`` says it all.
        start: absolute position of the context's first token.

    >>> values = np.zeros((2, 3))
    >>> at = np.array([3, 7])
    >>> entries = Entries(values, first=at - 3, last=at, anchor=at - 3, ready=at)
    >>> entries.visible([2, 3, 7]).astype(int).tolist()
    [[0, 0], [1, 0], [1, 1]]
    """

    values: Floats
    first: Ints
    last: Ints
    anchor: Ints
    ready: Ints
    pattern: Bools | None = None
    start: int = 0

    @property
    def real(self) -> Bools:
        """Which entries stand for tokens, and do not only fill up a ragged batch; shape of ``ready``."""
        return np.asarray(self.ready != NEVER)

    def visible(self, query_positions: ArrayLike) -> Bools:
        """Whether the queries at these absolute positions ``[Q]`` see the entries: ``[..., Q, W]``."""
        queries = np.asarray(query_positions, dtype=np.int64).reshape(-1)
        seen = self.ready[..., None, :] <= queries[:, None]
        if self.pattern is None:
            return np.asarray(seen)
        rows = queries - self.start
        inside = (rows >= 0) & (rows < self.pattern.shape[-2])
        allowed = self.pattern[..., np.where(inside, rows, 0), :] if self.pattern.shape[-2] else True
        return np.asarray(seen & (allowed | ~inside[:, None]))


def chunk_entries(values: Floats, start: int, stride: int, window: int, before: int = 0) -> Entries:
    """Entries of the grid that closes one chunk every ``stride`` tokens and looks back ``window`` tokens.

    ``before`` entries of the context that starts at ``start`` came earlier.

    Entry w is visible to the query at t if and only if its chunk is complete: ``w < (t + 1) // stride``.
    """
    anchor = start + stride * np.arange(before, before + values.shape[-2], dtype=np.int64)
    last = anchor + stride - 1
    return Entries(values, np.maximum(start, last - window + 1), last, anchor, last, start=start)


def token_entries(values: Floats, start: int, pattern: Bools | None = None) -> Entries:
    """Every token an entry of its own, from position ``start`` on."""
    at = start + np.arange(values.shape[-2], dtype=np.int64)
    return Entries(values, at, at, at, at, pattern, start)


def kept_entries(values: Floats, keep: Bools, start: int) -> Entries:
    """The tokens that ``keep`` ``[..., T]`` names, in order; shorter rows are filled up with NEVER."""
    width = int(keep.sum(axis=-1).max(initial=0))
    order = np.argsort(~keep, axis=-1, kind="stable")[..., :width]
    real = np.take_along_axis(keep, order, axis=-1)
    taken = np.take_along_axis(values, order[..., None], axis=-2)
    at = np.where(real, start + order, NEVER)
    return Entries(np.where(real[..., None], taken, np.zeros(1, values.dtype)), at, at, at, at, start=start)
