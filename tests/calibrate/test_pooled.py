"""A model whose cache is pooled: against the plain model, an oracle query by query, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from phaseguard.calibrate.endpoint import Question
from phaseguard.calibrate.local import LocalEndpoint
from phaseguard.calibrate.pooled import Pooling, pooled_cache
from phaseguard.calibrate.shared_prefix import Reader
from phaseguard.errors import KernelError
from phaseguard.kernels import chunk_gate
from tests.calibrate.tiny import tiny_llama

WORDS = 50
TOKENS = 39


@pytest.fixture
def model():
    return tiny_llama(vocabulary=WORDS)


def ids(rows: int = 2, tokens: int = TOKENS) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(3).integers(0, WORDS, (rows, tokens)))


@torch.no_grad()
def logits(model, tokens: torch.Tensor, pooling: Pooling | None = None) -> torch.Tensor:
    if pooling is None:
        return model(tokens).logits
    with pooled_cache(model, pooling):
        return model(tokens).logits


@pytest.mark.parametrize(
    "pooling",
    [
        Pooling(stride=1, window=8),
        Pooling(stride=1, window=1, gate="norm"),
        Pooling(stride=4, window=TOKENS),
        Pooling(stride=4, window=TOKENS, gate="norm"),
        Pooling(stride=4, window=8, layers=()),
        Pooling(stride=TOKENS + 1, window=1),
    ],
)
def test_where_nothing_is_pooled_the_model_is_as_it_is(model, pooling):
    assert torch.allclose(logits(model, ids(), pooling), logits(model, ids()), atol=1e-4)


def test_pooling_changes_what_stands_behind_the_window_and_nothing_before(model):
    plain = logits(model, ids())
    for gate in ("mean", "norm"):
        pooled = logits(model, ids(), Pooling(stride=4, window=8, gate=gate))
        first = 3 + 8  # the first query for which all of the chunk 0..3 is behind the window
        assert torch.allclose(pooled[:, :first], plain[:, :first], atol=1e-4)
        assert ((pooled - plain)[:, first:].abs().amax(-1) > 1e-3).all()


def by_hand(layer, hidden: torch.Tensor, angles: torch.Tensor, pooling: Pooling) -> np.ndarray:
    """What one layer's attention gives, query by query and head by head, ``[T, H * d]``.

    Keys are pooled before rotation by the numpy kernels, and rotated at the first position of their chunk.
    """
    d, stride = layer.head_dim, pooling.stride
    q, k, v = (
        p(hidden)[0].double().numpy().reshape(len(hidden[0]), -1, d)
        for p in (layer.q_proj, layer.k_proj, layer.v_proj)
    )

    def turned(vector: np.ndarray, position: int) -> np.ndarray:
        pairs = vector[: d // 2] + 1j * vector[d // 2 :]
        pairs = pairs * np.exp(1j * position * angles.double().numpy())
        return np.concatenate([pairs.real, pairs.imag])

    out = np.zeros((len(q), q.shape[1], d))
    for head in range(q.shape[1]):
        group = head * k.shape[1] // q.shape[1]
        keys, values = k[:, group], v[:, group]
        gates = np.zeros((len(keys), 1))
        if pooling.gate == "norm":
            gates = -np.sqrt((keys**2).sum(-1, keepdims=True))
        pooled = [chunk_gate.compress(one, gates, stride=stride) for one in (keys, values)]
        for t in range(len(q)):
            read = []  # key, value, tokens it counts as
            for chunk in range(0, t + 1, stride):
                if chunk + stride - 1 <= t - pooling.window:
                    entry = chunk // stride
                    at = int(pooled[0].anchor[entry])
                    count = stride if pooling.weighted else 1
                    read.append((turned(pooled[0].values[entry], at), pooled[1].values[entry], count))
                else:
                    read += [
                        (turned(keys[p], p), values[p], 1) for p in range(chunk, min(chunk + stride, t + 1))
                    ]
            asks = turned(q[t, head], t)
            weights = np.array([count * np.exp(asks @ key * d**-0.5) for key, _, count in read])
            out[t, head] = (weights / weights.sum()) @ np.array([value for _, value, _ in read])
    return out.reshape(len(q), -1)


@pytest.mark.parametrize("gate", ["mean", "norm"])
@pytest.mark.parametrize(("stride", "window"), [(4, 8), (3, 5), (2, 1), (8, 7)])
@pytest.mark.parametrize("weighted", [True, False])
def test_attention_is_that_of_the_kernels_query_by_query(model, gate, stride, window, weighted):
    pooling = Pooling(stride, window, gate, weighted=weighted)
    seen = {}
    for number, layer in enumerate(model.model.layers):
        layer.self_attn.register_forward_pre_hook(
            lambda module, args, given, n=number: seen.__setitem__(("in", n), given["hidden_states"]),
            with_kwargs=True,
        )
        layer.self_attn.o_proj.register_forward_pre_hook(
            lambda module, args, n=number: seen.update({("out", n): args[0]})
        )
    logits(model, ids(1), pooling)
    with torch.no_grad():
        for number, layer in enumerate(model.model.layers):
            angles = model.model.rotary_emb.inv_freq
            found = seen["out", number][0].numpy()
            wanted = by_hand(layer.self_attn, seen["in", number], angles, pooling)
            np.testing.assert_allclose(found, wanted, atol=1e-4)
            other = by_hand(
                layer.self_attn, seen["in", number], angles, replace(pooling, window=window + stride)
            )
            assert np.abs(found - other).max() > 1e-3


def test_every_earlier_token_is_read_and_no_later_one(model):
    pooling = Pooling(stride=4, window=6)
    tokens = ids(1)
    before = logits(model, tokens, pooling)[0]
    for place in range(0, TOKENS - 1, 3):
        changed = tokens.clone()
        changed[0, place] = (changed[0, place] + 1) % WORDS
        after = logits(model, changed, pooling)[0]
        assert torch.allclose(after[:place], before[:place], atol=1e-5)
        assert ((after - before)[place:].abs().amax(-1) > 1e-6).all()


def test_reading_in_parts_and_going_on_is_reading_at_once(model, monkeypatch):
    pooling = Pooling(stride=4, window=8, gate="norm")
    tokens = ids(2)
    whole = logits(model, tokens, pooling)[:, -1]
    for chunk in (5, 8, 512):
        monkeypatch.setattr("phaseguard.calibrate.shared_prefix.CHUNK", chunk)
        reader = Reader(model, pooling)
        state = reader.read(tokens[:, :-1].numpy())
        assert torch.allclose(reader.step(state, tokens[:, -1:].numpy()).logits[:, -1], whole, atol=1e-4)
        shared = reader.read(np.concatenate([tokens[:1, :30].numpy(), tokens[:1, 7:9].numpy()], axis=1))
        fresh = Reader(model, pooling).read(
            np.concatenate([tokens[:1, :30].numpy(), tokens[:1, 7:9].numpy()], axis=1)
        )
        assert reader.reused == 30
        assert torch.allclose(shared.logits, fresh.logits, atol=1e-4)


def test_model_is_afterwards_as_before(model):
    plain = logits(model, ids())
    name = model.config._attn_implementation
    with pytest.raises(RuntimeError, match="on the way"), pooled_cache(model, Pooling(window=4)):
        raise RuntimeError("on the way")
    assert model.config._attn_implementation == name
    assert torch.equal(logits(model, ids()), plain)
    with pooled_cache(model, Pooling(window=4)), pytest.raises(KernelError, match="pooled already"):
        logits(model, ids(), Pooling(window=4))
    assert torch.equal(logits(model, ids()), plain)


def test_padded_batches_and_masks_are_refused(model):
    mask = torch.ones_like(ids())
    with pooled_cache(model, Pooling(window=4)), torch.no_grad():
        model(ids(), attention_mask=mask)
        mask[0, 0] = 0
        with pytest.raises(KernelError, match="without padding"):
            model(ids(), attention_mask=mask)
        with pytest.raises(KernelError, match="leave out attention_mask"):
            model(ids(), attention_mask=torch.zeros(2, 1, TOKENS, TOKENS))


def test_endpoint_with_a_pooled_cache_is_another_with_the_same_weights():
    model = tiny_llama()
    endpoint = LocalEndpoint(model, "deepseek-v4", name="tiny")
    pooled = endpoint.pooled(Pooling(window=8))
    asked = [Question(0, "A is 417. B is 459. C is 8803. D is 12. A is", 4)]
    first, second, third = ([one.reply for one in which.ask(asked)] for which in (endpoint, pooled, endpoint))
    top, other, again = (dict(reply[0].choices[0].top) for reply in (first, second, third))
    assert again == pytest.approx(top, abs=1e-4)
    assert other != pytest.approx(top, abs=1e-4)
    assert "stride=4" in pooled.model
    assert endpoint.model == "tiny"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Pooling(stride=0), "stride=0"),
        (lambda: Pooling(window=0), "window=0"),
        (lambda: Pooling(gate="max"), "'mean' or 'norm'"),
        (lambda: logits(tiny_llama(vocabulary=WORDS), ids(), Pooling(layers=(2,))), "layers 0 to 1"),
        (
            lambda: logits(
                GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1, vocab_size=9)), ids(), Pooling()
            ),
            "as Llama has",
        ),
    ],
)
def test_bad_input_says_what_to_do(make, says):
    with pytest.raises(KernelError, match=says):
        make()


def test_model_that_rotates_in_another_way_is_refused(model):
    model.model.rotary_emb.rope_type = "dynamic"
    with pytest.raises(KernelError, match="'dynamic'"):
        logits(model, ids(), Pooling())
