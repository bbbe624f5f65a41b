"""The on-device model in numpy: inference from trained weights, without torch.

Computes what :class:`phaseguard.lab.network.Network` computes, to float32 rounding. The second block runs
at the asked positions alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.kernels import chunk_gate
from phaseguard.lab.spec import Spec
from phaseguard.lab.tasks import VOCABULARY

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
ROTATED = 16  # channels of a head that RoPE turns; the others carry content alone
THETA = 10_000.0
EPSILON = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """What the second block reads.

    Attributes:
        keys, values: ``[B, N, c]``, of tokens and of entries.
        visible: ``[B, 1 or H, A, N]``, which of them each asked position (and head) sees.
    """

    keys: Floats
    values: Floats
    visible: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LabModel:
    """A trained model.

    Attributes:
        spec: its scheme and sizes.
        weights: arrays by the names of the torch module's parameters, float32.
    """

    spec: Spec
    weights: Mapping[str, Floats]

    def __post_init__(self) -> None:
        wanted = weight_shapes(self.spec)
        missing = sorted(wanted.keys() - self.weights.keys())
        if missing:
            raise InputError(f"Weights of scheme {self.spec.scheme!r} lack {', '.join(missing)}.")
        for name, shape in wanted.items():
            if self.weights[name].shape != shape:
                raise InputError(
                    f"Weight {name} has shape {self.weights[name].shape}, but scheme {self.spec.scheme!r} "
                    f"needs {shape}: these are weights of another model."
                )

    def logits(self, tokens: Ints, positions: Ints) -> Floats:
        """Scores of every word after the tokens at some positions.

        Args:
            tokens: ``[B, T]`` token ids.
            positions: ``[B, A]`` positions in the sequences.

        Returns:
            ``[B, A, V]`` float32.

        Raises:
            InputError: for ids or positions out of range.
        """
        self._check(tokens, positions)
        x = self._first(tokens)
        hidden = self._norm("second.norm", x)
        rows = np.arange(len(tokens))[:, None]
        asked = x[rows, positions] + self._read(hidden, hidden[rows, positions], positions)
        return self._linear("head", self._norm("final", self._mlp("second", asked)))

    def predict(self, tokens: Ints, positions: Ints) -> Ints:
        """The most probable word after each position, ``[B, A]``."""
        return np.asarray(self.logits(tokens, positions).argmax(-1))

    def _first(self, tokens: Ints) -> Floats:
        """What the first block makes of every token, ``[B, T, d]``."""
        x = self.weights["embed.weight"][tokens]
        return self._mlp("first", x + self._window_everywhere(self._norm("first.norm", x)))

    def _check(self, tokens: Ints, positions: Ints) -> None:
        if tokens.ndim != 2 or positions.ndim != 2 or len(tokens) != len(positions):
            raise InputError(
                f"tokens must be [B, T] and positions [B, A], not {tokens.shape} and {positions.shape}."
            )
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < VOCABULARY:
            raise InputError(f"Token ids must be 0 to {VOCABULARY - 1}.")
        if positions.size and not 0 <= positions.min() <= positions.max() < tokens.shape[1]:
            raise InputError(
                f"Positions must be 0 to {tokens.shape[1] - 1}, the sequence's length minus one."
            )

    def _linear(self, name: str, x: Floats) -> Floats:
        return np.asarray(x @ self.weights[f"{name}.weight"].T)

    def _norm(self, name: str, x: Floats) -> Floats:
        scale = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(EPSILON))
        return np.asarray(x * scale * self.weights[f"{name}.scale"])

    def _mlp(self, block: str, x: Floats) -> Floats:
        gate, value = np.split(self._linear(f"{block}.up", self._norm(f"{block}.mlp_norm", x)), 2, -1)
        with np.errstate(over="ignore"):  # exp(-x) of a very negative gate is inf, and the gate 0
            gated = gate / (1 + np.exp(-gate)) * value
        return x + self._linear(f"{block}.down", gated)

    def _queries(self, block: str, x: Floats) -> Floats:
        heads = self._linear(f"{block}.q", x).reshape(*x.shape[:-1], self.spec.heads, self.spec.head_width)
        return self._norm(f"{block}.q_norm", heads)

    def _latent(self, block: str, x: Floats) -> Floats:
        return self._norm(f"{block}.kv_norm", self._linear(f"{block}.kv", x))

    def _window_everywhere(self, hidden: Floats) -> Floats:
        """The first block's attention: one pass over the sequence for each place in the window."""
        raw, length = self.spec.raw, hidden.shape[1]
        at = np.arange(length)
        queries = rotate(self._queries("first", hidden), at[None, :, None])
        latent = self._latent("first", hidden)
        keys = _behind(rotate(latent, at[None]), raw)
        values = _behind(latent, raw)
        scores = np.full((*queries.shape[:-1], raw), -np.inf, np.float32)
        for back in range(min(raw, length)):
            now = slice(raw - 1 - back, raw - 1 - back + length)
            scores[..., back] = np.einsum("bthc,btc->bth", queries, keys[:, now]) * self._scale
            scores[:, :back, :, back] = -np.inf
        weights = self._with_sink("first", scores, heads_axis=2)
        read = np.zeros_like(queries)
        for back in range(min(raw, length)):
            now = slice(raw - 1 - back, raw - 1 - back + length)
            read += weights[..., back, None] * values[:, now, None]
        return self._linear("first.out", read.reshape(*hidden.shape[:2], -1))

    def _read(self, hidden: Floats, asked: Floats, positions: Ints) -> Floats:
        queries, cache = self._asking(asked, positions), self._cache(hidden, positions)
        scores = np.einsum("bahc,bnc->bhan", queries, cache.keys, optimize=True) * self._scale
        scores = np.where(cache.visible, scores, np.float32(-np.inf))
        read = np.einsum("bhan,bnc->bahc", self._with_sink("second", scores), cache.values, optimize=True)
        return self._linear("second.out", read.reshape(*positions.shape, -1))

    def _asking(self, hidden: Floats, positions: Ints) -> Floats:
        """Queries of the second block, ``[B, A, H, c]``, of ``hidden`` ``[B, A, d]`` at these positions."""
        queries = self._queries("second", hidden)
        return rotate(queries, positions[..., None]) if self.spec.rope else queries

    def _cache(self, hidden: Floats, positions: Ints) -> Cache:
        """What the second block reads at these positions: the raw window and entries, or every token."""
        spec, at = self.spec, np.arange(hidden.shape[1])
        values = self._latent("second", hidden)
        keys = rotate(values, at[None]) if spec.rope else values
        distance = positions[..., None] - at
        visible = (distance >= 0) if spec.full else (distance >= 0) & (distance < spec.raw)
        if not spec.full:
            entries = self._entries(hidden)
            keys, values = (np.concatenate([part, entries], 1) for part in (keys, values))
            complete = np.arange(entries.shape[1]) < self._complete(positions)[..., None]
            visible = np.concatenate([visible, complete], -1)
        return Cache(keys, values, visible[:, None])

    def _complete(self, positions: Ints) -> Ints:
        """How many entries a query at each position sees."""
        return (positions + 1) // self.spec.stride

    def _entries(self, hidden: Floats) -> Floats:
        spec = self.spec
        kv = self._linear("pool_kv", hidden)
        pooled = chunk_gate.compress(
            kv,
            self._pool_gates(hidden),
            stride=spec.stride,
            window=spec.window,
            split=spec.split,
            bias=self.weights.get("pool_bias"),
        )
        return self._norm("pool_norm", pooled.values)

    def _pool_gates(self, hidden: Floats) -> Floats:
        """The gates that every token brings to its entries, without the bias of the slots."""
        if self.spec.gate == "uniform":
            return np.zeros((*hidden.shape[:-1], self.spec.blocks), np.float32)
        return self._linear("pool_gate", hidden)

    @property
    def _scale(self) -> np.float32:
        return np.float32(self.spec.head_width**-0.5)

    def _with_sink(self, block: str, scores: Floats, *, heads_axis: int = 1) -> Floats:
        """Softmax over the scores and one sink a head, which takes weight and gives nothing."""
        shape = [1] * scores.ndim
        shape[heads_axis] = -1
        sink = self.weights[f"{block}.sink"].reshape(shape)
        top = np.maximum(scores.max(-1, keepdims=True), sink)
        weights = np.exp(scores - top)
        return np.asarray(weights / (weights.sum(-1, keepdims=True) + np.exp(sink - top)))


def rotate(x: Floats, positions: Ints) -> Floats:
    """Rotary embedding of the first channels of ``x`` ``[..., c]`` at ``positions`` ``[...]``."""
    half = ROTATED // 2
    angles = positions[..., None] * (THETA ** (-np.arange(half) / half)).astype(np.float32)
    cos, sin = np.cos(angles, dtype=np.float32), np.sin(angles, dtype=np.float32)
    a, b, rest = x[..., :half], x[..., half:ROTATED], x[..., ROTATED:]
    rest = np.broadcast_to(rest, (*np.broadcast_shapes(a.shape, cos.shape)[:-1], rest.shape[-1]))
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, rest], -1)


def _behind(x: Floats, raw: int) -> Floats:
    """The sequence with ``raw - 1`` empty places in front, so that every token can look that far back."""
    return np.pad(x, ((0, 0), (raw - 1, 0), (0, 0)))


def weight_shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight of a model.

    >>> from phaseguard.lab.spec import SCHEMES
    >>> weight_shapes(SCHEMES["csa4"])["pool_bias"]
    (8, 32)
    """
    width, latent, heads = spec.width, spec.head_width, spec.heads * spec.head_width
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (VOCABULARY, width)}
    for block in ("first", "second"):
        shapes |= {
            f"{block}.norm.scale": (width,),
            f"{block}.q.weight": (heads, width),
            f"{block}.kv.weight": (latent, width),
            f"{block}.q_norm.scale": (latent,),
            f"{block}.kv_norm.scale": (latent,),
            f"{block}.out.weight": (width, heads),
            f"{block}.sink": (spec.heads,),
            f"{block}.mlp_norm.scale": (width,),
            f"{block}.up.weight": (4 * width, width),
            f"{block}.down.weight": (width, 2 * width),
        }
    channels = latent if spec.gate == "channel" else 1
    if not spec.full:
        shapes |= {"pool_kv.weight": (spec.blocks * latent, width), "pool_norm.scale": (latent,)}
        if spec.gate != "uniform":
            shapes["pool_gate.weight"] = (spec.blocks * channels, width)
        if spec.bias:
            shapes["pool_bias"] = (spec.window, channels)
    return shapes | {"final.scale": (width,), "head.weight": (VOCABULARY, width)}
