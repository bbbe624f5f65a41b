"""Gate cycling: the causal test whether the gates make the phase profile.

Source: "Periodic Weak Spots" (arXiv:2609.36322): cycling the gates by d phases moves the
accuracy profile by d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phaseguard.errors import KernelError
from phaseguard.kernels.check import as_floats, check_at_least
from phaseguard.kernels.entries import Floats


def cycle(gates: ArrayLike, by: int, stride: int) -> Floats:
    """Give what the gates say of phase p to phase ``(p + by) % stride``, inside each complete chunk.

    Args:
        gates: scores ``[..., T, c]`` by position, or a position bias ``[stride, c]``. A bias by slot of an
            overlapping window ``[2 * stride, c]`` is cycled chunk by chunk, as the positions are.
        by: phases to move; negative moves back, the stride moves nothing.
        stride: tokens per entry.

    Returns:
        A new array of the same shape and dtype; an incomplete chunk at the end stays.

    >>> cycle(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]), 1, 4).ravel().tolist()
    [3.0, 0.0, 1.0, 2.0, 9.0]
    """
    array = as_floats("gates", gates, "[..., T, c]")
    stride = check_at_least("stride", stride, 2)
    if isinstance(by, bool) or not isinstance(by, int | np.integer):
        raise KernelError(f"by is {by!r}: give a whole number of phases.")
    whole = array.shape[-2] - array.shape[-2] % stride
    out = array.copy()
    chunks = array[..., :whole, :].reshape(*array.shape[:-2], whole // stride, stride, array.shape[-1])
    out[..., :whole, :] = np.roll(chunks, int(by), axis=-2).reshape(*array.shape[:-2], whole, array.shape[-1])
    return out
