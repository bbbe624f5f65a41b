"""Scripted endpoints: answers of a paired design whose chance of being right is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaseguard.calibrate.observations import Observations

Shape = Literal["one weak", "one strong", "half weak", "sine"]
SHAPES: tuple[Shape, ...] = ("one weak", "half weak", "sine")
_GRID = np.linspace(-12, 12, 2401)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint by script.

    Attributes:
        period: of its accuracy; 1 for none.
        gap: best phase less worst one, share of answers, averaged over items.
        shape: of the profile.
        anchor: which phase matters, the answer's or the key's.
        accuracy: at the best phase, averaged over items.
        spread: standard deviation of the items' difficulty, log odds.
        depth: how much harder the end of the longest context is than its start, log odds.
        missing: share of answers that never came.
    """

    period: int = 1
    gap: float = 0.0
    shape: Shape = "half weak"
    anchor: Literal["answer", "key"] = "answer"
    accuracy: float = 0.85
    spread: float = 1.0
    depth: float = 1.0
    missing: float = 0.0

    def profile(self) -> NDArray[np.float64]:
        """``[period]`` accuracy at each phase, averaged over items."""
        phases = np.arange(self.period)
        falls = {
            "one weak": (phases == self.period - 1).astype(float),
            "one strong": (phases != self.period - 1).astype(float),
            "half weak": (2 * phases < self.period).astype(float),
            "sine": _unit(np.cos(2 * np.pi * phases / self.period)),
        }[self.shape]
        return self.accuracy - self.gap * falls * (self.period > 1)

    def ask(
        self, rng: np.random.Generator, items: int = 60, *, shifts: int = 16, margins: bool = False
    ) -> Observations:
        """Ask ``items`` items at ``shifts`` shifts each; contexts, depths and distances differ."""
        lengths = rng.integers(1_000, 20_000, items)
        starts = (lengths * rng.random(items)).astype(np.int64)
        keys = starts[:, None] + np.arange(shifts)
        positions = keys + rng.integers(2, 14, items)[:, None]
        phase = (positions if self.anchor == "answer" else keys) % self.period
        ease = rng.normal(0, self.spread, items)[:, None]
        odds = _log_odds(self.profile(), self.spread)[phase] + ease - self.depth * (keys / 20_000 - 0.25)
        margin = (odds + rng.logistic(size=odds.shape)).ravel()
        seen = Observations.of(
            margin > 0,
            positions.ravel(),
            keys.ravel(),
            np.repeat(np.arange(items), shifts),
            margin if margins else None,
        )
        return seen.take(rng.random(len(seen)) >= self.missing)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values brought to the range from 0 to 1."""
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-12))


def _log_odds(means: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """Log odds which, with normal difficulty of this spread, give these mean accuracies."""
    reached = 1 / (1 + np.exp(-(_GRID[:, None] + spread * _NODES))) @ (_WEIGHTS / _WEIGHTS.sum())
    return np.asarray(np.interp(means, reached, _GRID))
