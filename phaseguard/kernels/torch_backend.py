"""The pooled schemes in torch, differentiable, for training. Shapes and meaning are those of the numpy files.

Every function returns the entries' values ``[..., W, d]`` as a tensor in the dtype of kv, from position 0 on.
The softmax runs in float32, or in float64 if kv or scores have it. NaN is not looked for: a training loop
checks its loss.
"""

from __future__ import annotations

from phaseguard.errors import KernelError, MissingExtraError

try:
    import torch
    from torch import Tensor
    from torch.nn import functional
except ImportError as error:
    raise MissingExtraError("torch is not installed: pip install 'phaseguard[torch]'.") from error

from phaseguard.kernels.check import check_at_least, check_shape
from phaseguard.kernels.grid import Grid


def chunk_gate(
    kv: Tensor,
    scores: Tensor,
    *,
    stride: int = 4,
    window: int | None = None,
    split: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """The general chunk gate; see :func:`phaseguard.kernels.chunk_gate.compress`.

    >>> kv = torch.arange(8.0)[:, None]
    >>> chunk_gate(kv, torch.zeros(8, 1)).ravel().tolist()
    [1.5, 5.5]
    """
    grid = Grid(stride, stride if window is None else window, split)
    _check_floats(kv=kv, scores=scores, bias=bias)
    width = grid.width(tuple(kv.shape), tuple(scores.shape))
    gates = _slots(_wide(kv, scores, scores), grid, float("-inf"))
    if bias is not None:
        grid.check_bias(tuple(bias.shape), width)
        gates = gates + bias.to(gates.dtype)
    floor = torch.finfo(gates.dtype).min
    gates = gates.clamp_min(floor)  # with -inf, a softmax over nothing has NaN as value and as gradient
    empty = gates.detach().amax(dim=-2) <= floor
    pooled = (gates.softmax(dim=-2) * _slots(_wide(kv, scores, kv), grid, 0.0)).sum(dim=-2)
    return pooled.masked_fill(empty, 0.0).to(kv.dtype)


def csa(kv: Tensor, scores: Tensor, bias: Tensor | None = None, *, stride: int = 4) -> Tensor:
    """DeepSeek-V4 CSA on ``[..., T, 2d]``, bias ``[4, 2d]``; see :func:`phaseguard.kernels.csa.compress`.

    >>> csa(torch.ones(8, 2), torch.zeros(8, 2)).shape
    torch.Size([2, 1])
    """
    stride = check_at_least("stride", stride, 2)
    if bias is not None:
        check_shape("bias", tuple(bias.shape), (stride, kv.shape[-1]))
        bias = torch.cat(bias.chunk(2, dim=-1))
    return chunk_gate(kv, scores, stride=stride, window=2 * stride, split=True, bias=bias)


def hca(kv: Tensor, scores: Tensor, bias: Tensor | None = None, *, stride: int = 128) -> Tensor:
    """DeepSeek-V4 HCA on ``[..., T, d]``, bias ``[stride, d]``; see :func:`phaseguard.kernels.hca.compress`.

    >>> hca(torch.ones(300, 2), torch.zeros(300, 2)).shape
    torch.Size([2, 2])
    """
    return chunk_gate(kv, scores, stride=stride, bias=bias)


def pair(kv: Tensor, scores: Tensor) -> Tensor:
    """DeepSeek-V4.1 pair pooling on ``[..., T, d]``; see :func:`phaseguard.kernels.pair.compress`.

    >>> pair(torch.arange(5.0)[:, None], torch.zeros(5, 1)).ravel().tolist()
    [0.5, 2.5]
    """
    return chunk_gate(kv, scores, stride=2)


def mean(kv: Tensor, *, stride: int = 4, window: int | None = None, split: bool = False) -> Tensor:
    """Uniform mean on ``[..., T, d]``; see :func:`phaseguard.kernels.mean.compress`.

    >>> mean(torch.arange(8.0)[:, None], stride=2, window=4).ravel().tolist()
    [0.5, 1.5, 3.5, 5.5]
    """
    grid = Grid(stride, stride if window is None else window, split)
    flat = kv.new_zeros((*kv.shape[:-1], grid.blocks))
    return chunk_gate(kv, flat, stride=stride, window=window, split=split)


def visible(query_positions: Tensor, entries: int, stride: int) -> Tensor:
    """Which of the first ``entries`` entries the queries ``[..., Q]`` see: ``[..., Q, W]``, ``w < (t+1)//m``.

    >>> visible(torch.tensor([2, 3]), 1, 4).tolist()
    [[False], [True]]
    """
    stride = check_at_least("stride", stride, 2)
    ready = torch.div(query_positions + 1, stride, rounding_mode="floor")
    return torch.arange(entries, device=query_positions.device) < ready[..., None]


def _check_floats(**tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and (not tensor.is_floating_point() or tensor.ndim < 2):
            raise KernelError(
                f"{name} has dtype {tensor.dtype} and shape {tuple(tensor.shape)}: "
                "give a tensor of a floating dtype with at least two dimensions."
            )


def _wide(kv: Tensor, scores: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in the dtype that the pooling runs in."""
    return tensor.to(torch.float64 if torch.float64 in (kv.dtype, scores.dtype) else torch.float32)


def _slots(tensor: Tensor, grid: Grid, missing: float) -> Tensor:
    """``[..., T, blocks * c]`` as ``[..., W, window, c]``; tokens in front of the context are ``missing``."""
    count = tensor.shape[-2] // grid.stride
    channels = tensor.shape[-1] // grid.blocks
    whole = tensor[..., : count * grid.stride, :]
    chunks = whole.reshape(*tensor.shape[:-2], count, grid.stride, tensor.shape[-1])
    parts = []
    for segment in grid.segments():
        block = slice(segment.block * channels, (segment.block + 1) * channels)
        part = chunks[..., segment.offset :, block]
        if segment.behind:
            lead = (0, 0, 0, 0, segment.behind, 0)
            part = functional.pad(part, lead, value=missing)[..., :count, :, :]
        parts.append(part)
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
