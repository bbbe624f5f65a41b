"""CSA pooling fused in one pass by numba (extra ``numba``): scores and values are read once from memory.

The exponential is an inlined polynomial, so that LLVM vectorizes the loop without a vector math library:
``2^y = 2^n * p(y - n)`` with the nearest whole number n and a polynomial p of degree 5 (relative error
2e-7). Error of the entries against float64: about 1e-6, relative to the largest value pooled.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError, MissingExtraError
from phaseguard.kernels import csa as reference
from phaseguard.kernels.check import as_floats, check_at_least, check_finite, check_shape, start_of
from phaseguard.kernels.entries import Entries, Floats, chunk_entries
from phaseguard.kernels.grid import Grid

_INFINITY_BITS = 0x7F800000


def csa(
    kv: ArrayLike,
    scores: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    bias: ArrayLike | None = None,
    stride: int = reference.STRIDE,
    out: Floats | None = None,
    threads: int = 1,
) -> Entries:
    """The same as :func:`phaseguard.kernels.csa.compress`, for float32 arrays only.

    Args:
        kv: ``[..., T, 2d]`` float32.
        scores: ``[..., T, 2d]`` float32.
        positions: ``[T]`` absolute positions, consecutive, from a multiple of the stride on; default from 0.
        bias: ``[stride, 2d]``.
        stride: 4 in every release. Each stride is compiled once a process (a second or two).
        out: contiguous float32 array to write to, ``[..., W, d]``.
        threads: threads that share the entries.

    Raises:
        KernelError: for shapes and dtypes that do not fit, NaN, a stride below 2, positions inside a chunk.
        MissingExtraError: when numba is not installed.

    >>> kv = np.concatenate([np.full((8, 1), 9.0), np.arange(8.0)[:, None]], axis=1).astype(np.float32)
    >>> csa(kv, np.zeros((8, 2), np.float32)).values.ravel().round(5).tolist()
    [1.5, 7.25]
    """
    grid = Grid(stride, 2 * stride, split=True)
    values, gates = _float32("kv", kv), _float32("scores", scores)
    width = grid.width(values.shape, gates.shape)
    check_shape("scores", gates.shape, values.shape)
    start = start_of(positions, values.shape[-2], stride)
    rows = (
        np.zeros((stride, 2 * width), np.float32) if bias is None else as_floats("bias", bias, "[stride, 2d]")
    )
    check_shape("bias", rows.shape, (stride, 2 * width))
    check_finite("bias", rows, masked=True)
    shape = (*values.shape[:-2], values.shape[-2] // stride, width)
    pooled = np.empty(shape, np.float32) if out is None else out
    check_shape("out", pooled.shape, shape)
    if pooled.dtype != np.float32 or not pooled.flags.c_contiguous:
        raise KernelError(f"out has dtype {pooled.dtype}: give a contiguous float32 array.")
    _run(values, gates, np.ascontiguousarray(rows, np.float32), pooled, check_at_least("threads", threads, 1))
    return chunk_entries(pooled, start, stride, grid.window)


def _float32(name: str, value: ArrayLike) -> Floats:
    array = as_floats(name, value, "[..., T, 2d]")
    if array.dtype != np.float32:
        raise KernelError(f"{name} has dtype {array.dtype}: give float32, or use phaseguard.kernels.csa.")
    return np.ascontiguousarray(array)


def _run(kv: Floats, scores: Floats, bias: Floats, out: Floats, threads: int) -> None:
    stride, (count, width) = len(bias), out.shape[-2:]
    kernel = _compiled(stride)
    rest = slice(max(0, count - 1) * stride, None)  # what reaches no entry, or only half of it
    check_finite("kv", kv[..., rest, :])
    check_finite("scores", scores[..., rest, :], masked=True)
    if not out.size:
        return
    flat_out = out.reshape(-1, count, width)
    flat_kv, flat_scores = (array.reshape(-1, *array.shape[-2:]) for array in (kv, scores))
    cuts = [count * part // threads for part in range(threads + 1)]

    def work(part: int) -> bool:
        return bool(
            kernel(flat_kv, flat_scores, bias, flat_out, cuts[part], cuts[part + 1]) >= _INFINITY_BITS
        )

    if threads == 1:
        broken = work(0)
    else:
        with ThreadPoolExecutor(threads) as workers:
            broken = any(list(workers.map(work, range(threads))))
    if broken:
        check_finite("kv", kv)
        check_finite("scores", scores, masked=True)
        raise KernelError(
            "The pooled values overflow: scale kv down or use phaseguard.kernels.csa in float64."
        )


@cache
def _compiled(stride: int) -> Callable[[Floats, Floats, Floats, Floats, int, int], int]:
    """The kernel for one stride; the constant lets LLVM unroll the slots and vectorize the channels."""
    try:
        import numba  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise MissingExtraError("numba is not installed: pip install 'phaseguard[numba]'.") from error
    compile_ = numba.njit(nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
    power, prefetch = compile_(_power), _prefetch()
    first, later = compile_(_first_entry(stride, power)), compile_(_later_entry(stride, power))

    def kernel(kv: Any, scores: Any, bias: Any, out: Any, begin: int, end: int) -> int:
        bits, flat_kv, flat_scores = 0, kv.reshape(-1), scores.reshape(-1)
        for b in range(out.shape[0]):
            for w in range(begin, end):
                after = (b * kv.shape[1] + (w + 1) * stride) * kv.shape[2]
                for at in range(after, min(flat_kv.size, after + stride * kv.shape[2]), 16):
                    prefetch(flat_kv, at)  # the next chunk: rows of a page each, too short for the hardware's
                    prefetch(flat_scores, at)
                if w:
                    bits = max(bits, later(kv[b], scores[b], bias, out[b, w], w))
                else:
                    bits = max(bits, first(kv[b], scores[b], bias, out[b, w]))
        return bits

    compiled: Callable[[Floats, Floats, Floats, Floats, int, int], int] = compile_(kernel)
    return compiled


def _prefetch() -> Any:
    """``prefetch(flat, at)``: LLVM's hint to bring the cache line of ``flat[at]`` into the cache."""
    from llvmlite import ir  # noqa: PLC0415 - comes with numba
    from numba.core import cgutils, types  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        declare: Any = cgutils.get_or_insert_function
        hint = declare(builder.module, kind, "llvm.prefetch.p0i8")
        line = builder.bitcast(builder.gep(flat.data, [arguments[1]]), byte)
        builder.call(hint, [line, number(0), number(2), number(1)])  # to read, into the second level, data
        return context.get_dummy_value()

    def prefetch(_typing: Any, flat: Any, _at: Any) -> Any:
        return types.void(flat, types.intp), generate

    return intrinsic(prefetch)


def _first_entry(stride: int, power: Any) -> Callable[..., Any]:
    """The entry without a predecessor; returns the largest bit pattern, to find NaN and infinities."""

    def entry(kv: Any, scores: Any, bias: Any, out: Any) -> Any:
        half, zero, nothing, bits = out.size, np.float32(0), np.float32(-np.inf), np.int32(0)
        for c in range(half):
            top = nothing
            for j in range(stride):
                top = max(top, scores[j, half + c] + bias[j, half + c])
            top = zero if top == nothing else top
            total, mixed = zero, zero
            for j in range(stride):
                weight = power(scores[j, half + c] + bias[j, half + c] - top)
                total += weight
                mixed += weight * kv[j, half + c]
            value = np.float32(mixed if total == zero else mixed / total)
            out[c] = value
            bits = max(bits, np.int32(value.view(np.int32) & np.int32(0x7FFFFFFF)))
        return bits

    return entry


def _later_entry(stride: int, power: Any) -> Callable[..., Any]:
    """Any other entry: first halves of the chunk before, second halves of its own."""

    def entry(kv: Any, scores: Any, bias: Any, out: Any, w: int) -> Any:
        half, zero, nothing, bits = out.size, np.float32(0), np.float32(-np.inf), np.int32(0)
        own, before = w * stride, w * stride - stride
        for c in range(half):
            top = nothing
            for j in range(stride):
                top = max(top, scores[before + j, c] + bias[j, c])
                top = max(top, scores[own + j, half + c] + bias[j, half + c])
            top = zero if top == nothing else top
            total, mixed = zero, zero
            for j in range(stride):
                weight = power(scores[before + j, c] + bias[j, c] - top)
                total += weight
                mixed += weight * kv[before + j, c]
                weight = power(scores[own + j, half + c] + bias[j, half + c] - top)
                total += weight
                mixed += weight * kv[own + j, half + c]
            value = np.float32(mixed if total == zero else mixed / total)
            out[c] = value
            bits = max(bits, np.int32(value.view(np.int32) & np.int32(0x7FFFFFFF)))
        return bits

    return entry


def _power(x: Any) -> Any:
    """exp(x) for x <= 0 in float32; exactly 0 below -88; NaN stays NaN."""
    y = x * np.float32(1.4426950408889634)
    y = np.float32(-127) if y < np.float32(-127) else y
    shifted = y + np.float32(12582912)  # 1.5 * 2**23: the low bits now hold the nearest whole number
    f = y - (shifted - np.float32(12582912))
    p = np.float32(0.00132765)
    p = p * f + np.float32(0.00967554)
    p = p * f + np.float32(0.05550713)
    p = p * f + np.float32(0.2402212)
    p = p * f + np.float32(0.69314697)
    p = p * f + np.float32(1.00000007)
    scale = np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return p * scale
