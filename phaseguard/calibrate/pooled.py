"""A real causal LM whose KV cache is pooled behind a raw window (extras ``transformers`` and ``torch``).

Old chunks of ``stride`` tokens are replaced by one entry each, pooled by :mod:`phaseguard.kernels`. As in
DeepSeek-V4, keys are pooled before rotation and then rotated at the chunk's first position: rotated keys of
neighbours point in different directions, and their mean would lose what fast channels hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

from phaseguard.errors import KernelError, MissingExtraError

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import scaled_dot_product_attention
    from transformers import AttentionInterface, AttentionMaskInterface
except ImportError as error:
    raise MissingExtraError(
        "Pooling a model's cache needs transformers and torch: pip install 'phaseguard[transformers,torch]'."
    ) from error

from phaseguard.kernels.torch_backend import chunk_gate, visible

Gate = Literal["mean", "norm"]
_NAME = "phaseguard_pooled"
_bound: WeakKeyDictionary[Any, _Bound] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Pooling:
    """How a cache is pooled.

    Attributes:
        stride: tokens of an entry. A chunk is replaced when all its tokens are behind the window, so every
            token is read once: raw, or in an entry.
        window: last tokens that are always read raw, the query's own included.
        gate: ``mean``; or ``norm``, untrained: a token's score is its key's norm, negative, since keys of
            small norm draw most attention (Devoto et al., arXiv:2406.11430).
        layers: numbers of the layers whose cache is pooled; None for all.
        weighted: whether an entry counts as all its tokens in the softmax, which an untrained model needs.

    Raises:
        KernelError: for numbers below 1, or an unknown gate.

    >>> Pooling(gate="norm").stride
    4
    """

    stride: int = 4
    window: int = 128
    gate: Gate = "mean"
    layers: tuple[int, ...] | None = None
    weighted: bool = True

    def __post_init__(self) -> None:
        if self.stride < 1 or self.window < 1:
            raise KernelError(f"stride={self.stride}, window={self.window}: give 1 or more.")
        if self.gate not in ("mean", "norm"):
            raise KernelError(f"Unknown gate {self.gate!r}: give 'mean' or 'norm'.")


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The pooling of one layer, and the angles in radians by which a key turns from token to token."""

    pooling: Pooling
    angles: Tensor


@contextmanager
def pooled_cache(model: Any, pooling: Pooling) -> Iterator[Any]:
    """Inside, the model reads a pooled cache; afterwards it is as before.

    Batches have to be without padding. The cache still holds every token, so it can be cut and continued; one
    that was filled outside, or with another pooling, holds what the layers made of other contexts.

    Args:
        model: a causal LM with one rotary embedding over all channels of a head, such as Llama or SmolLM2.
        pooling: how.

    Raises:
        KernelError: for a model that rotates keys in another way, or layers that it does not have.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2)).eval()
    >>> ids = torch.arange(8)[None]
    >>> with torch.no_grad(), pooled_cache(model, Pooling(window=8)):
    ...     raw = model(ids).logits
    >>> torch.allclose(raw, model(ids).logits, atol=1e-5)
    True
    """
    layers = _attentions(model)
    chosen = range(len(layers)) if pooling.layers is None else pooling.layers
    if not all(0 <= number < len(layers) for number in chosen):
        raise KernelError(f"layers={pooling.layers}: the model has layers 0 to {len(layers) - 1}.")
    angles = _angles(model, layers[0].head_dim)
    before = model.config._attn_implementation
    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, _no_padding)
    for number, layer in enumerate(layers):
        _bound[layer] = _Bound(pooling if number in chosen else Pooling(1, pooling.window), angles)
    try:
        model.set_attn_implementation(_NAME)
        yield model
    finally:
        model.set_attn_implementation(before)
        for layer in layers:
            del _bound[layer]


def _attentions(model: Any) -> list[Any]:
    layers = getattr(model.base_model, "layers", ())
    found = [getattr(layer, "self_attn", None) for layer in layers]
    if not found or any(not hasattr(layer, "head_dim") for layer in found):
        raise KernelError(
            f"{type(model).__name__} has no layers with self_attn, as Llama has: give such one."
        )
    if any(layer in _bound for layer in found):
        raise KernelError("The model's cache is pooled already: leave the other pooled_cache first.")
    return found


def _angles(model: Any, width: int) -> Tensor:
    rotary = getattr(model.base_model, "rotary_emb", None)
    angles = getattr(rotary, "inv_freq", None)
    kind = getattr(rotary, "rope_type", None)
    if (
        not isinstance(angles, Tensor)
        or 2 * len(angles) != width
        or kind not in ("default", "linear", "llama3")
    ):
        raise KernelError(
            f"{type(model).__name__} does not rotate all channels of a head by fixed angles (rope_type "
            f"{kind!r}): give a model such as Llama."
        )
    return angles


def _no_padding(*_: Any, attention_mask: Tensor | None = None, **__: Any) -> None:
    """The mask that transformers asks for: none, since :func:`_attend` makes its own."""
    if attention_mask is not None and not bool(attention_mask.all()):
        raise KernelError("A pooled cache takes batches without padding: ask prompts of one length together.")


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of the last Q of T tokens: query ``[B, H, Q, d]``, key and value ``[B, G, T, d]``."""
    if attention_mask is not None:
        raise KernelError("A pooled cache makes its own mask: leave out attention_mask.")
    bound = _bound[module]
    tokens, asked = key.shape[-2], query.shape[-2]
    if bound.pooling.stride == 1 or tokens <= bound.pooling.window:
        at = torch.arange(tokens, device=key.device)
        read = _Read(key, value, at <= at[tokens - asked :, None])
    else:
        read = _pooled(key, value, asked, bound)
    out = scaled_dot_product_attention(
        query, read.key, read.value, attn_mask=read.mask, scale=scaling, enable_gqa=True
    )
    return out.transpose(1, 2).contiguous(), None


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Keys and values that queries read, ``[B, G, N, d]``, and what is added to their scores, ``[Q, N]``."""

    key: Tensor
    value: Tensor
    mask: Tensor


def _pooled(key: Tensor, value: Tensor, asked: int, bound: _Bound) -> _Read:
    """Entries of all complete chunks, then the raw tokens that at least one of the last ``asked`` reads."""
    pooling, tokens = bound.pooling, key.shape[-2]
    stride = pooling.stride
    rotated = _turned_back(key, bound.angles, stride)
    norm = key.norm(dim=-1, keepdim=True)
    gates = -norm if pooling.gate == "norm" else torch.zeros_like(norm)
    entries = chunk_gate(rotated, gates, stride=stride)
    count = entries.shape[-2]
    at = torch.arange(tokens - asked, tokens, device=key.device)
    seen = visible(at - pooling.window, count, stride)
    replaced = seen.sum(-1, keepdim=True) * stride
    first = int(replaced[0])
    raw = torch.arange(first, tokens, device=key.device)
    mask = torch.full((asked, count + len(raw)), -math.inf, dtype=key.dtype, device=key.device)
    mask[:, :count][seen] = math.log(stride) if pooling.weighted else 0.0
    mask[:, count:][(raw >= replaced) & (raw <= at[:, None])] = 0.0
    return _Read(
        torch.cat([entries, key[..., first:, :]], dim=-2),
        torch.cat([chunk_gate(value, gates, stride=stride), value[..., first:, :]], dim=-2),
        mask,
    )


def _turned_back(key: Tensor, angles: Tensor, stride: int) -> Tensor:
    """Keys as they would be at the first position of their chunk: pooling them is pooling before rotation."""
    slots = torch.arange(key.shape[-2], device=key.device) % stride
    turn = slots[:, None] * angles.to(key.device)
    cos, sin = turn.cos().to(key.dtype), turn.sin().to(key.dtype)
    low, high = key.chunk(2, dim=-1)
    return torch.cat([low * cos + high * sin, high * cos - low * sin], dim=-1)
