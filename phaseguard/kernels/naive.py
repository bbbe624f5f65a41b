"""The slow oracle: every scheme by its definition, in Python loops and float64, for one sequence.

Functions take ``[T, ...]`` without batch dimensions, from position 0 on. Pooled schemes return the entries
``[W, d]``, selecting ones the positions kept, sparse patterns the pairs (query, token) that are read.
Nothing here shares code with the fast files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


def csa(kv: NDArray[Any], scores: NDArray[Any], bias: NDArray[Any] | None = None, stride: int = 4) -> F64:
    """First halves of the chunk before, then second halves of the chunk itself; bias by position.

    >>> csa(np.array([[9, 0], [9, 1], [9, 2], [9, 3]]), np.zeros((4, 2))).tolist()
    [[1.5]]
    """
    tokens, half = len(kv), kv.shape[1] // 2
    out = np.zeros((tokens // stride, half))
    for w in range(tokens // stride):
        for c in range(half):
            gates, numbers = [], []
            for t in range((w - 1) * stride, (w + 1) * stride):
                if t < 0:
                    continue
                channel = c if t < w * stride else half + c
                extra = 0.0 if bias is None else float(bias[t % stride, channel])
                gates.append(float(scores[t, channel]) + extra)
                numbers.append(float(kv[t, channel]))
            out[w, c] = _mix(gates, numbers)
    return out


def hca(kv: NDArray[Any], scores: NDArray[Any], bias: NDArray[Any] | None = None, stride: int = 128) -> F64:
    """The tokens of the chunk; bias by position.

    >>> hca(np.arange(4.0)[:, None], np.zeros((4, 1)), stride=2).ravel().tolist()
    [0.5, 2.5]
    """
    out = np.zeros((len(kv) // stride, kv.shape[1]))
    for w in range(len(out)):
        for c in range(kv.shape[1]):
            chunk = range(w * stride, (w + 1) * stride)
            extra = [0.0 if bias is None else float(bias[t % stride, c]) for t in chunk]
            gates = [float(scores[t, c]) + extra[t % stride] for t in chunk]
            out[w, c] = _mix(gates, [float(kv[t, c]) for t in chunk])
    return out


def pair(kv: NDArray[Any], scores: NDArray[Any]) -> F64:
    """Two tokens by the logistic function of the difference of their scores (finite ones only).

    >>> pair(np.arange(4.0)[:, None], np.zeros((4, 1))).ravel().tolist()
    [0.5, 2.5]
    """
    out = np.zeros((len(kv) // 2, kv.shape[1]))
    for w in range(len(out)):
        for c in range(kv.shape[1]):
            second = 1 / (1 + math.exp(float(scores[2 * w, c]) - float(scores[2 * w + 1, c])))
            out[w, c] = (1 - second) * float(kv[2 * w, c]) + second * float(kv[2 * w + 1, c])
    return out


def chunk_gate(
    kv: NDArray[Any],
    scores: NDArray[Any],
    stride: int,
    window: int,
    split: bool = False,
    bias: NDArray[Any] | None = None,
) -> F64:
    """Slot k of entry w is the token ``w*stride + stride - window + k``; bias by slot.

    >>> chunk_gate(np.arange(4.0)[:, None], np.zeros((4, 1)), 2, 3).ravel().tolist()
    [0.5, 2.0]
    """
    blocks = math.ceil(window / stride) if split else 1
    width, gates_a_block = kv.shape[1] // blocks, scores.shape[1] // blocks
    out = np.zeros((len(kv) // stride, width))
    for w in range(len(out)):
        for c in range(width):
            gates, numbers = [], []
            for k in range(window):
                t = w * stride + stride - window + k
                if t < 0:
                    continue
                block = blocks - 1 - (w - t // stride) if split else 0
                gate = float(scores[t, block * gates_a_block + (c if gates_a_block > 1 else 0)])
                if bias is not None:
                    gate += float(bias[k, c if bias.shape[1] > 1 else 0])
                gates.append(gate)
                numbers.append(float(kv[t, block * width + c]))
            out[w, c] = _mix(gates, numbers)
    return out


def mean(kv: NDArray[Any], stride: int, window: int) -> F64:
    """Arithmetic mean of the tokens that exist.

    >>> mean(np.arange(4.0)[:, None], 2, 3).ravel().tolist()
    [0.5, 2.0]
    """
    out = np.zeros((len(kv) // stride, kv.shape[1]))
    for w in range(len(out)):
        for c in range(kv.shape[1]):
            end = (w + 1) * stride
            numbers = [float(kv[t, c]) for t in range(max(0, end - window), end)]
            out[w, c] = math.fsum(numbers) / len(numbers)
    return out


def visible(queries: Sequence[int], entries: int, stride: int) -> NDArray[np.bool_]:
    """Entry w is seen by the query at t if and only if ``w < (t + 1) // stride``.

    >>> visible([2, 3], 1, 4).tolist()
    [[False], [True]]
    """
    rows = [[w < (t + 1) // stride for w in range(entries)] for t in queries]
    return np.array(rows, dtype=bool).reshape(len(queries), entries)


def _mix(gates: Sequence[float], numbers: Sequence[float]) -> float:
    """Softmax of the gates, times the numbers; 0 where no gate is above -inf."""
    top = max(gates)
    if top == -math.inf:
        return 0.0
    weights = [math.exp(gate - top) for gate in gates]
    total = math.fsum(weights)
    return math.fsum(weight * number for weight, number in zip(weights, numbers, strict=True)) / total


def snapkv(attention: NDArray[Any], budget: int, kernel: int) -> list[int]:
    """Positions kept, from the weights ``[O, T]``.

    >>> snapkv(np.array([[0.0, 0.0, 0.9, 0.0, 0.0, 0.1]]), 4, 3)
    [1, 2, 3, 5]
    """
    window, tokens = attention.shape
    if tokens <= budget:
        return list(range(tokens))
    prefix = tokens - window
    hits = [math.fsum(float(attention[o, t]) for o in range(window)) for t in range(prefix)]
    reach = kernel // 2
    pooled = [max(hits[max(0, t - reach) : t + reach + 1]) for t in range(prefix)]
    best = sorted(range(prefix), key=lambda t: (-pooled[t], t))[: budget - window]
    return sorted(best) + list(range(prefix, tokens))


def chunkkv(attention: NDArray[Any], chunk: int, budget: int) -> list[int]:
    """Positions kept, from the weights ``[O, T]``.

    >>> chunkkv(np.array([[0.1, 0.0, 0.0, 0.5, 0.2, 0.0, 0.2]]), 2, 3)
    [2, 3, 6]
    """
    window, tokens = attention.shape
    if tokens <= budget:
        return list(range(tokens))
    prefix = tokens - window
    chunks = [list(range(at, min(prefix, at + chunk))) for at in range(0, prefix, chunk)]
    hits = [math.fsum(float(attention[o, t]) for o in range(window) for t in part) for part in chunks]
    best = sorted(range(len(chunks)), key=lambda i: (-hits[i], i))[: (budget - window) // chunk]
    return sorted(t for i in best for t in chunks[i]) + list(range(prefix, tokens))


def a_shape(tokens: int, first: int, local: int) -> set[tuple[int, int]]:
    """Pairs (query, token) that are read.

    >>> sorted(a_shape(3, 1, 1))
    [(0, 0), (1, 0), (1, 1), (2, 0), (2, 2)]
    """
    return {(q, t) for q in range(tokens) for t in range(q + 1) if t < first or q - t < local}


def vertical_slash(
    attention: NDArray[Any], vertical: int, slash: int, first: int, near: int
) -> set[tuple[int, int]]:
    """Pairs (query, token) that are read, from the weights ``[O, T]``.

    >>> sorted(vertical_slash(np.array([[0.1, 0.9, 0.0]]), 1, 1, 0, 1))
    [(0, 0), (1, 1), (2, 1), (2, 2)]
    """
    window, tokens = attention.shape
    columns, lines = [0.0] * tokens, [0.0] * tokens
    for o in range(window):
        query = tokens - window + o
        for t in range(query + 1):
            columns[t] += float(attention[o, t])
            lines[query - t] += float(attention[o, t])
    columns[:first] = [math.inf] * min(first, tokens)
    lines[:near] = [math.inf] * min(near, tokens)
    kept = sorted(range(tokens), key=lambda t: (-columns[t], t))[: max(vertical, first)]
    back = sorted(range(tokens), key=lambda b: (-lines[b], b))[: max(slash, near)]
    return {(q, t) for q in range(tokens) for t in range(q + 1) if t in kept or q - t in back}


def block_sparse(queries: NDArray[Any], keys: NDArray[Any], block: int, blocks: int) -> set[tuple[int, int]]:
    """Pairs (query, token) that are read, from ``[T, e]`` each.

    >>> rows = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    >>> sorted(block_sparse(rows, rows, 2, 1))
    [(0, 0), (1, 0), (1, 1), (2, 2), (3, 2), (3, 3)]
    """
    tokens = len(queries)
    parts = [range(at, min(tokens, at + block)) for at in range(0, tokens, block)]
    seen = set()
    for i, rows in enumerate(parts):
        query = sum(queries[t].astype(np.float64) for t in rows) / block  # zeros fill up the last block
        means = [sum(keys[t].astype(np.float64) for t in parts[j]) / block for j in range(i + 1)]
        score = [float(query @ mean_key) for mean_key in means]
        best = sorted(range(i + 1), key=lambda j: (-score[j], j))[:blocks]
        seen |= {(q, t) for q in rows for j in best for t in parts[j] if t <= q}
    return seen


def dynamic(keys: NDArray[Any], threshold: float = 0.5) -> list[int]:
    """Tokens at which a chunk starts, from ``[T, e]``.

    >>> dynamic(np.array([[1.0], [1.0], [-1.0]]))
    [0, 2]
    """
    starts = []
    for t in range(len(keys)):
        chance = 1.0
        if t:
            a, b = [float(x) for x in keys[t - 1]], [float(x) for x in keys[t]]
            size = max(1e-12, math.hypot(*a)) * max(1e-12, math.hypot(*b))
            chance = (1 - math.fsum(x * y for x, y in zip(a, b, strict=True)) / size) / 2
        if chance >= threshold:
            starts.append(t)
    return starts
