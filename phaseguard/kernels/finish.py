"""What DeepSeek-V4 does to an entry after pooling: RMSNorm, then rotary embedding at the entry's anchor.

Source: ``DeepseekV4RMSNorm``, ``apply_rotary_pos_emb`` of transformers (>= 5.8).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_shape
from phaseguard.kernels.entries import Floats
from phaseguard.kernels.pool import compute_dtype


def rms_norm(values: ArrayLike, weight: ArrayLike, eps: float = 1e-6) -> Floats:
    """Scale ``[..., d]`` to a root mean square of 1, then by ``weight`` ``[d]``, in float32 or float64.

    >>> rms_norm(np.array([[3.0, 3.0]]), np.array([1.0, 2.0])).round(3).tolist()
    [[1.0, 2.0]]
    """
    array = as_floats("values", values, "[..., d]", least=1)
    scale = as_floats("weight", weight, "[d]", least=1)
    check_shape("weight", scale.shape, array.shape[-1:])
    wide = array.astype(compute_dtype(array), copy=False)
    power = np.mean(wide * wide, axis=-1, keepdims=True)
    normed: Floats = wide / np.sqrt(power + eps) * scale
    return normed.astype(array.dtype, copy=False)


def rotate_pairs(
    values: ArrayLike, positions: ArrayLike, frequencies: ArrayLike, scale: float = 1.0
) -> Floats:
    """Rotate the last ``2 * len(frequencies)`` channels of ``[..., W, d]``, neighbouring channels as a pair.

    Args:
        values: ``[..., W, d]``.
        positions: ``[W]`` or ``[..., W]``, the entries' ``anchor``.
        frequencies: ``[r / 2]`` angles a token; for V4's compressed layers 64 channels, theta 160000, YaRN.
        scale: factor on cosine and sine (YaRN's attention factor).

    >>> turned = rotate_pairs(np.array([[5.0, 1.0, 0.0]]), [1], [np.pi / 2])
    >>> turned.round(3).tolist()
    [[5.0, 0.0, 1.0]]
    """
    array = as_floats("values", values, "[..., W, d]")
    wide = array.astype(compute_dtype(array))
    rates = np.asarray(frequencies, dtype=wide.dtype)
    if 2 * rates.size > array.shape[-1]:
        raise KernelError(
            f"{rates.size} frequencies turn {2 * rates.size} channels: values have {array.shape[-1]}."
        )
    angles = np.asarray(positions)[..., None].astype(wide.dtype) * rates
    cos, sin = np.cos(angles) * scale, np.sin(angles) * scale
    tail = wide[..., array.shape[-1] - 2 * rates.size :]
    even, odd = tail[..., 0::2].copy(), tail[..., 1::2].copy()
    tail[..., 0::2] = even * cos - odd * sin
    tail[..., 1::2] = odd * cos + even * sin
    return wide.astype(array.dtype, copy=False)
