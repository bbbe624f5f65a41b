"""Geometry of pooled schemes: which tokens fill the slots of an entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phaseguard.errors import KernelError
from phaseguard.kernels.check import check_at_least, check_shape


@dataclass(frozen=True, slots=True)
class Segment:
    """Slots ``low:high`` of an entry: tokens of the chunk ``behind`` chunks back, from its ``offset``-th on.

    They use ``block`` of the channels.
    """

    behind: int
    low: int
    high: int
    offset: int
    block: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Entry w closes tokens ``w*stride .. w*stride+stride-1`` and pools the last ``window`` tokens.

    ``split`` says that a token carries one block of channels for each chunk that it takes part in: the last
    block for its own chunk, the one before for the next chunk, and so on.

    >>> [(s.behind, s.low, s.high, s.offset) for s in Grid(6, 8).segments()]
    [(1, 0, 2, 4), (0, 2, 8, 0)]
    """

    stride: int
    window: int
    split: bool = False

    def __post_init__(self) -> None:
        check_at_least("stride", self.stride, 2)
        check_at_least("window", self.window, 2)
        if self.window < self.stride:
            raise KernelError(
                f"window {self.window} is shorter than stride {self.stride}: tokens would be lost; "
                "give a window of at least the stride."
            )

    @property
    def reach(self) -> int:
        """Chunks that an entry pools, its own included."""
        return -(-self.window // self.stride)

    @property
    def blocks(self) -> int:
        """Blocks of channels that a token carries."""
        return self.reach if self.split else 1

    def segments(self) -> Iterator[Segment]:
        """The slots in ascending order, grouped by chunk."""
        low = 0
        for behind in range(self.reach - 1, -1, -1):
            high = self.window - behind * self.stride
            block = self.reach - 1 - behind if self.split else 0
            yield Segment(behind, low, high, self.stride - (high - low), block)
            low = high

    def width(self, kv: tuple[int, ...], scores: tuple[int, ...]) -> int:
        """Channels d of an entry, from the shapes of kv and scores."""
        if len(kv) < 2 or kv[-1] < 1 or kv[-1] % self.blocks:
            raise KernelError(f"kv has shape {kv}: give [..., T, d * {self.blocks}] with d >= 1.")
        check_shape("scores", scores, kv, (*kv[:-1], self.blocks))
        return kv[-1] // self.blocks

    def check_bias(self, bias: tuple[int, ...], width: int) -> None:
        """Refuse a bias that has not one row a slot."""
        check_shape("bias", bias, (self.window, width), (self.window, 1))
