"""Schemes that select, thin out or cut by content, against the naive oracle; gate cycling."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import KernelError
from phaseguard.kernels import (
    Entries,
    chunk_gate,
    chunkkv,
    csa,
    dynamic,
    full,
    gates,
    minference,
    naive,
    snapkv,
)
from phaseguard.kernels.observe import window_attention
from tests.kernels.helpers import Array, close, normal

seeds = st.integers(0, 2**16)
lengths = st.integers(1, 40)


def _attention(seed: int, tokens: int, window: int) -> Array:
    return window_attention(normal(seed, min(window, tokens), 3), normal(seed + 1, tokens, 3))


def _pairs(entries: Entries, tokens: int) -> set[tuple[int, int]]:
    return {(int(q), int(t)) for q, t in np.argwhere(entries.visible(range(tokens)))}


@given(
    tokens=lengths,
    window=st.integers(1, 6),
    spare=st.integers(0, 30),
    kernel=st.sampled_from([1, 3, 5]),
    seed=seeds,
)
def test_snapkv_is_the_oracle(tokens: int, window: int, spare: int, kernel: int, seed: int) -> None:
    kv, attention = normal(seed, tokens, 2), _attention(seed, tokens, window)
    budget = min(window, tokens) + spare
    entries = snapkv.compress(kv, attention, budget=budget, kernel=kernel)
    wanted = naive.snapkv(attention, budget, kernel)
    assert entries.last.tolist() == wanted
    assert len(wanted) == min(tokens, budget)
    np.testing.assert_array_equal(entries.values, kv[wanted])


@given(
    tokens=lengths, window=st.integers(1, 6), spare=st.integers(0, 30), chunk=st.integers(2, 7), seed=seeds
)
def test_chunkkv_is_the_oracle(tokens: int, window: int, spare: int, chunk: int, seed: int) -> None:
    kv, attention = normal(seed, tokens, 2), _attention(seed, tokens, window)
    budget = min(window, tokens) + spare
    entries = chunkkv.compress(kv, attention, chunk=chunk, budget=budget)
    wanted = naive.chunkkv(attention, chunk, budget)
    assert entries.last.tolist() == wanted
    assert len(wanted) <= budget
    np.testing.assert_array_equal(entries.values, kv[wanted])


def test_chunkkv_keeps_whole_chunks_of_its_grid() -> None:
    attention = np.zeros((1, 101))
    attention[0, 37] = 1
    kept = chunkkv.compress(normal(0, 101, 2), attention, budget=11).last.tolist()
    assert kept == [*range(30, 40), 100]


def test_budgets_below_the_window_are_refused() -> None:
    kv, attention = normal(0, 20, 2), np.abs(normal(1, 5, 20))
    for compress in (snapkv.compress, chunkkv.compress):
        with pytest.raises(KernelError, match="budget 4 is below the observation window of 5: give more"):
            compress(kv, attention, budget=4)
    with pytest.raises(KernelError, match="kernel is 4: give an odd width"):
        snapkv.compress(kv, attention, kernel=4)
    with pytest.raises(KernelError, match="hold no query"):
        snapkv.compress(kv, attention[:0])


@given(tokens=lengths, first=st.integers(0, 9), local=st.integers(1, 9))
def test_a_shape_is_the_oracle(tokens: int, first: int, local: int) -> None:
    entries = minference.a_shape(normal(0, tokens, 2), first=first, local=local)
    assert _pairs(entries, tokens) == naive.a_shape(tokens, first, local)


@given(
    tokens=lengths,
    window=st.integers(1, 6),
    counts=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4), st.integers(1, 4)),
    seed=seeds,
)
def test_vertical_slash_is_the_oracle(tokens: int, window: int, counts: tuple[int, ...], seed: int) -> None:
    attention = _attention(seed, tokens, window)
    settings = dict(zip(("vertical", "slash", "first", "near"), counts, strict=True))
    entries = minference.vertical_slash(normal(seed, tokens, 2), attention, **settings)
    assert _pairs(entries, tokens) == naive.vertical_slash(attention, **settings)


@given(tokens=lengths, block=st.integers(2, 9), blocks=st.integers(1, 4), seed=seeds)
def test_block_sparse_is_the_oracle(tokens: int, block: int, blocks: int, seed: int) -> None:
    queries, keys = normal(seed, tokens, 3), normal(seed + 1, tokens, 3)
    entries = minference.block_sparse(normal(2, tokens, 5), queries, keys=keys, block=block, blocks=blocks)
    assert _pairs(entries, tokens) == naive.block_sparse(queries, keys, block, blocks)


def test_a_short_last_block_is_filled_up_with_zeros() -> None:
    """MInference pads the prompt: the last token's block has mean 1.5, below 2, though its token is 3."""
    rows = np.array([[2.0], [2.0], [3.0]])
    entries = minference.block_sparse(rows, rows, block=2, blocks=1)
    assert entries.visible([2]).tolist() == [[True, True, False]]
    assert _pairs(entries, 3) == naive.block_sparse(rows, rows, 2, 1)


def test_the_last_chunk_of_chunkkv_is_summed_over_its_own_tokens() -> None:
    """The sum, as in the paper: the chunk of three tokens wins, though each of the two behind it has more."""
    attention = np.array([[0.15, 0.15, 0.15, 0.2, 0.2, 0.15]])
    kept = chunkkv.compress(normal(0, 6, 2), attention, chunk=3, budget=4).last.tolist()
    assert kept == naive.chunkkv(attention, 3, 4) == [0, 1, 2, 5]


def test_sparse_patterns_hold_for_the_prompt_only() -> None:
    entries = minference.a_shape(normal(0, 20, 2), first=1, local=2)
    assert entries.visible([19]).sum() == 3
    assert entries.visible([20]).all()
    wide = minference.block_sparse(normal(0, 20, 2), normal(1, 20, 2), block=4, blocks=5)
    np.testing.assert_array_equal(wide.visible(range(20)), full.compress(normal(0, 20, 2)).visible(range(20)))


@given(tokens=st.integers(0, 40), threshold=st.floats(0.05, 1.0), seed=seeds)
def test_dynamic_is_the_oracle(tokens: int, threshold: float, seed: int) -> None:
    kv, keys = normal(seed, tokens, 2), normal(seed + 1, tokens, 2)
    starts = naive.dynamic(keys, threshold)
    first = dynamic.compress(kv, keys, threshold=threshold, pool="first")
    assert first.first.tolist() == first.ready.tolist() == starts
    np.testing.assert_array_equal(first.values, kv[starts])
    pooled = dynamic.compress(kv, keys, threshold=threshold)
    assert pooled.first.tolist() == starts[:-1]
    assert pooled.ready.tolist() == starts[1:]
    wanted = [kv[a:b].mean(axis=0) for a, b in pairwise(starts)]
    close(pooled.values, np.array(wanted).reshape(-1, 2), 1e-12)


@given(offset=st.integers(0, 9), seed=seeds)
def test_dynamic_chunks_move_with_the_content(offset: int, seed: int) -> None:
    kv, keys = normal(seed, 30, 2), normal(seed + 1, 30, 2)
    lead = normal(seed + 2, offset, 2)
    here = dynamic.compress(kv, keys)
    there = dynamic.compress(np.concatenate([lead, kv]), np.concatenate([lead, keys]))
    inner = here.first > 0
    moved = np.isin(there.first, here.first[inner] + offset)
    np.testing.assert_array_equal(there.values[moved], here.values[inner])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"pool": "max"}, "pool is 'max': give 'mean' or 'first'"),
        ({"threshold": 0}, "threshold is 0: give"),
        ({"threshold": float("nan")}, "threshold is nan: give"),
    ],
)
def test_dynamic_refuses(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError, match=says):
        dynamic.compress(normal(0, 4, 2), normal(1, 4, 2), **settings)


@given(tokens=lengths, window=st.integers(0, 6), seed=seeds)
def test_window_attention_is_causal_and_sums_to_one(tokens: int, window: int, seed: int) -> None:
    weights = _attention(seed, tokens, window)
    seen = weights.shape[0]
    close(weights.sum(axis=-1), np.ones(seen), 1e-12)
    for row in range(seen):
        assert (weights[row, tokens - seen + row + 1 :] == 0).all()
        assert (weights[row, : tokens - seen + row + 1] > 0).all()


def test_window_attention_refuses() -> None:
    with pytest.raises(KernelError, match="with T >= O"):
        window_attention(np.zeros((3, 2)), np.zeros((2, 2)))


@given(by=st.integers(-9, 9), seed=seeds)
def test_cycling_the_gates_is_cycling_the_tokens(by: int, seed: int) -> None:
    kv, scores, bias = normal(seed, 16, 3), normal(seed + 1, 16, 3), normal(seed + 2, 4, 3)
    cycled = gates.cycle(scores, by, 4), gates.cycle(bias, by, 4)
    got = chunk_gate.compress(gates.cycle(kv, by, 4), cycled[0], bias=cycled[1]).values
    close(got, chunk_gate.compress(kv, scores, bias=bias).values, 1e-12)
    np.testing.assert_array_equal(gates.cycle(cycled[1], -by, 4), bias)
    np.testing.assert_array_equal(gates.cycle(bias, by, 4), bias[(np.arange(4) - by) % 4])


def test_cycling_keeps_the_halves_of_csa_apart() -> None:
    kv, scores, bias = normal(0, 16, 4), normal(1, 16, 4), normal(2, 4, 4)
    moved = csa.compress(gates.cycle(kv, 1, 4), gates.cycle(scores, 1, 4), bias=gates.cycle(bias, 1, 4))
    close(moved.values, csa.compress(kv, scores, bias=bias).values, 1e-12)
    with pytest.raises(KernelError, match=r"by is 0\.5: give a whole number of phases"):
        gates.cycle(bias, 0.5, 4)
