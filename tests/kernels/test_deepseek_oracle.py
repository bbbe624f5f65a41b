"""Outside oracle: the compressors of transformers' ``deepseek_v4`` with random weights."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import DeepseekV4Config
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as theirs

from phaseguard.kernels import Entries, csa, hca
from phaseguard.kernels.finish import rms_norm, rotate_pairs
from tests.kernels.helpers import Array, close, normal

HIDDEN, LATENT = 48, 16
LENGTHS = (300, 257, 7, 3)
KINDS = {"csa": (theirs.DeepseekV4CSACompressor, csa), "hca": (theirs.DeepseekV4HCACompressor, hca)}


def _compressor(kind: str) -> Any:
    """Theirs, every parameter random: the position bias initializes to zero and would hide mistakes."""
    config = DeepseekV4Config(
        hidden_size=HIDDEN,
        head_dim=32,
        q_lora_rank=LATENT,
        index_n_heads=2,
        index_head_dim=16,
        index_topk=1000,
        partial_rotary_factor=0.5,
    )
    module = KINDS[kind][0](config).float().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            scale = 1.0 if "bias" in name or "norm" in name else HIDDEN**-0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
    return module


def _theirs(module: Any, hidden: Array) -> tuple[Array, Array]:
    """Their entries ``[B, W, d]`` and the mask ``[B, S, W]`` of what each query sees."""
    batch, tokens, _ = hidden.shape
    latent = torch.from_numpy(normal(5, batch, tokens, LATENT, dtype=np.float32))
    positions = torch.arange(tokens).expand(batch, -1)
    with torch.no_grad():
        entries, bias = module(torch.from_numpy(hidden), latent, positions, None, 0)
    seen = np.zeros((batch, tokens, 0), bool) if bias is None else (bias[:, 0] == 0).numpy()
    return entries[:, 0].numpy(), seen


def _ours(kind: str, module: Any, hidden: Array) -> tuple[Entries, Array]:
    """Our entries before, and their values after norm and rotary embedding."""
    weight = {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}
    kv, scores = hidden @ weight["kv_proj.weight"].T, hidden @ weight["gate_proj.weight"].T
    entries = KINDS[kind][1].compress(kv, scores, bias=weight["position_bias"])
    normed = rms_norm(entries.values, weight["kv_norm.weight"])
    frequencies = module.rotary_emb.compress_inv_freq.numpy()
    return entries, rotate_pairs(normed, entries.anchor, frequencies)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [3, 4, 127, 128, 300])
def test_entries_and_visibility_are_theirs(kind: str, tokens: int) -> None:
    module, hidden = _compressor(kind), normal(1, 2, tokens, HIDDEN, dtype=np.float32)
    wanted, seen = _theirs(module, hidden)
    entries, finished = _ours(kind, module, hidden)
    close(finished, wanted, 1e-5)
    if seen.shape[-1]:
        np.testing.assert_array_equal(np.broadcast_to(entries.visible(range(tokens)), seen.shape), seen)


@pytest.mark.parametrize("kind", KINDS)
def test_pooling_alone_is_theirs(kind: str) -> None:
    module, hidden = _compressor(kind), normal(2, 2, 300, HIDDEN, dtype=np.float32)
    module.kv_norm = torch.nn.Identity()
    module.rotary_emb.compress_inv_freq.zero_()
    frequencies = module.rotary_emb.compress_inv_freq
    assert not frequencies.any()
    kept = {name: p.detach().numpy() for name, p in module.named_parameters()}
    kv, scores = (hidden @ kept[f"{name}_proj.weight"].T for name in ("kv", "gate"))
    close(
        KINDS[kind][1].compress(kv, scores, bias=kept["position_bias"]).values,
        _theirs(module, hidden)[0],
        1e-5,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_padding_on_the_right_changes_no_entry(kind: str) -> None:
    module, hidden = _compressor(kind), normal(3, len(LENGTHS), max(LENGTHS), HIDDEN, dtype=np.float32)
    wanted, _ = _theirs(module, hidden)
    for row, length in enumerate(LENGTHS):
        entries, finished = _ours(kind, module, hidden[row, :length])
        close(finished, wanted[row, : entries.values.shape[0]], 1e-5)


def test_the_oracle_sees_a_missing_bias() -> None:
    module, hidden = _compressor("csa"), normal(4, 1, 16, HIDDEN, dtype=np.float32)
    wanted, _ = _theirs(module, hidden)
    with torch.no_grad():
        module.position_bias.zero_()
    with pytest.raises(AssertionError):
        close(_ours("csa", module, hidden)[1], wanted, 1e-5)
