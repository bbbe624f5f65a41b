"""Schemes that are put on a trained full-attention model at inference: controls with another grid, or none.

The second block of the model is the one that retrieves, so its cache is the one that is thinned. Block one, a
raw window of a few tokens, stays as it is. What the asked positions read:

- ``chunkkv``, ``snapkv``: the tokens kept of the prompt, and all tokens behind it. Tokens are scored by the
  attention of the prompt's last :data:`OBSERVED` tokens, averaged over heads, as in both papers. The prompt
  ends either with the question (as in the papers' prompts: the window has seen it) or with the context
  (``blind``, as NVIDIA's kvpress evaluates: the question comes to a cache that was thinned without it).
- ``block-sparse``, ``a-shape``, ``vertical-slash``: MInference's patterns, head by head, over the prompt with
  its questions. Blocks are scored by the products of their mean queries and keys; columns and diagonals by
  the attention of the last 64 queries.
- ``dynamic``: means of content-defined chunks in place of tokens, and the raw window; a chunk starts where
  neighbouring keys differ more than usual in these texts. The model was never trained to read means.

A budget is the share of tokens that the scheme is told to keep; what was read is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.kernels import Entries, chunkkv, dynamic, minference, snapkv
from phaseguard.kernels.observe import window_attention
from phaseguard.lab.model import Cache, Floats, Ints, LabModel

OBSERVED = 8  # tokens of the observation window
_LAST = 64  # queries that MInference's vertical-slash looks at
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Prefill:
    """What a control decides upon.

    Attributes:
        queries: ``[B, H, T, c]`` of every token in the second block; ``keys``, ``values``: ``[B, T, c]``.
        positions: ``[B, A]``, the asked positions, ascending.
        question: tokens of the first question.
        raw: tokens of the model's raw window.
        budget: share of tokens to keep, above 0 and up to 1.
    """

    queries: Floats
    keys: Floats
    values: Floats
    positions: Ints
    question: int
    raw: int
    budget: float

    @property
    def distance(self) -> Ints:
        """``[B, A, T]``, how far each token lies before each asked position; negative behind it."""
        return np.asarray(self.positions[..., None] - np.arange(self.keys.shape[1]))

    def tokens(self, visible: Bools) -> Cache:
        """All tokens, of which the asked positions see those marked: ``[B, 1 or H, A, T]``."""
        return Cache(self.keys, self.values, visible & (self.distance >= 0)[:, None])


@dataclass(frozen=True, slots=True)
class Control:
    """One scheme to put on the model.

    Attributes:
        name: its key in :data:`CONTROLS`.
        period: tokens of its grid; None where it has none.
        apply: ``apply(prefill) -> Cache``, what the asked positions read.
    """

    name: str
    period: int | None
    apply: Callable[[Prefill], Cache]


@dataclass(frozen=True, eq=False)
class ControlledModel(LabModel):
    """A full-attention model whose second block reads a cache that a control has thinned.

    Attributes:
        control: the scheme.
        question: tokens of the first question; the context ends in front of it.
        budget: share of tokens to keep.

    Raises:
        InputError: for a model that is not of full attention, or a budget that is no share.

    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import Task, draw
    >>> full = load_model("full-s0")
    >>> model = ControlledModel(full.spec, full.weights, CONTROLS["snapkv"])
    >>> drawn = draw(Task("ask"), 2, np.random.default_rng(0))
    >>> model.predict(drawn.tokens, drawn.positions).shape
    (2, 16)
    """

    control: Control
    question: int = 1
    budget: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.spec.full:
            raise InputError(
                f"Scheme {self.spec.scheme!r} compresses by itself: give a full-attention model."
            )
        if not 0 < self.budget <= 1:
            raise InputError(
                f"budget is {self.budget}: give the share of tokens to keep, above 0 and up to 1."
            )

    def read_share(self, tokens: Ints, positions: Ints) -> float:
        """Share of the tokens up to an asked position that it can read, or of entries for so many tokens."""
        cache = self._cache(self._norm("second.norm", self._first(tokens)), positions)
        seen = cache.visible.sum(-1).mean(1)
        return float((seen / (positions + 1)).mean())

    def _cache(self, hidden: Floats, positions: Ints) -> Cache:
        every = np.broadcast_to(np.arange(hidden.shape[1]), hidden.shape[:2])
        queries = np.swapaxes(self._asking(hidden, every), 1, 2)
        plain = super()._cache(hidden, positions)
        return self.control.apply(
            Prefill(queries, plain.keys, plain.values, positions, self.question, self.spec.raw, self.budget)
        )


def _observed(prefill: Prefill, rows: NDArray[np.intp], end: int) -> Floats:
    """``[R, O, end]``: attention of the last tokens before ``end``, averaged over heads."""
    queries = prefill.queries[rows, :, max(0, end - OBSERVED) : end]
    keys = np.broadcast_to(prefill.keys[rows, None, :end], (*queries.shape[:2], end, queries.shape[-1]))
    return np.asarray(window_attention(queries, keys).mean(1))


def _kept(prefill: Prefill, scheme: str, *, blind: bool, chunk: int = 10) -> Cache:
    ends = prefill.positions + 1
    if blind:
        ends = np.broadcast_to(ends[:, :1] - prefill.question, ends.shape)
    visible = prefill.distance < 0  # filled below; what lies behind a prompt is never taken from it
    for end in np.unique(ends):
        rows = np.flatnonzero((ends == end).any(1))
        budget = max(OBSERVED, round(prefill.budget * int(end)))
        values, scores = prefill.values[rows, :end], _observed(prefill, rows, int(end))
        if scheme == "chunkkv":
            entries = chunkkv.compress(values, scores, chunk=chunk, budget=budget)
        else:
            entries = snapkv.compress(values, scores, budget=budget)
        keep = np.ones((len(rows), prefill.keys.shape[1]), bool)
        keep[:, :end] = (entries.last[..., None] == np.arange(end)).any(1)
        for row, kept in zip(rows, keep, strict=True):
            visible[row, ends[row] == end] = kept
    return prefill.tokens(visible[:, None])


def _block_sparse(prefill: Prefill, block: int) -> Cache:
    blocks = max(1, round(prefill.budget * prefill.keys.shape[1] / block))
    entries = minference.block_sparse(
        _heads(prefill, prefill.values),
        prefill.queries,
        keys=_heads(prefill, prefill.keys),
        block=block,
        blocks=blocks,
    )
    return prefill.tokens(_asked_rows(entries, prefill))


def _a_shape(prefill: Prefill) -> Cache:
    half = max(1, round(prefill.budget * prefill.keys.shape[1] / 2))
    entries = minference.a_shape(_heads(prefill, prefill.values), first=half, local=half)
    return prefill.tokens(_asked_rows(entries, prefill))


def _vertical_slash(prefill: Prefill) -> Cache:
    tokens = prefill.keys.shape[1]
    # columns and diagonals overlap: two shares of 1 - sqrt(1 - budget) together make the budget
    lines = max(1, round((1 - np.sqrt(1 - prefill.budget)) * tokens))
    keys = _heads(prefill, prefill.keys)
    scores = window_attention(prefill.queries[:, :, -_LAST:], keys)
    entries = minference.vertical_slash(
        _heads(prefill, prefill.values), scores, vertical=lines, slash=lines, first=0, near=1
    )
    return prefill.tokens(_asked_rows(entries, prefill))


def _heads(prefill: Prefill, array: Floats) -> Floats:
    """``[B, T, c]`` of all heads, once a head."""
    return np.broadcast_to(array[:, None], (*prefill.queries.shape[:2], *array.shape[1:]))


def _asked_rows(entries: Entries, prefill: Prefill) -> Bools:
    """``[B, H, A, T]``: what the asked positions see of a scheme in which each token is an entry."""
    seen = entries.visible(np.arange(prefill.keys.shape[1]))
    wide = np.broadcast_to(seen, (*prefill.queries.shape[:2], *seen.shape[-2:]))
    return np.take_along_axis(wide, prefill.positions[:, None, :, None], axis=2)


def _dynamic(prefill: Prefill) -> Cache:
    chances = dynamic.boundary_probability(prefill.keys)[:, 1:]
    threshold = float(np.quantile(chances, 1 - prefill.budget)) or 1e-9
    both = np.concatenate([prefill.keys, prefill.values], -1)
    entries = dynamic.compress(both, prefill.keys, threshold=threshold)
    keys, values = np.split(entries.values, 2, axis=-1)
    closed = entries.ready[:, None] <= prefill.positions[..., None]
    near = (prefill.distance >= 0) & (prefill.distance < prefill.raw)
    return Cache(
        np.concatenate([prefill.keys, keys], 1),
        np.concatenate([prefill.values, values], 1),
        np.concatenate([near, closed], -1)[:, None],
    )


CONTROLS: dict[str, Control] = {
    control.name: control
    for control in (
        Control("chunkkv", 10, lambda prefill: _kept(prefill, "chunkkv", blind=False)),
        Control("chunkkv-blind", 10, lambda prefill: _kept(prefill, "chunkkv", blind=True)),
        Control("snapkv", None, lambda prefill: _kept(prefill, "snapkv", blind=False)),
        Control("snapkv-blind", None, lambda prefill: _kept(prefill, "snapkv", blind=True)),
        Control("block-sparse", 16, lambda prefill: _block_sparse(prefill, 16)),
        Control("a-shape", None, _a_shape),
        Control("vertical-slash", None, _vertical_slash),
        Control("dynamic", None, _dynamic),
    )
}
"""Every control by name."""
