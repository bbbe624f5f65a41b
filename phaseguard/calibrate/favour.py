"""Which slots a position bias favours when every token's content scores the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.kernels.csa import slot_bias

FLAT = 0.05


@dataclass(frozen=True, slots=True)
class Favour:
    """Shares of an entry by slot, from the position bias alone.

    Attributes:
        own: a share for each phase of the entry's own chunk.
        previous: likewise for the chunk before it, which overlapping entries pool too; else empty. All
            shares of ``own`` and ``previous`` sum to 1.
        deviation: how far shares differ between channels: their standard deviation, the mean over slots.
        bias_scale: root mean square of the bias about its mean over slots, in units of the gate's scores.

    >>> Favour.of(np.log([[1.0], [1.0], [2.0], [4.0]]), overlap=False).favoured
    (3,)
    """

    own: tuple[float, ...]
    previous: tuple[float, ...]
    deviation: float
    bias_scale: float

    @classmethod
    def of(cls, bias: NDArray[np.float64], *, overlap: bool) -> Favour:
        """Shares from a bias.

        Args:
            bias: ``[stride, d]``, or ``[stride, 2d]`` with overlap: the first half of the channels weighs
                for the next chunk's entry, the second for the own (transformers ``models/deepseek_v4``).
            overlap: whether entries pool two chunks.

        Raises:
            InputError: for a bias of another shape.
        """
        if bias.ndim != 2 or not bias.size or (overlap and bias.shape[1] % 2):
            raise InputError(f"A position bias has shape {bias.shape}: [stride, channels] is expected.")
        stride = len(bias)
        slots = slot_bias(bias, stride, bias.shape[1]) if overlap else bias
        weights = np.exp(slots - slots.max(axis=0))
        weights /= weights.sum(axis=0)
        shares = tuple(weights.mean(axis=1).tolist())
        return cls(
            own=shares[-stride:],
            previous=shares[:-stride],
            deviation=float(weights.std(axis=1).mean()),
            bias_scale=float((slots - slots.mean(axis=0)).std()),
        )

    @property
    def phases(self) -> tuple[float, ...]:
        """Share of each phase: the own slot's and the previous one's together; they sum to 1."""
        return tuple(np.add(self.own, self.previous).tolist()) if self.previous else self.own

    @property
    def spread(self) -> float:
        """Largest share of a phase less the smallest."""
        return max(self.phases) - min(self.phases)

    @property
    def favoured(self) -> tuple[int, ...]:
        """Phases more than 5% above an even share, the largest first; empty when the bias is flat."""
        shares = self.phases
        above = [phase for phase, share in enumerate(shares) if share * len(shares) > 1 + FLAT]
        return tuple(sorted(above, key=lambda phase: -shares[phase]))
