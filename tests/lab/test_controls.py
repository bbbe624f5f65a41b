"""Schemes put on the full-attention model: what is read, by definition, and that thinning costs answers."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.kernels import naive
from phaseguard.lab.controls import CONTROLS, OBSERVED, ControlledModel, Prefill
from phaseguard.lab.measure import collect
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task, draw
from phaseguard.stats import clustered, scan_periods

FULL = load_model("full-s0")


def controlled(name: str, budget: float = 0.5) -> ControlledModel:
    return ControlledModel(FULL.spec, FULL.weights, CONTROLS[name], budget=budget)


def prefill(budget: float = 0.5, seed: int = 0, tokens: int = 60) -> Prefill:
    """Two sequences of 4 questions of one token each (with its answer), behind contexts of unequal length."""
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(2, 3, tokens, 4)), rng.normal(size=(2, tokens, 4))
    positions = np.array([[50, 52, 54, 56], [51, 53, 55, 57]])
    return Prefill(queries, keys, rng.normal(size=keys.shape), positions, 1, 5, budget)


def slow_attention(view: Prefill, row: int, end: int) -> np.ndarray:
    """Attention of the last tokens before ``end``, averaged over heads, in loops."""
    out = np.zeros((OBSERVED, end))
    for head in range(view.queries.shape[1]):
        for o in range(OBSERVED):
            query = end - OBSERVED + o
            logits = view.keys[row, : query + 1] @ view.queries[row, head, query] / 2  # four channels
            weights = np.exp(logits - logits.max())
            out[o, : query + 1] += weights / weights.sum() / view.queries.shape[1]
    return out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["chunkkv", "chunkkv-blind", "snapkv", "snapkv-blind"])
def test_kept_tokens_are_the_oracles(name: str, seed: int) -> None:
    view = prefill(seed=seed)
    seen = CONTROLS[name].apply(view).visible
    assert seen.shape == (2, 1, 4, 60)
    for row, number in np.ndindex(2, 4):
        asked = view.positions[row, number]
        end = int(view.positions[row, 0] if name.endswith("blind") else asked + 1)
        attention, budget = slow_attention(view, row, end), round(end / 2)
        if name.startswith("chunkkv"):
            kept = naive.chunkkv(attention, 10, budget)
        else:
            kept = naive.snapkv(attention, budget, 5)
        wanted = [*kept, *range(end, asked + 1)]
        assert np.flatnonzero(seen[row, 0, number]).tolist() == wanted


def test_block_sparse_reads_the_oracles_pairs() -> None:
    view = prefill(budget=0.5)
    seen = CONTROLS["block-sparse"].apply(view).visible
    for row, head in np.ndindex(2, 3):
        pairs = naive.block_sparse(view.queries[row, head], view.keys[row], 16, 2)
        for number, asked in enumerate(view.positions[row]):
            wanted = sorted(token for query, token in pairs if query == asked)
            assert np.flatnonzero(seen[row, head, number]).tolist() == wanted


def test_dynamic_reads_means_of_closed_chunks_and_the_raw_window() -> None:
    view = prefill()
    cache = CONTROLS["dynamic"].apply(view)
    tokens = view.keys.shape[1]
    seen = cache.visible[0, 0, 0]
    assert np.flatnonzero(seen[:tokens]).tolist() == [46, 47, 48, 49, 50]
    closed = int(seen[tokens:].sum())
    assert closed > 5
    np.testing.assert_allclose(cache.values[0, tokens], view.values[0, : _second_start(cache, view)].mean(0))


def _second_start(cache: object, view: Prefill) -> int:
    """Tokens of the first chunk, found by its mean."""
    means = np.cumsum(view.keys[0], 0) / np.arange(1, 61)[:, None]
    return int(np.abs(means - cache.keys[0, 60]).sum(1).argmin()) + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CONTROLS)
def test_no_asked_position_sees_what_comes_after_it(name: str) -> None:
    model = controlled(name)
    drawn = draw(Task("ask", 64), 2, np.random.default_rng(0))
    early = drawn.positions[:, :3]
    plain = model.logits(drawn.tokens[:, : int(early.max()) + 1], early)
    if name in {"chunkkv", "chunkkv-blind", "snapkv", "snapkv-blind"}:
        np.testing.assert_allclose(model.logits(drawn.tokens, early), plain, rtol=1e-4, atol=1e-4)
    visible = CONTROLS[name].apply(prefill()).visible[..., :60]
    assert not (visible & (prefill().distance < 0)[:, None]).any()


@pytest.mark.parametrize("name", sorted(CONTROLS.keys() - {"dynamic", "a-shape"}))
def test_a_whole_budget_is_full_attention(name: str) -> None:
    drawn = draw(Task("ask"), 4, np.random.default_rng(0))
    found = controlled(name, 1.0).logits(drawn.tokens, drawn.positions)
    np.testing.assert_allclose(found, FULL.logits(drawn.tokens, drawn.positions), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CONTROLS)
def test_half_a_budget_reads_about_half(name: str) -> None:
    drawn = draw(Task("ask", 384), 4, np.random.default_rng(0))
    assert 0.4 < controlled(name).read_share(drawn.tokens, drawn.positions) < 0.6


def test_thinning_without_the_question_costs_answers_but_not_by_phase() -> None:
    task = Task("ask")
    for name in ("chunkkv-blind", "snapkv-blind", "dynamic"):
        answers = collect(controlled(name), task, questions=2000, spread=16)
        assert clustered(answers.right, answers.clusters).high < 0.75, name
        assert scan_periods(answers.right, answers.positions, answers.clusters).period is None, name
    seen = collect(controlled("snapkv"), task, questions=500, spread=16)
    assert clustered(seen.right, seen.clusters).low > 0.98, (
        "a window that has seen the question keeps its answer"
    )


def test_bad_input_is_refused() -> None:
    csa = load_model("csa4-s0")
    with pytest.raises(InputError, match="give a full-attention model"):
        ControlledModel(csa.spec, csa.weights, CONTROLS["snapkv"])
    for budget in (0.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="share of tokens"):
            controlled("snapkv", budget)
