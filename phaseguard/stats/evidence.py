"""How strongly sums by phase speak for a period: a Bayes factor averaged over shapes of profile.

A chi-square over all phases spreads its power over every shape; at period 8 a single weak phase drowns in
it. Here each period offers shapes that profiles have (some phases in a row are weak, a wave) and, with a
smaller weight, a free one. A shape is a contrast of the phases' sums; its Bayes factor against no effect
compares two normal distributions with known variance (Wakefield, American Journal of Human Genetics 81,
2007). Their average is the best test against that mix of shapes (Neyman-Pearson), and it prefers the smaller
of two periods that explain the same, since a longer one spreads its weight over more shapes (MacKay, Neural
Computation 4, 1992). Nothing here needs the model to be true: p-values come from relabellings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FREE = 0.3  # weight of the free shape
SIZE = 16.0  # prior variance of a shape's effect, in variances of its noise: an effect just worth finding
# the same for the free shape, over all its degrees of freedom together, with weights; without large ones a
# longer period that much data show clearly would lose to a part of it
FREE_SIZES = ((25.0, 0.9), (400.0, 0.05), (6400.0, 0.05))
POWER_OF_TWO = 8.0  # prior weight of a period that is one: nearly all strides are
TURNS = 2**31  # a random whole number below has a phase as good as uniform at every period
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """One labelling at one period: its columns of the sums, and what is made of them.

    ``shapes`` are contrasts ``[period, shapes]`` with variance 1, ``weights`` the logarithms of their prior
    weights, ``whitened`` ``[period, freedom]`` maps the sums to independent variables of variance 1.
    """

    label: str
    period: int
    columns: slice
    shapes: Floats
    weights: Floats
    whitened: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Which phase each answer has under each labelling and period; the answers lie sorted by cluster.

    Attributes:
        phases: ``[n, columns]`` one where the answer has the column's phase, else zero.
        blocks: one a labelling and period.
    """

    phases: Floats
    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, labels: Mapping[str, Ints], sizes: Ints, variances: Floats, periods: Sequence[int]) -> Design:
        """Make the design.

        Args:
            labels: name of each labelling and its ``[n]`` token indices.
            sizes: ``[clusters]`` answers of each cluster.
            variances: ``[clusters]`` variance of an answer about its cluster's mean.
            periods: candidates.
        """
        phases = [
            (index[:, None] % period == np.arange(period)).astype(np.float64)
            for index in labels.values()
            for period in periods
        ]
        names = [(label, period) for label in labels for period in periods]
        ends = np.cumsum([period for _, period in names])
        blocks = tuple(
            _block(label, slice(int(end) - period, int(end)), _covariance(columns, sizes, variances))
            for (label, period), end, columns in zip(names, ends, phases, strict=True)
        )
        return cls(np.concatenate(phases, axis=1), blocks)

    def evidence(self, sums: Floats) -> Floats:
        """``[rows, blocks]`` log Bayes factor, with the prior of the period, of ``[rows, columns]`` sums."""
        return np.stack([_evidence(block, sums[:, block.columns]) for block in self.blocks], axis=1)

    def turned(self, sums: Floats, offsets: Ints) -> Floats:
        """``[rows, columns]`` sums over all clusters, the indices of each moved by its offset.

        Args:
            sums: ``[clusters, columns]`` of each cluster's answers.
            offsets: ``[rows, clusters]`` at least 0.
        """
        return np.concatenate(
            [_turned(sums[:, block.columns], offsets % block.period) for block in self.blocks], axis=1
        )

    def squares(self, sums: Floats) -> Floats:
        """``[blocks]`` chi-square per degree of freedom of one row of sums."""
        found = [np.square(sums[block.columns] @ block.whitened) for block in self.blocks]
        return np.array([float(square.mean()) if len(square) else 0.0 for square in found])


def _turned(sums: Floats, turns: Ints) -> Floats:
    """``[rows, period]`` sums over clusters of ``[clusters, period]``, each rolled by its turns."""
    return np.asarray(
        sum((turns == turn) @ np.roll(sums, turn, axis=1) for turn in range(sums.shape[1])), np.float64
    )


def _covariance(phases: Floats, sizes: Ints, variances: Floats) -> Floats:
    """Of the sums by phase where answers of a cluster are exchangeable: the yardstick of evidence."""
    members = np.repeat(np.arange(len(sizes)), sizes)
    centred = phases - (np.add.reduceat(phases, np.cumsum(sizes) - sizes) / sizes[:, None])[members]
    return np.asarray((centred * variances[members][:, None]).T @ centred)


def _block(label: str, columns: slice, covariance: Floats) -> _Block:
    period = len(covariance)
    shapes, weights = _shapes(period)
    variance = np.einsum("ps,pq,qs->s", shapes, covariance, shapes)
    seen = variance > _NOTHING
    values, vectors = np.linalg.eigh(covariance)
    free = values > _NOTHING * max(1.0, float(values[-1]))
    return _Block(
        label,
        period,
        columns,
        shapes[:, seen] / np.sqrt(variance[seen]),
        np.log(weights[seen] / max(weights[seen].sum(), _NOTHING)),
        vectors[:, free] / np.sqrt(values[free]),
    )


def _shapes(period: int) -> tuple[Floats, Floats]:
    """``[period, shapes]`` runs of phases of a few lengths and a wave, each at every phase; their weights."""
    phases = np.arange(period)
    behind = (phases[:, None] - phases) % period
    lengths = {2**k for k in range(period.bit_length()) if 2 ** (k + 1) <= period} | {period // 2}
    families = [(behind < length).astype(np.float64) for length in sorted(lengths)]
    if period > 3:
        families.append(np.cos(2 * np.pi * behind / period))
    weights = np.full(len(families) * period, 1 / (len(families) * period))
    return np.concatenate(families, axis=1), weights


def _evidence(block: _Block, sums: Floats) -> Floats:
    freedom = block.whitened.shape[1]
    if not freedom:
        return np.full(len(sums), _log_prior(block.period))
    sizes, weights = np.array(FREE_SIZES).T
    sizes = sizes / freedom
    squares = np.square(sums @ block.whitened).sum(1)[:, None]
    ratios = squares * (sizes / (1 + sizes) / 2) - freedom / 2 * np.log1p(sizes) + np.log(weights)
    free = np.logaddexp.reduce(ratios, axis=1)
    shaped = np.square(sums @ block.shapes) * (SIZE / (1 + SIZE) / 2) + block.weights - np.log1p(SIZE) / 2
    top = np.maximum(shaped.max(1), free)
    total = (1 - FREE) * np.exp(shaped - top[:, None]).sum(1) + FREE * np.exp(free - top)
    return np.asarray(top + np.log(total) + _log_prior(block.period))


def _log_prior(period: int) -> float:
    """Not normalized: powers of two first, and shorter periods before longer ones."""
    return float(np.log(POWER_OF_TWO if period & (period - 1) == 0 else 1.0) - np.log(period) / 2)
