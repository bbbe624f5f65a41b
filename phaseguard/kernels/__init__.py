"""Compression schemes for KV caches, one file each, in numpy; :mod:`naive` says what each must compute.

>>> import numpy as np
>>> scheme = find_scheme("csa")
>>> entries = scheme.compress(np.ones((10, 8)), np.zeros((10, 8)))
>>> entries.values.shape, entries.visible([2, 3, 7]).astype(int).tolist()
((2, 4), [[0, 0], [1, 0], [1, 1]])
"""

from phaseguard.kernels.entries import NEVER, Entries
from phaseguard.kernels.registry import SCHEMES, Scheme, find_scheme

__all__ = ["NEVER", "SCHEMES", "Entries", "Scheme", "find_scheme"]
