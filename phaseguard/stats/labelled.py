"""Which period, and of which token index: the randomization test for paired designs.

Each item is asked at many shifts, so the phases are compared within items; and an answer has more than one
index that could matter (its own, its key's). Every period of every labelling is tried at once. A relabelling
moves all indices of a cluster by one random number, other ones for other clusters. That is valid where the
clusters start at random phases, whatever their answers look like: those of one cluster may drift with the
shift, as log probabilities do, and long pads may read otherwise than short ones. Permuting the answers within
clusters would take both for an effect. A period longer than the number of shifts works too (128, say): a
cluster then tells only about the phases it covers, and clusters that start elsewhere about the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaseguard.errors import InputError
from phaseguard.stats.evidence import TURNS, Design
from phaseguard.stats.period import PERIODS, PeriodScan, PeriodTest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CELLS = 2_000_000  # clusters times relabellings that are held at once
_TIE = 1e-9  # rounding must not make a relabelling that changes nothing less than the data


@dataclass(frozen=True, slots=True)
class LabelledScan:
    """All candidate periods under the best labelling.

    Attributes:
        label: name of the labelling with the most evidence.
        lead: by how much its log evidence exceeds that of the next labelling, each at its best period;
            0 where they cannot differ.
        scan: the periods under it, p-values corrected for all periods and labellings.
    """

    label: str
    lead: float
    scan: PeriodScan


def scan_labelled(
    scores: ArrayLike,
    labels: Mapping[str, ArrayLike],
    clusters: ArrayLike,
    *,
    periods: Iterable[int] = PERIODS,
    permutations: int = 999,
    alpha: float = 0.05,
    seed: int = 0,
) -> LabelledScan:
    """Test candidate periods of one or more token indices within clusters.

    The statistic is :mod:`phaseguard.stats.evidence`; the largest of all candidates corrects for trying them
    (Westfall and Young, 1993). Monte Carlo p-values count the data as one relabelling, so they are valid with
    any number of them (Phipson and Smyth, 2010). Order of the answers and names of the clusters make
    no difference, nor does a constant added to scores of a cluster.

    Args:
        scores: ``[n]`` bool, whether each answer is right, or float, such as its margin.
        labels: name of each labelling and its ``[n]`` token indices.
        clusters: ``[n]`` item of each answer, any integers.
        periods: candidates, each at least 2.
        permutations: number of random relabellings; no p-value is below ``1 / (permutations + 1)``.
        alpha: level at which a period is named.
        seed: of the relabellings.

    Raises:
        InputError: for arrays that do not fit or are empty, or impossible periods.

    >>> rng = np.random.default_rng(0)
    >>> key = (rng.integers(0, 5000, 60)[:, None] + np.arange(16)).ravel()
    >>> answer, items = key + np.repeat(rng.integers(2, 9, 60), 16), np.repeat(np.arange(60), 16)
    >>> right = rng.random(960) < np.where(key % 8 == 3, 0.6, 0.9)
    >>> found = scan_labelled(right, {"answer": answer, "key": key}, items)
    >>> found.label, found.scan.period
    ('key', 8)
    """
    candidates = tuple(sorted({int(period) for period in periods}))
    if not candidates or candidates[0] < 2:
        raise InputError(f"periods are {candidates}: give whole numbers of at least 2.")
    table = _Table.of(scores, labels, clusters)
    design = Design.of(table.labels, table.sizes, table.variances, candidates)
    sums = np.add.reduceat(table.residuals[:, None] * design.phases, np.cumsum(table.sizes) - table.sizes)
    rows = [design.evidence(sums.sum(0)[None])]
    rng, left = np.random.default_rng(seed), permutations
    while left:
        batch = min(left, max(1, _CELLS // len(sums)))
        rows.append(design.evidence(design.turned(sums, rng.integers(0, TURNS, (batch, len(sums))))))
        left -= batch
    squares = design.squares(sums.sum(0))
    return _found(np.concatenate(rows), squares, tuple(labels), candidates, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Residuals from the cluster's mean, sorted by cluster, with the clusters' sizes and variances."""

    residuals: Floats
    labels: dict[str, Ints]
    sizes: Ints
    variances: Floats

    @classmethod
    def of(cls, scores: ArrayLike, labels: Mapping[str, ArrayLike], clusters: ArrayLike) -> _Table:
        values, groups = np.asarray(scores, np.float64), np.asarray(clusters)
        indices = {name: np.asarray(index) for name, index in labels.items()}
        shapes = {values.shape, groups.shape, *(index.shape for index in indices.values())}
        if not indices or len(shapes) > 1 or values.ndim != 1 or not len(values):
            raise InputError(
                f"Arrays have shapes {sorted(shapes)}: give one score, cluster and index an answer, and at "
                "least one answer."
            )
        if not all(np.issubdtype(index.dtype, np.integer) for index in indices.values()):
            raise InputError("A labelling holds values that are not integers: give token indices.")
        order = _order(values, tuple(indices.values()), groups)
        _, ranks, sizes = np.unique(groups[order], return_inverse=True, return_counts=True)
        # clusters in the order in which they stand, not in that of their names
        sizes = sizes[ranks[np.flatnonzero(np.diff(ranks, prepend=-1))]]
        members = np.repeat(np.arange(len(sizes)), sizes)
        ordered = values[order]
        residuals = ordered - (np.bincount(members, ordered) / sizes)[members]
        variances = np.bincount(members, np.square(residuals)) / np.maximum(sizes - 1, 1)
        return cls(residuals, {name: index[order] for name, index in indices.items()}, sizes, variances)


def _order(values: Floats, indices: tuple[Ints, ...], groups: Ints) -> Ints:
    """Clusters by their first answer, answers by index: the same however they are named and given."""
    first = np.lexsort((values, *indices[::-1]))
    _, at, inverse = np.unique(groups[first], return_index=True, return_inverse=True)
    return np.asarray(first[np.argsort(at[inverse], kind="stable")])


def _found(
    evidence: Floats, squares: Floats, labels: tuple[str, ...], periods: tuple[int, ...], alpha: float
) -> LabelledScan:
    alone = (evidence >= evidence[0] - _TIE).mean(0)
    among = (evidence.max(1)[:, None] >= evidence[0] - _TIE).mean(0)
    by_label = evidence[0].reshape(len(labels), len(periods))
    best = by_label.max(1)
    label = int(best.argmax())
    lead = float(best[label] - np.delete(best, label).max()) if len(labels) > 1 else 0.0
    tests = tuple(
        PeriodTest(period, float(squares[at]), float(alone[at]), float(among[at]))
        for at, period in enumerate(periods, label * len(periods))
    )
    p_value = float(among.min())
    period = periods[int(by_label[label].argmax())] if p_value <= alpha else None
    return LabelledScan(labels[label], lead, PeriodScan(tests, p_value, period))
