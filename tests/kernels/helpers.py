"""Arrays for the tests, and the comparison that they share."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def normal(seed: int, *shape: int, dtype: Any = np.float64, scale: float = 1.0) -> Array:
    """Reproducible normal numbers."""
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def each_row(function: Any, *batched: Array, **settings: Any) -> Array:
    """An oracle for one sequence, applied to every sequence of a batch."""
    lead = batched[0].shape[:-2]
    flat = [array.reshape(math.prod(lead), *array.shape[-2:]) for array in batched]
    rows = [function(*parts, **settings) for parts in zip(*flat, strict=True)]
    return np.stack(rows).reshape(*lead, *rows[0].shape)


def close(got: Array, wanted: Array, tolerance: float) -> None:
    """Same shape, and equal within the tolerance, absolute and relative."""
    assert got.shape == wanted.shape, f"{got.shape} is not {wanted.shape}"
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
