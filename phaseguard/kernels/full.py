"""Full attention: every token is an entry. The control, and what DeepSeek-V4.1's ratio-1 layers do."""

from __future__ import annotations

from numpy.typing import ArrayLike

from phaseguard.kernels.check import as_floats, check_finite, start_of
from phaseguard.kernels.entries import Entries, token_entries


def compress(
    kv: ArrayLike,
    scores: ArrayLike | None = None,  # noqa: ARG001 - every scheme takes it
    positions: ArrayLike | None = None,
) -> Entries:
    """Keep every token.

    Args:
        kv: ``[..., T, d]``.
        scores: not used; None.
        positions: ``[T]`` absolute positions, consecutive; default from 0.

    Returns:
        Entries with values ``[..., T, d]``, the array itself; entry t is visible to the queries from t on.

    Raises:
        KernelError: for shapes that do not fit, NaN, positions that are not consecutive.

    >>> import numpy as np
    >>> compress(np.ones((3, 2))).visible([0, 2]).astype(int).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    values = as_floats("kv", kv, "[..., T, d]")
    check_finite("kv", values)
    return token_entries(values, start_of(positions, values.shape[-2]))
