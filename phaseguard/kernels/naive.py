"""The slow oracle: every pooled scheme by its definition, in Python loops and float64, for one sequence.

Each function takes ``[T, ...]`` without batch dimensions, from position 0 on, and returns ``[W, d]`` in
float64. Nothing here shares code with the fast files.
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
