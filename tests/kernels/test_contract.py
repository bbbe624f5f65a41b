"""One contract for every scheme, by name."""

from typing import Any

import numpy as np
import pytest

from phaseguard.errors import KernelError
from phaseguard.kernels import NEVER, SCHEMES, Entries, Scheme, find_scheme
from tests.kernels.helpers import Array, normal

SMALL = {
    "hca": {"stride": 8},
    "chunkkv": {"chunk": 4, "budget": 12},
    "snapkv": {"budget": 12},
    "a-shape": {"first": 2, "local": 3},
    "vertical-slash": {"vertical": 3, "slash": 2, "first": 1, "near": 1},
    "block-sparse": {"block": 4, "blocks": 2},
}
LENGTHS = [0, 1, 2, 3, 7, 8, 13, 31]
BATCHES: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3), (0,)]

GRIDS = [scheme for scheme in SCHEMES.values() if scheme.grid]
POOLS = [scheme for scheme in SCHEMES.values() if scheme.pools]
every = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def inputs(
    scheme: Scheme, batch: tuple[int, ...], tokens: int, dtype: Any = np.float64
) -> tuple[Array, Array | None]:
    """kv and scores as the scheme wants them, four channels."""
    kv = normal(1, *batch, tokens, 4 * scheme.blocks, dtype=dtype)
    shapes = {
        "gates": kv.shape,
        "attention": (*batch, min(tokens, 3), tokens),
        "queries": kv.shape,
        "keys": (*batch, tokens, 2),
    }
    if scheme.scores == "none":
        return kv, None
    scores = normal(2, *shapes[scheme.scores], dtype=dtype)
    return kv, np.abs(scores) if scheme.scores == "attention" else scores


def run(scheme: Scheme, kv: Array, scores: Array | None, positions: Any = None, **extra: Any) -> Entries:
    return scheme.compress(kv, scores, positions, **SMALL.get(scheme.name, {}), **extra)


def equal(left: Entries, right: Entries) -> None:
    for name in ("values", "first", "last", "anchor", "ready"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@every
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_shapes_dtype_and_order(scheme: Scheme, batch: tuple[int, ...], dtype: Any) -> None:
    for tokens in LENGTHS:
        _check_entries(scheme, tokens, batch, dtype)


def _check_entries(scheme: Scheme, tokens: int, batch: tuple[int, ...], dtype: Any) -> None:
    kv, scores = inputs(scheme, batch, tokens, dtype)
    before = kv.copy(), None if scores is None else scores.copy()
    entries = run(scheme, kv, scores)
    count = entries.values.shape[-2]
    assert entries.values.shape == (*batch, count, 4)
    assert entries.values.dtype == dtype
    assert np.isfinite(entries.values).all()
    for places in (entries.first, entries.last, entries.anchor, entries.ready):
        assert places.dtype == np.int64
        assert places.shape in {(count,), (*batch, count)}
    first, last, ready = (x[entries.real] for x in (entries.first, entries.last, entries.ready))
    assert (first >= 0).all()
    assert (first <= last).all()
    assert (last < max(1, tokens)).all()
    assert (last <= ready).all()
    np.testing.assert_array_equal(kv, before[0])
    if scores is not None:
        np.testing.assert_array_equal(scores, before[1])


@every
@pytest.mark.parametrize("tokens", LENGTHS)
def test_no_query_sees_the_future(scheme: Scheme, tokens: int) -> None:
    entries = run(scheme, *inputs(scheme, (2,), tokens))
    queries = np.arange(tokens + 3)
    seen = np.broadcast_to(entries.visible(queries), (2, len(queries), entries.values.shape[-2]))
    late = np.broadcast_to(entries.last[..., None, :] > queries[:, None], seen.shape)
    assert not (seen & late).any()
    real = np.broadcast_to(entries.real, (2, entries.values.shape[-2]))
    if scheme.name != "dynamic":  # its last chunk is closed by the first token of the next
        np.testing.assert_array_equal(seen[:, -1], real)


@every
def test_rows_of_a_batch_do_not_mix(scheme: Scheme) -> None:
    kv, scores = inputs(scheme, (2, 2), 31)
    whole = run(scheme, kv, scores)
    for at in np.ndindex(2, 2):
        alone = run(scheme, kv[at], None if scores is None else scores[at])
        count = alone.values.shape[-2]
        np.testing.assert_array_equal(whole.values[at][:count], alone.values)
        assert (np.broadcast_to(whole.ready, (2, 2, whole.ready.shape[-1]))[at][count:] == NEVER).all()
        seen = np.broadcast_to(whole.visible(range(31)), (2, 2, 31, whole.values.shape[-2]))
        np.testing.assert_array_equal(seen[at][:, :count], alone.visible(range(31)))


@every
def test_layout_in_memory_does_not_matter(scheme: Scheme) -> None:
    kv, scores = inputs(scheme, (2,), 31)
    strange = np.asfortranarray(kv), None if scores is None else np.repeat(scores, 2, axis=-1)[..., ::2]
    equal(run(scheme, *strange), run(scheme, kv, scores))
    lists = kv.tolist(), None if scores is None else scores.tolist()
    equal(run(scheme, *lists), run(scheme, kv, scores))


@every
def test_positions_move_the_entries_and_nothing_else(scheme: Scheme) -> None:
    kv, scores = inputs(scheme, (2,), 31)
    here, there = run(scheme, kv, scores), run(scheme, kv, scores, np.arange(64, 95))
    np.testing.assert_array_equal(here.values, there.values)
    for name in ("first", "last", "anchor", "ready"):
        real = here.real
        np.testing.assert_array_equal(getattr(here, name)[real] + 64, getattr(there, name)[real])
    np.testing.assert_array_equal(here.visible(range(40)), there.visible(range(64, 104)))


@every
def test_float32_is_near_float64(scheme: Scheme) -> None:
    kv, scores = inputs(scheme, (2,), 31)
    narrow = run(scheme, kv.astype(np.float32), None if scores is None else scores.astype(np.float32))
    np.testing.assert_allclose(narrow.values, run(scheme, kv, scores).values, rtol=1e-5, atol=1e-5)


@every
@pytest.mark.parametrize("token", [0, 3, 30])
def test_nan_is_refused(scheme: Scheme, token: int) -> None:
    kv, scores = inputs(scheme, (2,), 31)
    broken = kv.copy()
    broken[1, token, -1] = np.nan
    with pytest.raises(KernelError, match=r"kv.*holds nan"):
        run(scheme, broken, scores)
    if scores is not None:
        scores[1, -1, min(token, scores.shape[-1] - 1)] = np.nan
        with pytest.raises(KernelError, match=r"scores.*holds nan"):
            run(scheme, kv, scores)


@every
def test_wrong_arrays_are_refused_with_what_to_give(scheme: Scheme) -> None:
    kv, scores = inputs(scheme, (2,), 31)
    with pytest.raises(KernelError, match=r"kv has shape .*give"):
        run(scheme, np.zeros(4), scores)
    with pytest.raises(KernelError, match=r"dtype int64: give"):
        run(scheme, np.zeros(kv.shape, np.int64), scores)
    if scores is not None:
        for wrong in (scores[:1], scores[..., :-1, :-1], scores[0, 0]):
            with pytest.raises(KernelError, match="give"):
                run(scheme, kv, wrong)
        with pytest.raises(KernelError, match=r"scores are missing.*(give|use)"):
            run(scheme, kv, None)


@every
@pytest.mark.parametrize("positions", [range(30), range(31, 0, -1), np.zeros(31), [[0]] * 31, range(-1, 30)])
def test_wrong_positions_are_refused(scheme: Scheme, positions: Any) -> None:
    with pytest.raises(KernelError, match="give"):
        run(scheme, *inputs(scheme, (2,), 31), positions)


@pytest.mark.parametrize("scheme", GRIDS, ids=lambda scheme: scheme.name)
def test_grids_are_checked(scheme: Scheme) -> None:
    assert scheme.grid is not None
    kv, scores = inputs(scheme, (2,), 12)
    for wrong in (1, 0, -4, 2.5, True, "4"):
        with pytest.raises(KernelError, match=rf"{scheme.grid} is .*at least 2"):
            scheme.compress(kv, scores, **{scheme.grid: wrong})
    with pytest.raises(KernelError, match="inside a chunk of 4: give the tokens from position 4 on"):
        scheme.compress(kv, scores, range(6, 18), **{scheme.grid: 4})


@pytest.mark.parametrize("scheme", POOLS, ids=lambda scheme: scheme.name)
def test_a_context_shorter_than_the_stride_has_no_entries(scheme: Scheme) -> None:
    assert scheme.period is not None
    entries = scheme.compress(*inputs(scheme, (2,), scheme.period - 1))
    assert entries.values.shape == (2, 0, 4)
    assert entries.visible(range(5)).shape == (5, 0)


@every
def test_default_settings_run(scheme: Scheme) -> None:
    assert find_scheme(scheme.name) is scheme
    assert scheme.compress(*inputs(scheme, (), 300)).values.size


def test_unknown_names_list_near_ones() -> None:
    with pytest.raises(KernelError, match=r"No scheme is called 'chunkvk'. Did you mean 'chunkkv'\?"):
        find_scheme("chunkvk")
