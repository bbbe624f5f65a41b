"""The on-device model in torch, for training; :mod:`phaseguard.lab.model` computes the same in numpy."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from phaseguard.kernels.torch_backend import chunk_gate
from phaseguard.lab.model import EPSILON, ROTATED, THETA
from phaseguard.lab.spec import Spec
from phaseguard.lab.tasks import VOCABULARY

HIDDEN = 2  # MLP width in multiples of the model's
_ROW = 16  # queries that are computed together in the first block


class Norm(nn.Module):
    """RMSNorm with a learned scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Scale to unit root mean square."""
        out: Tensor = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * self.scale
        return out


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary embedding of the first channels of ``x`` ``[..., c]`` at ``positions`` ``[...]``."""
    half = ROTATED // 2
    angles = positions[..., None] * THETA ** (-torch.arange(half, dtype=torch.float32) / half)
    cos, sin = angles.cos(), angles.sin()
    a, b, rest = x[..., :half], x[..., half:ROTATED], x[..., ROTATED:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


class Block(nn.Module):
    """Attention over one shared key-value latent with a learned sink a head, then a gated MLP."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        heads = spec.heads * spec.head_width
        self.norm = Norm(spec.width)
        self.q = nn.Linear(spec.width, heads, bias=False)
        self.kv = nn.Linear(spec.width, spec.head_width, bias=False)
        self.q_norm, self.kv_norm = Norm(spec.head_width), Norm(spec.head_width)
        self.out = nn.Linear(heads, spec.width, bias=False)
        self.sink = nn.Parameter(torch.zeros(spec.heads))
        self.mlp_norm = Norm(spec.width)
        self.up = nn.Linear(spec.width, 2 * HIDDEN * spec.width, bias=False)
        self.down = nn.Linear(HIDDEN * spec.width, spec.width, bias=False)

    def mlp(self, x: Tensor) -> Tensor:
        """The gated MLP with its residual."""
        gate, value = self.up(self.mlp_norm(x)).chunk(2, -1)
        out: Tensor = x + self.down(functional.silu(gate) * value)
        return out


class Network(nn.Module):
    """Two blocks: a raw sliding window; then the window and compressed entries in one joint softmax."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.embed = nn.Embedding(VOCABULARY, spec.width)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.first, self.second = Block(spec), Block(spec)
        if not spec.full:
            self.pool_kv = nn.Linear(spec.width, spec.blocks * spec.head_width, bias=False)
            self.pool_norm = Norm(spec.head_width)
        if not spec.full and spec.gate != "uniform":
            gates = spec.blocks * (spec.head_width if spec.gate == "channel" else 1)
            self.pool_gate = nn.Linear(spec.width, gates, bias=False)
        if not spec.full and spec.bias:
            channels = spec.head_width if spec.gate == "channel" else 1
            self.pool_bias = nn.Parameter(torch.zeros(spec.window, channels))
        self.final = Norm(spec.width)
        self.head = nn.Linear(spec.width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Logits ``[B, A, V]`` after the tokens at ``positions`` ``[B, A]`` of ``tokens`` ``[B, T]``.

        The second block is computed at these positions alone; nothing else depends on it.
        """
        x = self.embed(tokens)
        x = self.first.mlp(x + self._window_everywhere(self.first.norm(x)))
        hidden = self.second.norm(x)
        index = positions[..., None].expand(-1, -1, x.shape[-1])
        asked = torch.gather(x, 1, index) + self._read(hidden, torch.gather(hidden, 1, index), positions)
        logits: Tensor = self.head(self.final(self.second.mlp(asked)))
        return logits

    def _window_everywhere(self, hidden: Tensor) -> Tensor:
        """The first block's attention: rows of queries, each against its own tokens and the window before."""
        block, spec = self.first, self.spec
        batch, length = hidden.shape[:2]
        at = torch.arange(length, dtype=torch.float32)
        queries = rotate(block.q_norm(self._heads(block.q(hidden))), at[None, :, None])
        queries = functional.pad(queries, (0, 0, 0, 0, 0, -length % _ROW))
        queries = queries.reshape(batch, -1, _ROW * spec.heads, spec.head_width)
        latent = block.kv_norm(block.kv(hidden))
        keys, values = (_rows(part, spec.raw) for part in (rotate(latent, at[None]), latent))
        scores = (queries @ keys.transpose(-1, -2)) * spec.head_width**-0.5
        scores = scores.reshape(batch, -1, _ROW, spec.heads, keys.shape[2])
        scores = scores.masked_fill(_hidden(length, spec.raw)[:, :, None], float("-inf"))
        weights = _with_sink(scores, block.sink[:, None])
        read = weights.reshape(batch, -1, _ROW * spec.heads, keys.shape[2]) @ values
        out: Tensor = block.out(read.reshape(batch, -1, spec.heads * spec.head_width)[:, :length])
        return out

    def _read(self, hidden: Tensor, asked: Tensor, positions: Tensor) -> Tensor:
        block, spec = self.second, self.spec
        latent = block.kv_norm(block.kv(hidden))
        queries = block.q_norm(self._heads(block.q(asked)))
        at = torch.arange(hidden.shape[1])
        keys = latent
        if spec.rope:
            queries = rotate(queries, positions[..., None].float())
            keys = rotate(latent, at[None].float())
        distance = positions[..., None] - at
        visible = (distance >= 0) if spec.full else (distance >= 0) & (distance < spec.raw)
        scores = torch.einsum("bahc,btc->bhat", queries, keys) * spec.head_width**-0.5
        scores = scores.masked_fill(~visible[:, None], float("-inf"))
        values = latent
        if not spec.full:
            entries = self._entries(hidden)
            complete = torch.arange(entries.shape[1]) < (positions[..., None] + 1) // spec.stride
            more = torch.einsum("bahc,bec->bhae", queries, entries) * spec.head_width**-0.5
            scores = torch.cat([scores, more.masked_fill(~complete[:, None], float("-inf"))], -1)
            values = torch.cat([latent, entries], 1)
        weights = _with_sink(scores, block.sink[:, None, None])
        out: Tensor = block.out(torch.einsum("bhat,btc->bahc", weights, values).flatten(-2))
        return out

    def _entries(self, hidden: Tensor) -> Tensor:
        spec = self.spec
        kv = self.pool_kv(hidden)
        uniform = spec.gate == "uniform"
        gates = torch.zeros(*kv.shape[:-1], spec.blocks) if uniform else self.pool_gate(hidden)
        bias = self.pool_bias if spec.bias else None
        pooled = chunk_gate(kv, gates, stride=spec.stride, window=spec.window, split=spec.split, bias=bias)
        out: Tensor = self.pool_norm(pooled)
        return out

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], self.spec.heads, self.spec.head_width)


def _rows(x: Tensor, raw: int) -> Tensor:
    """``[B, T, c]`` to ``[B, n, raw + 16, c]``: 16 tokens and the ``raw`` before them, or zeros."""
    padded = functional.pad(x, (0, 0, raw, -x.shape[1] % _ROW))
    return padded.unfold(1, raw + _ROW, _ROW).transpose(-1, -2)


def _hidden(length: int, raw: int) -> Tensor:
    """``[n, 16, raw + 16]``: which tokens of its row a query must not see, by distance or for want of any."""
    token = torch.arange(raw + _ROW) - raw
    distance = torch.arange(_ROW)[:, None] - token
    before = torch.arange(-(-length // _ROW))[:, None, None] * _ROW + token < 0
    return (distance < 0) | (distance >= raw) | before


def _with_sink(scores: Tensor, sink: Tensor) -> Tensor:
    """Softmax over the scores' last axis and a sink, which takes weight and gives nothing."""
    sinks = sink.expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, sinks], -1), -1)[..., :-1]
