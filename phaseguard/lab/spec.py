"""What an on-device model is: its compression scheme and its sizes, all that its weights depend on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from phaseguard.errors import InputError, did_you_mean

Gate = Literal["channel", "scalar", "uniform"]


@dataclass(frozen=True, slots=True)
class Spec:
    """Scheme and sizes of a model; two blocks, the second of which reads the compressed cache.

    Attributes:
        scheme: the name under which it is trained.
        stride: tokens of one compressed entry; 0 for full attention.
        window: tokens that one entry pools; twice the stride when chunks overlap.
        split: whether a token carries channels of its own for each chunk it takes part in (as V4 does).
        gate: learned for each channel, learned for all channels at once, or uniform.
        bias: whether the gate has a learned bias for each slot.
        rope: whether the second block rotates queries and raw keys by position.
        width, heads, head_width: sizes; keys and values are one shared latent of ``head_width``.
        raw: tokens of the raw sliding window, the query's own included.
    """

    scheme: str
    stride: int
    window: int = 0
    split: bool = False
    gate: Gate = "channel"
    bias: bool = True
    rope: bool = False
    width: int = 64
    heads: int = 4
    head_width: int = 32
    raw: int = 8

    def __post_init__(self) -> None:
        if self.stride == 1 or self.stride < 0:
            raise InputError(f"stride={self.stride}: a compressed cache needs a stride of at least 2.")
        if self.stride and self.window < self.stride:
            raise InputError(f"window={self.window} is shorter than the stride {self.stride}.")

    @property
    def full(self) -> bool:
        """Whether the second block attends to every token instead of entries."""
        return self.stride == 0

    @property
    def blocks(self) -> int:
        """Blocks of channels that a token carries for pooling."""
        return -(-self.window // self.stride) if self.split else 1

    def to_dict(self) -> dict[str, Any]:
        """The spec as a plain dict, as the manifest keeps it."""
        return asdict(self)


SCHEMES = {
    "full": Spec("full", 0),
    "csa4": Spec("csa4", 4, 8, split=True),
    "chunk4": Spec("chunk4", 4, 4),
    "chunk8": Spec("chunk8", 8, 8),
    "pair2": Spec("pair2", 2, 2, bias=False),
    "mean4": Spec("mean4", 4, 8, gate="uniform", bias=False),
}


def make_spec(
    scheme: str,
    *,
    stride: int | None = None,
    rope: bool | None = None,
    uniform_gate: bool = False,
    scalar_gate: bool = False,
    bias: bool | None = None,
) -> Spec:
    """The spec of a scheme, with changes.

    Args:
        scheme: one of :data:`SCHEMES`.
        stride: another stride; the window grows with it.
        rope: whether the second block rotates by position.
        uniform_gate: pool by the mean instead of a learned gate.
        scalar_gate: one gate for all channels.
        bias: whether the gate has a bias for each slot.

    Raises:
        InputError: for an unknown scheme or an impossible stride.

    >>> make_spec("csa4").window, make_spec("chunk4", stride=8).window
    (8, 8)
    """
    if scheme not in SCHEMES:
        raise InputError(f"Unknown scheme {scheme!r}. {did_you_mean(scheme, SCHEMES)}")
    spec = SCHEMES[scheme]
    if stride is not None and stride != spec.stride:
        if spec.full:
            raise InputError("Full attention has no stride.")
        spec = replace(spec, stride=stride, window=stride * spec.window // spec.stride)
    if uniform_gate or scalar_gate:
        spec = replace(
            spec, gate="uniform" if uniform_gate else "scalar", bias=spec.bias and not uniform_gate
        )
    if rope is not None:
        spec = replace(spec, rope=rope)
    return spec if bias is None else replace(spec, bias=bias)
