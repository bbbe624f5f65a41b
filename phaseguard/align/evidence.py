"""What is known of phases, as integers the solver can add up, and as words a report can say.

What is measured, what is a prior from an on-device model, what a paper reports and what the caller
states are told apart: :class:`Evidence` carries its provenance wherever its values go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TypeVar

from phaseguard.align.report import Provenance
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile, ShapeStrength

SCALE = 1_000_000  # values are millionths of a nat
PRICE_PER_TOKEN = 2_000  # a token of padding must gain a fifth of a point of log strength
EDGE_PRICE = 8_000  # a whitespace pad at the edge of a message is what `.strip()` removes
SECOND_CHOICE_PRICE = 12_000  # a pad of the second alphabet, such as visible dots where blanks would do
WEAK = 1_000_000  # where only an order is known, a weak phase counts as one nat worse than a strong one
# On-device models with V4's kernel answer .80 with strangers in all 7 slots beside an answer, .998 with none:
# log(.998 / .80) / 7 a stranger. A prior, never measured on the user's model.
STRANGER_PRICE = 30_000
_LEAST_STRENGTH = 1e-4
_THREE_AND_MORE = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """Which phases are strong, and how that is known.

    Attributes:
        provenance: where it comes from; kind ``none`` when nothing is known.
        period: tokens after which phases repeat; 1 when the model has no phase.
        strengths: by shape (tokens of the answer, 3 stands for more): mean strength of each phase.
        strong: by shape: the phases that count as strong; key 0 stands for every shape.
    """

    provenance: Provenance
    period: int
    strengths: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    strong: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether there is anything to align to."""
        return self.period > 1 and bool(self.strengths or self.strong)

    def values(self, tokens: int, weight: float) -> tuple[int, ...]:
        """Value of each phase for an answer span of this many tokens, in millionths of a nat."""
        means = _nearest(self.strengths, tokens)
        if means is not None:
            return tuple(round(weight * SCALE * math.log(max(mean, _LEAST_STRENGTH))) for mean in means)
        strong = _nearest(self.strong, tokens) or frozenset()
        return tuple(0 if phase in strong else -round(weight * WEAK) for phase in range(self.period))

    def strength(self, tokens: int, phase: int) -> float | None:
        """Probability that such a span is retrieved at this phase; None when no number is known."""
        means = _nearest(self.strengths, tokens)
        return None if means is None else means[phase]

    def is_strong(self, tokens: int, phase: int) -> bool | None:
        """Whether the phase counts as strong; None when nothing is known."""
        strong = _nearest(self.strong, tokens)
        return None if strong is None else phase in strong


def evidence_for(profile: PhaseProfile, strong: Iterable[int] | None = None) -> Evidence:
    """What is known of a profile's phases, or what the caller states about them.

    Args:
        profile: the profile.
        strong: phases to treat as strong, whatever the profile says.

    Raises:
        InputError: when ``strong`` is not a set of phases below the profile's period.

    >>> from phaseguard.profiles import load_profile
    >>> evidence_for(load_profile("deepseek-v4-flash"), {2, 3}).provenance.kind
    'stated'
    >>> evidence_for(load_profile("deepseek-v4-flash")).usable
    False
    """
    if strong is not None:
        return _stated(profile, strong)
    if profile.strengths:
        strengths = {int(shape): value.mean for shape, value in profile.strengths.items()}
        best = {int(shape): _best(value) for shape, value in profile.strengths.items()}
        detail = f"Strengths by phase of profile {profile.name}, {profile.provenance.kind}."
        return Evidence(
            Provenance(profile.provenance.kind, profile.provenance.source, detail),
            profile.period,
            strengths,
            best,
        )
    if profile.strong is not None and profile.reported is not None:
        stated = profile.provenance.kind == "stated"
        detail = (
            f"Only an order is known: phases {sorted(profile.strong)} are called strong, without numbers."
        )
        kind = "stated" if stated else "reported"
        return Evidence(
            Provenance(kind, profile.reported.source, detail), profile.period, {}, {0: profile.strong}
        )
    detail = f"No phase of profile {profile.name} is known to be strong."
    return Evidence(Provenance("none", profile.provenance.source, detail), profile.period)


def _stated(profile: PhaseProfile, strong: Iterable[int]) -> Evidence:
    try:
        phases = frozenset(strong)
    except TypeError as error:
        raise InputError(f"strong={strong!r}: give a set of phases such as {{2, 3}}.") from error
    if profile.period < 2:
        raise InputError(
            f"strong={sorted(phases, key=str)}: profile {profile.name} has no phase to align to."
        )
    whole = [phase for phase in phases if isinstance(phase, Integral) and not isinstance(phase, bool)]
    if not phases or len(whole) < len(phases) or not all(0 <= phase < profile.period for phase in whole):
        raise InputError(
            f"strong={sorted(phases, key=str)}: give phases from 0 to {profile.period - 1}, the period of "
            f"profile {profile.name} being {profile.period}."
        )
    phases = frozenset(map(int, phases))  # NumPy's integers too
    detail = f"The caller states that phases {sorted(phases)} are strong."
    return Evidence(Provenance("stated", "strong=", detail), profile.period, {}, {0: phases})


def _best(strength: ShapeStrength) -> frozenset[int]:
    """Phases that the intervals do not tell apart from the best one."""
    best = max(range(len(strength.mean)), key=strength.mean.__getitem__)
    return frozenset(phase for phase, high in enumerate(strength.high) if high >= strength.low[best])


_T = TypeVar("_T")


def _nearest(by_shape: Mapping[int, _T], tokens: int) -> _T | None:
    if not by_shape:
        return None
    shape = min(by_shape, key=lambda known: (abs(known - min(tokens, _THREE_AND_MORE)), known))
    return by_shape[shape]
