"""Pooled schemes against the naive oracle, and against each other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import KernelError
from phaseguard.kernels import chunk_gate, csa, hca, mean, naive, pair, pool
from tests.kernels.helpers import close, each_row, normal

LENGTHS = [0, 1, 3, 4, 5, 8, 13, 130, 259]
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-5, np.float64: 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_csa_is_the_oracle(tokens: int, dtype: Any) -> None:
    kv, scores, bias = (
        normal(i, *shape, dtype=dtype) for i, shape in enumerate([(2, 3, tokens, 10)] * 2 + [(4, 10)])
    )
    entries = csa.compress(kv, scores, bias=bias)
    assert entries.values.dtype == dtype
    close(entries.values, each_row(naive.csa, kv, scores, bias=bias), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_hca_and_pair_are_the_oracle(tokens: int, dtype: Any) -> None:
    kv, scores, bias = (
        normal(0, 2, tokens, 3, dtype=dtype),
        normal(1, 2, tokens, 3, dtype=dtype),
        normal(2, 128, 3),
    )
    close(
        hca.compress(kv, scores, bias=bias).values,
        each_row(naive.hca, kv, scores, bias=bias),
        TOLERANCE[dtype],
    )
    close(pair.compress(kv, scores).values, each_row(naive.pair, kv, scores), TOLERANCE[dtype])


@given(
    tokens=st.integers(0, 40),
    stride=st.integers(2, 7),
    extra=st.integers(0, 12),
    width=st.integers(1, 5),
    split=st.booleans(),
    scalar=st.booleans(),
    biased=st.sampled_from([None, 1, 0]),
    seed=st.integers(0, 2**16),
)
def test_chunk_gate_is_the_oracle(
    tokens: int, stride: int, extra: int, width: int, split: bool, scalar: bool, biased: int | None, seed: int
) -> None:
    window = stride + extra
    blocks = -(-window // stride) if split else 1
    kv = normal(seed, 2, tokens, width * blocks)
    scores = normal(seed + 1, 2, tokens, blocks if scalar else width * blocks, scale=3)
    bias = None if biased is None else normal(seed + 2, window, biased or width)
    got = chunk_gate.compress(kv, scores, stride=stride, window=window, split=split, bias=bias)
    settings = {"stride": stride, "window": window, "split": split, "bias": bias}
    close(got.values, each_row(naive.chunk_gate, kv, scores, **settings), 1e-12)


@given(tokens=st.integers(0, 40), stride=st.integers(2, 7), extra=st.integers(0, 9), seed=st.integers(0, 99))
def test_mean_is_the_oracle(tokens: int, stride: int, extra: int, seed: int) -> None:
    kv = normal(seed, 3, tokens, 2)
    got = mean.compress(kv, stride=stride, window=stride + extra).values
    close(got, each_row(naive.mean, kv, stride=stride, window=stride + extra), 1e-12)


def test_instances_equal_the_chunk_gate() -> None:
    kv, scores, bias = normal(0, 2, 261, 6), normal(1, 2, 261, 6), normal(2, 4, 6)
    slots = np.stack([bias[k % 4, 3 * (k // 4) : 3 * (k // 4) + 3] for k in range(8)])
    general = chunk_gate.compress(kv, scores, stride=4, window=8, split=True, bias=slots)
    np.testing.assert_array_equal(csa.compress(kv, scores, bias=bias).values, general.values)
    long = normal(3, 128, 6)
    np.testing.assert_array_equal(
        hca.compress(kv, scores, bias=long).values,
        chunk_gate.compress(kv, scores, stride=128, bias=long).values,
    )
    np.testing.assert_array_equal(
        pair.compress(kv, scores).values, chunk_gate.compress(kv, scores, stride=2).values
    )
    close(
        mean.compress(kv, stride=4).values, chunk_gate.compress(kv, np.zeros_like(kv), stride=4).values, 1e-12
    )


@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
def test_tiles_change_nothing(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kv, scores, bias = (
        normal(0, 5, 83, 6, dtype=np.float32),
        normal(1, 5, 83, 6, dtype=np.float32),
        normal(2, 4, 6),
    )
    whole = csa.compress(kv, scores, bias=bias).values
    monkeypatch.setattr(pool, "TILE", tile)
    np.testing.assert_array_equal(csa.compress(kv, scores, bias=bias).values, whole)


def test_a_token_reaches_its_own_entry_and_the_next() -> None:
    kv, scores = normal(0, 40, 4), normal(1, 40, 4)
    before = csa.compress(kv, scores).values
    for token in range(40):
        moved = kv.copy()
        moved[token] += 1
        changed = np.flatnonzero((csa.compress(moved, scores).values != before).any(axis=1))
        assert changed.tolist() == [w for w in (token // 4, token // 4 + 1) if w < 10]


def test_the_missing_predecessor_weighs_exactly_nothing() -> None:
    kv, scores = normal(0, 8, 4), normal(1, 8, 4)
    second = chunk_gate.compress(kv[:, 2:], scores[:, 2:], stride=4).values
    np.testing.assert_array_equal(csa.compress(kv, scores).values[0], second[0])


def test_entries_know_their_tokens_and_their_queries() -> None:
    entries = csa.compress(normal(0, 23, 4), normal(1, 23, 4), np.arange(8, 31))
    assert entries.first.tolist() == [8, 8, 12, 16, 20]
    assert entries.last.tolist() == [11, 15, 19, 23, 27]
    assert entries.anchor.tolist() == [8, 12, 16, 20, 24]
    entries = csa.compress(normal(0, 23, 4), normal(1, 23, 4))
    np.testing.assert_array_equal(entries.visible(range(40)), naive.visible(range(40), 5, 4))


def test_slots_that_are_all_masked_give_zero() -> None:
    kv, scores = normal(0, 2, 24, 6), normal(1, 2, 24, 6)
    scores[0, 4:12] = -np.inf
    scores[1, 12:20, 4] = -np.inf
    got = csa.compress(kv, scores).values
    assert (got[0, 2] == csa.compress(kv, scores).values[0, 2]).all()
    close(got, each_row(naive.csa, kv, scores), 1e-12)
    scores[:] = -np.inf
    assert (csa.compress(kv, scores).values == 0).all()


@given(shift=st.floats(-1e4, 1e4), seed=st.integers(0, 99))
def test_large_scores_do_not_overflow(shift: float, seed: int) -> None:
    kv, scores = normal(seed, 12, 2), normal(seed + 1, 12, 2)
    close(csa.compress(kv, scores + shift).values, csa.compress(kv, scores).values, 1e-9)


def test_out_is_written_and_returned() -> None:
    kv, scores = normal(0, 2, 9, 4), normal(1, 2, 9, 4)
    out = np.full((2, 2, 2), np.nan)
    assert csa.compress(kv, scores, out=out).values is out
    np.testing.assert_array_equal(out, csa.compress(kv, scores).values)
    with pytest.raises(KernelError, match="out has shape"):
        csa.compress(kv, scores, out=out[:1])
    with pytest.raises(KernelError, match="contiguous array of dtype float64"):
        csa.compress(kv, scores, out=out.astype(np.float32))


@pytest.mark.parametrize(
    ("kv", "scores", "settings", "says"),
    [
        ((8, 5), (8, 5), {}, r"give \[\.\.\., T, d \* 2\]"),
        ((8, 4), (9, 4), {}, r"scores has shape \(9, 4\): give \(8, 4\)"),
        ((4,), (4,), {}, r"kv has shape \(4,\)"),
        ((8, 4), (8, 4), {"stride": 1}, "stride is 1: give a whole number of at least 2"),
        ((8, 4), (8, 4), {"stride": 2.0}, "stride is 2.0"),
        ((8, 4), (8, 4), {"bias": np.zeros((4, 2))}, r"bias has shape \(4, 2\): give \(4, 4\)"),
        ((8, 4), (8, 4), {"bias": np.full((4, 4), np.nan)}, "bias holds nan"),
        ((8, 4), (8, 4), {"positions": range(7)}, "give 8 whole numbers"),
        ((8, 4), (8, 4), {"positions": range(2, 10)}, "give the tokens from position 0 on"),
        ((8, 4), (8, 4), {"positions": [0, 1, 2, 3, 5, 6, 7, 8]}, "not consecutive"),
        ((8, 4), None, {}, "scores are missing"),
    ],
)
def test_what_does_not_fit_is_refused(kv: Any, scores: Any, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError, match=says):
        csa.compress(np.zeros(kv), None if scores is None else np.zeros(scores), **settings)


@pytest.mark.parametrize("name", ["kv", "scores"])
def test_no_nan_is_overlooked(name: str) -> None:
    for token, channel in np.ndindex(11, 4):
        arrays = {"kv": normal(0, 3, 11, 4), "scores": normal(1, 3, 11, 4)}
        arrays[name][1, token, channel] = np.nan
        with pytest.raises(KernelError, match=rf"{name}.* holds nan"):
            csa.compress(arrays["kv"], arrays["scores"])


def test_infinities_and_overflow_are_named() -> None:
    kv = np.full((4, 1), 3e38, np.float32)
    with pytest.raises(KernelError, match="overflow"):
        chunk_gate.compress(kv, np.zeros_like(kv))
    with pytest.raises(KernelError, match=r"scores.* holds inf"):
        chunk_gate.compress(np.zeros((4, 1)), np.full((4, 1), np.inf))
    with pytest.raises(KernelError, match="dtype int64"):
        chunk_gate.compress(np.zeros((4, 1), np.int64), np.zeros((4, 1)))
    with pytest.raises(KernelError, match="window 3 is shorter than stride 4"):
        chunk_gate.compress(np.zeros((4, 1)), np.zeros((4, 1)), window=3)


def test_the_comparison_fails_on_wrong_data() -> None:
    with pytest.raises(AssertionError):
        close(np.zeros((2, 2)), np.full((2, 2), 1e-3), 1e-5)
    with pytest.raises(AssertionError):
        close(np.zeros((2, 2)), np.zeros((1, 2)), 1e-5)
