"""What calibration observes: answers, where each stood, and which item asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaseguard.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Answers of a paired design: each item is asked at several shifts of its record.

    Attributes:
        right: ``[n]`` bool, whether each answer is right.
        positions: ``[n]`` int64, absolute token index of the answer's first token in its request.
        keys: ``[n]`` int64, absolute token index of the key. Let the distance from key to answer differ
            between items, else the effects of their phases cannot be told apart.
        items: ``[n]`` int64, which item each answer belongs to; the items are the clusters.
        margins: ``[n]`` float64, log-probability of the right answer less that of the best wrong one, in
            nats; None where the endpoint gives none.

    Raises:
        InputError: for arrays of different lengths, of a wrong type, or with margins that are not finite.

    >>> seen = Observations.of([True, False], positions=[104, 105], keys=[100, 101], items=[0, 0])
    >>> len(seen), seen.count, seen.take([False, True]).positions
    (2, 1, array([105]))
    """

    right: NDArray[np.bool_]
    positions: NDArray[np.int64]
    keys: NDArray[np.int64]
    items: NDArray[np.int64]
    margins: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        n = np.shape(self.right)
        whole = {"positions": self.positions, "keys": self.keys, "items": self.items}
        for name, values in (
            whole.items() if self.margins is None else (*whole.items(), ("margins", self.margins))
        ):
            if len(n) != 1 or np.shape(values) != n:
                raise InputError(
                    f"right has shape {n} and {name} {np.shape(values)}: give one value an answer in each."
                )
        if self.right.dtype != np.bool_:
            raise InputError(f"right has dtype {self.right.dtype}: give booleans.")
        for name, values in whole.items():
            if not np.issubdtype(values.dtype, np.integer):
                raise InputError(f"{name} has dtype {values.dtype}: give integers.")
        if self.margins is not None and not np.isfinite(self.margins).all():
            raise InputError("margins hold values that are not finite: give none at all, or one an answer.")

    @classmethod
    def of(
        cls,
        right: ArrayLike,
        positions: ArrayLike,
        keys: ArrayLike,
        items: ArrayLike,
        margins: ArrayLike | None = None,
    ) -> Observations:
        """Make observations from anything array-like, such as lists."""
        # an empty list has no dtype of its own
        empty = np.size(right) == 0
        places, whence, who = (np.asarray(v, np.int64 if empty else None) for v in (positions, keys, items))
        hits = np.asarray(right, np.bool_ if empty else None)
        return cls(hits, places, whence, who, None if margins is None else np.asarray(margins, np.float64))

    @classmethod
    def concat(cls, parts: Iterable[Observations]) -> Observations:
        """All answers of several observations; margins only if each part has them.

        Items keep their numbers: the same number in two parts is the same item.

        >>> one = Observations.of([True], [4], [1], [0])
        >>> len(Observations.concat([one, one]))
        2
        """
        every = list(parts)
        if not every:
            return cls.of([], [], [], [])
        margins = [part.margins for part in every if part.margins is not None]
        return cls(
            np.concatenate([part.right for part in every]),
            np.concatenate([part.positions for part in every]),
            np.concatenate([part.keys for part in every]),
            np.concatenate([part.items for part in every]),
            np.concatenate(margins) if len(margins) == len(every) else None,
        )

    def take(self, which: ArrayLike) -> Observations:
        """Those answers that a mask or a list of indices picks."""
        chosen = np.asarray(which)
        margins = None if self.margins is None else self.margins[chosen]
        return Observations(
            self.right[chosen], self.positions[chosen], self.keys[chosen], self.items[chosen], margins
        )

    @property
    def count(self) -> int:
        """Number of items."""
        return len(np.unique(self.items))

    def __len__(self) -> int:
        return len(self.right)
