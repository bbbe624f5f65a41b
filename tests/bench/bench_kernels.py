"""CSA pooling of 131,072 tokens x 512 channels in float32: numpy and numba against torch eager, in one run.

    python tests/bench/bench_kernels.py [TOKENS]

One thread each, the same arrays, medians of runs in turn. The allocator keeps its memory (the script starts
itself again with glibc's settings for that), and outputs are allocated before. "copy" is what the machine
needs to move as many bytes as the pooling must read and write; share = copy / measured.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch

from phaseguard.kernels import csa, numba_backend, torch_backend

SETTINGS = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
CHANNELS, RUNS, SAMPLE = 512, 7, 4096


def eager(kv: torch.Tensor, scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The pooling as model code writes it: slots laid out, softmax, weighted sum."""
    count, half = kv.shape[0] // 4, kv.shape[1] // 2
    chunks, gates = kv.view(count, 4, -1), scores.view(count, 4, -1) + bias
    slots = chunks.new_zeros((count, 8, half))
    weights = gates.new_full((count, 8, half), float("-inf"))
    slots[:, 4:], weights[:, 4:] = chunks[..., half:], gates[..., half:]
    slots[1:, :4], weights[1:, :4] = chunks[:-1, :, :half], gates[:-1, :, :half]
    return (slots * weights.softmax(dim=1)).sum(dim=1)


def main() -> None:
    if any(os.environ.get(key) != value for key, value in SETTINGS.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SETTINGS})
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 131_072
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    kv, scores = (rng.standard_normal((tokens, 2 * CHANNELS), dtype=np.float32) for _ in range(2))
    bias = rng.standard_normal((4, 2 * CHANNELS), dtype=np.float32)
    out, other = (np.zeros((tokens // 4, CHANNELS), np.float32) for _ in range(2))
    moved = kv.nbytes + scores.nbytes + out.nbytes
    half = moved // 2 // 4  # a copy reads and writes: as many bytes move
    flat, copied = kv.reshape(-1)[:half], np.zeros(min(half, kv.size), np.float32)
    tensors = [torch.from_numpy(array) for array in (kv, scores, bias)]
    ways: dict[str, Callable[[], Any]] = {
        "copy": lambda: np.copyto(copied, flat),
        "torch eager, as model code": lambda: eager(*tensors),
        "torch eager, torch_backend": lambda: torch_backend.csa(*tensors),
        "numpy": lambda: csa.compress(kv, scores, bias=bias, out=out),
        "numba": lambda: numba_backend.csa(kv, scores, bias=bias, out=other),
    }
    with torch.no_grad():
        seconds = measure(ways)
    seconds["copy"] *= half / flat.size
    base = min(seconds[name] for name in ways if name.startswith("torch"))
    print(f"{tokens} tokens, {CHANNELS} channels, {moved / 1e9:.2f} GB must move; median of {RUNS}")
    for name, value in seconds.items():
        share = seconds["copy"] / value
        print(f"{name:28} {value * 1e3:8.1f} ms   x{base / value:5.2f} of eager   {share:4.0%} of copy")
    exact = csa.compress(kv[:SAMPLE].astype(np.float64), scores[:SAMPLE].astype(np.float64), bias=bias).values
    for name, got in (("numpy", out), ("numba", other)):
        error = np.abs(got[: len(exact)] - exact).max() / np.abs(exact).max()
        print(f"{name}: largest error against float64 {error:.1e}, relative to the largest entry")


def measure(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of each way, runs in turn after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in range(RUNS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if run:
                seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
