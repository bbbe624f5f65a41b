"""Compression schemes for KV caches, one file each, in numpy; :mod:`naive` says what each must compute."""

from phaseguard.kernels.entries import NEVER, Entries

__all__ = ["NEVER", "Entries"]
