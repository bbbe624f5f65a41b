"""Streams: any cuts give the entries of one call, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import KernelError
from phaseguard.kernels import Entries, chunk_gate, csa, hca, mean, pair, stream
from tests.kernels.helpers import Array, normal

BIAS = {4: normal(9, 4, 6), 8: normal(9, 8, 6)}
GATE = {"stride": 6, "window": 8, "bias": normal(9, 8, 6)}
WIDE = {"stride": 2, "window": 5, "split": True}
Case = tuple[Callable[[], stream.PoolStream], Callable[[Array, Array], Entries]]
CASES: dict[str, Case] = {
    "csa": (lambda: stream.csa(BIAS[4]), lambda kv, s: csa.compress(kv, s, bias=BIAS[4])),
    "hca": (lambda: stream.hca(BIAS[8], stride=8), lambda kv, s: hca.compress(kv, s, bias=BIAS[8], stride=8)),
    "pair": (stream.pair, pair.compress),
    "gate": (lambda: stream.chunk_gate(**GATE), lambda kv, s: chunk_gate.compress(kv, s, **GATE)),
    "wide": (lambda: stream.chunk_gate(**WIDE), lambda kv, s: chunk_gate.compress(kv, s, **WIDE)),
    "mean": (lambda: stream.mean(3, 7), lambda kv, s: mean.compress(kv, stride=3, window=7)),
}


@pytest.mark.parametrize("name", CASES)
@given(cuts=st.lists(st.integers(0, 11), max_size=12), narrow=st.booleans(), seed=st.integers(0, 999))
def test_any_cuts_give_the_same_entries(name: str, cuts: list[int], narrow: bool, seed: int) -> None:
    opened, whole = CASES[name]
    dtype = np.float32 if narrow else np.float64
    tokens = sum(cuts)
    kv, scores = normal(seed, 2, tokens, 6, dtype=dtype), normal(seed + 1, 2, tokens, 6, dtype=dtype)
    running, at, parts = opened(), 0, []
    for cut in cuts:
        part = slice(at, at + cut)
        parts.append(running.feed(kv[:, part], None if name == "mean" else scores[:, part]))
        at += cut
        assert running.tokens == at
        assert all((entries.last < at).all() for entries in parts)
    wanted = whole(kv, scores)
    if not parts:
        return
    np.testing.assert_array_equal(
        np.concatenate([entries.values for entries in parts], axis=-2), wanted.values
    )
    for place in ("first", "last", "anchor", "ready"):
        got = np.concatenate([getattr(entries, place) for entries in parts])
        np.testing.assert_array_equal(got, getattr(wanted, place))


def test_a_stream_holds_no_more_than_it_needs() -> None:
    running = stream.csa()
    for _ in range(50):
        running.feed(np.ones((7, 4)), np.ones((7, 4)))
    assert running._kept is not None
    assert running._kept[0].shape[0] < 8
    assert running._kept[0].base is None


@pytest.mark.parametrize(
    ("kv", "scores", "says"),
    [
        (np.full((3, 4), np.nan), np.zeros((3, 4)), "kv holds nan"),
        (np.zeros((3, 4)), np.full((3, 4), np.nan), "scores holds nan"),
        (np.zeros((3, 6)), np.zeros((3, 6)), r"kv has shape \(3, 6\) .* give the same"),
        (np.zeros((1, 3, 4)), np.zeros((1, 3, 4)), "give the same"),
        (np.zeros((3, 4), np.float32), np.zeros((3, 4)), "give the same"),
        (np.zeros((3, 4)), np.zeros((2, 4)), "scores has shape"),
        (np.zeros((3, 4)), None, "scores are missing"),
    ],
)
def test_a_refused_call_changes_nothing(kv: Any, scores: Any, says: str) -> None:
    running, tokens = stream.csa(), (normal(0, 8, 4), normal(1, 8, 4))
    running.feed(*(array[:3] for array in tokens))
    with pytest.raises(KernelError, match=says):
        running.feed(kv, scores)
    assert running.tokens == 3
    rest = running.feed(*(array[3:] for array in tokens))
    np.testing.assert_array_equal(rest.values, csa.compress(*tokens).values)
