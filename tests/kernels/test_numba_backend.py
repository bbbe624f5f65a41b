"""The fused kernel: near float64 to 1e-6, and with the same manners as the numpy one."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import KernelError, MissingExtraError
from phaseguard.kernels import csa, numba_backend
from tests.kernels.helpers import Array, normal

TOLERANCE = 1e-6


def _float32(*shapes: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> list[Array]:
    return [normal(seed + i, *shape, dtype=np.float32, scale=scale) for i, shape in enumerate(shapes)]


def _near(got: Array, kv: Array, scores: Array, bias: Array | None) -> None:
    exact = csa.compress(kv.astype(np.float64), scores.astype(np.float64), bias=bias).values
    size = np.abs(kv).max(initial=1)
    assert got.shape == exact.shape
    assert np.abs(got - exact).max(initial=0) <= TOLERANCE * size


@pytest.mark.parametrize("tokens", [0, 1, 3, 4, 5, 13, 64])
@pytest.mark.parametrize(("batch", "threads"), [((), 1), ((3,), 1), ((2, 2), 3), ((0,), 2)], ids=str)
@pytest.mark.parametrize("width", [1, 7, 64])
def test_it_is_near_float64(tokens: int, batch: tuple[int, ...], width: int, threads: int) -> None:
    shape = (*batch, tokens, 2 * width)
    kv, scores, bias = _float32(shape, shape, (4, 2 * width))
    entries = numba_backend.csa(kv, scores, bias=bias, threads=threads)
    assert entries.values.dtype == np.float32
    _near(entries.values, kv, scores, bias)
    assert entries.ready.tolist() == csa.compress(kv, scores).ready.tolist()


@given(
    scale=st.sampled_from([0.0, 1.0, 30.0, 1e3, 1e30]), shift=st.floats(-100, 100), seed=st.integers(0, 999)
)
def test_scores_of_any_size(scale: float, shift: float, seed: int) -> None:
    kv, scores = _float32((24, 6), (24, 6), seed=seed)
    scores = (scores * np.float32(scale) + np.float32(shift)).astype(np.float32)
    _near(numba_backend.csa(kv, scores).values, kv, scores, None)


def test_another_stride() -> None:
    kv, scores, bias = _float32((2, 25, 6), (2, 25, 6), (3, 6))
    got = numba_backend.csa(kv, scores, bias=bias, stride=3).values
    np.testing.assert_allclose(
        got, csa.compress(kv, scores, bias=bias, stride=3).values, rtol=1e-5, atol=1e-6
    )


def test_masked_slots_weigh_nothing_and_none_left_gives_zero() -> None:
    kv, scores = _float32((24, 6), (24, 6))
    scores[::3] = -np.inf
    scores[4:12] = -np.inf
    kv[6] = 1e30
    got = numba_backend.csa(kv, scores).values
    assert (got[2] == 0).all()
    assert (got[3] != 0).all()
    np.testing.assert_allclose(got, csa.compress(kv, scores).values, rtol=1e-5, atol=1e-6)
    scores[:] = -np.inf
    assert (numba_backend.csa(kv, scores).values == 0).all()


@pytest.mark.parametrize("name", ["kv", "scores"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nothing_that_is_not_finite_is_overlooked(name: str, value: float) -> None:
    for token, channel in np.ndindex(11, 4):
        kv, scores = _float32((3, 11, 4), (3, 11, 4))
        {"kv": kv, "scores": scores}[name][1, token, channel] = value
        with pytest.raises(KernelError, match=rf"{name} holds {value}"):
            numba_backend.csa(kv, scores, threads=2)


def test_out_and_layout() -> None:
    kv, scores = _float32((2, 13, 6), (2, 13, 6))
    out = np.full((2, 3, 3), np.nan, np.float32)
    assert numba_backend.csa(np.asfortranarray(kv), scores, out=out).values is out
    np.testing.assert_array_equal(out, numba_backend.csa(kv, scores).values)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stride": 1}, "stride is 1"),
        ({"threads": 0}, "threads is 0"),
        ({"bias": np.zeros((4, 2))}, "bias has shape"),
        ({"out": np.zeros((2, 2))}, "give a contiguous float32 array"),
        ({"positions": range(1, 9)}, "inside a chunk of 4"),
        ({"scores": np.zeros((8, 4))}, "scores has dtype float64: give float32"),
        ({"scores": np.zeros((8, 2), np.float32)}, "scores has shape"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, Any], says: str) -> None:
    zeros = np.zeros((8, 4), np.float32)
    with pytest.raises(KernelError, match=says):
        numba_backend.csa(zeros, **{"scores": zeros, **settings})


def test_overflow_is_named() -> None:
    kv = np.full((8, 2), 3e38, np.float32)
    with pytest.raises(KernelError, match="overflow"):
        numba_backend.csa(kv, np.zeros_like(kv))


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'phaseguard\[numba\]'"):
        numba_backend._compiled.__wrapped__(4)
