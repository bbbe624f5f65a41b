"""The torch versions: equal to numpy, and with true gradients."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from phaseguard.errors import KernelError
from phaseguard.kernels import chunk_gate, csa, hca, mean, pair, torch_backend
from tests.kernels.helpers import close, normal

TOKENS = [0, 1, 3, 4, 9, 16]
GATES = [
    {"stride": 4},
    {"stride": 4, "window": 8},
    {"stride": 6, "window": 8},
    {"stride": 4, "window": 8, "split": True},
    {"stride": 2, "window": 5, "split": True},
]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _shapes(settings: dict[str, Any], tokens: int, width: int = 3) -> tuple[tuple[int, ...], int, int]:
    window = settings.get("window", settings["stride"])
    blocks = -(-window // settings["stride"]) if settings.get("split") else 1
    return (2, tokens, width * blocks), blocks, window


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings", GATES, ids=str)
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("scalar", [False, True])
def test_chunk_gate_equals_numpy(tokens: int, settings: dict[str, Any], scalar: bool, dtype: Any) -> None:
    shape, blocks, window = _shapes(settings, tokens)
    kv, bias = normal(0, *shape, dtype=dtype), normal(2, window, 1 if scalar else 3, dtype=dtype)
    scores = normal(1, *shape[:-1], blocks if scalar else shape[-1], dtype=dtype)
    got = torch_backend.chunk_gate(
        *map(torch.from_numpy, (kv, scores)), bias=torch.from_numpy(bias), **settings
    )
    wanted = chunk_gate.compress(kv, scores, bias=bias, **settings).values
    close(got.numpy(), wanted, 1e-5 if dtype is np.float32 else 1e-12)
    assert got.dtype == torch.from_numpy(kv).dtype


def test_named_schemes_equal_numpy() -> None:
    kv, scores, bias, long = normal(0, 2, 300, 4), normal(1, 2, 300, 4), normal(2, 4, 4), normal(3, 128, 4)
    a, b, c, e = map(torch.from_numpy, (kv, scores, bias, long))
    close(torch_backend.csa(a, b, c).numpy(), csa.compress(kv, scores, bias=bias).values, 1e-12)
    close(torch_backend.hca(a, b, e).numpy(), hca.compress(kv, scores, bias=long).values, 1e-12)
    close(torch_backend.pair(a, b).numpy(), pair.compress(kv, scores).values, 1e-12)
    settings = {"stride": 3, "window": 5}
    close(torch_backend.mean(a, **settings).numpy(), mean.compress(kv, **settings).values, 1e-12)
    seen = torch_backend.visible(torch.arange(300), 75, 4).numpy()
    np.testing.assert_array_equal(seen, csa.compress(kv, scores).visible(range(300)))


@pytest.mark.parametrize("settings", GATES, ids=str)
def test_gradients_of_the_chunk_gate(settings: dict[str, Any]) -> None:
    (_, *shape), _, window = _shapes(settings, 9, 1)
    arrays = normal(0, *shape), normal(1, *shape), normal(2, window, 1)
    leaves = [torch.from_numpy(array).requires_grad_() for array in arrays]
    assert torch.autograd.gradcheck(
        lambda kv, scores, bias: torch_backend.chunk_gate(kv, scores, bias=bias, **settings), leaves
    )


def test_gradients_of_the_named_schemes() -> None:
    kv, scores, bias = (
        torch.from_numpy(normal(i, *s)).requires_grad_() for i, s in enumerate([(9, 4), (9, 4), (4, 4)])
    )
    assert torch.autograd.gradcheck(torch_backend.csa, (kv, scores, bias))
    assert torch.autograd.gradcheck(lambda k, s, b: torch_backend.hca(k, s, b, stride=4), (kv, scores, bias))
    assert torch.autograd.gradcheck(torch_backend.pair, (kv, scores))
    assert torch.autograd.gradcheck(lambda k: torch_backend.mean(k, window=8), (kv,))


def test_gradients_are_the_slopes_of_the_numpy_kernel() -> None:
    kv, scores, bias = normal(0, 9, 4), normal(1, 9, 4), normal(2, 4, 4)
    leaf = torch.from_numpy(scores.copy()).requires_grad_()
    torch_backend.csa(torch.from_numpy(kv), leaf, torch.from_numpy(bias)).sum().backward()
    slopes = np.empty_like(scores)
    for at in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[at] = 1e-6
        up, down = (csa.compress(kv, scores + sign * step, bias=bias).values.sum() for sign in (1, -1))
        slopes[at] = (up - down) / 2e-6
    close(leaf.grad.numpy(), slopes, 1e-7)


def test_masked_slots_give_zero_and_no_nan_gradient() -> None:
    kv = torch.from_numpy(normal(0, 12, 4)).requires_grad_()
    scores = torch.from_numpy(normal(1, 12, 4))
    scores[:8] = float("-inf")
    scores.requires_grad_()
    out = torch_backend.csa(kv, scores)
    out.sum().backward()
    assert (out[:2] == 0).all()
    assert torch.isfinite(kv.grad).all()
    assert torch.isfinite(scores.grad).all()


def test_half_precision_pools_in_float32() -> None:
    kv, scores = (torch.from_numpy(normal(i, 12, 4)).to(torch.bfloat16) for i in range(2))
    got = torch_backend.csa(kv, scores)
    assert got.dtype == torch.bfloat16
    close(got.double().numpy(), torch_backend.csa(kv.double(), scores.double()).numpy(), 1e-2)


def test_what_does_not_fit_is_refused() -> None:
    kv = torch.zeros(8, 4)
    with pytest.raises(KernelError, match="stride is 1"):
        torch_backend.csa(kv, kv, stride=1)
    with pytest.raises(KernelError, match=r"bias has shape \(4, 2\)"):
        torch_backend.csa(kv, kv, torch.zeros(4, 2))
    with pytest.raises(KernelError, match=r"scores has shape \(7, 4\)"):
        torch_backend.pair(kv, kv[:7])
    with pytest.raises(KernelError, match="floating dtype"):
        torch_backend.pair(kv.long(), kv)
