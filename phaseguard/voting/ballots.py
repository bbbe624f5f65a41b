"""Ballots, and the groups of those that say the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from phaseguard.errors import InputError
from phaseguard.voting.forms import Form


@dataclass(frozen=True, slots=True)
class Ballot:
    """One model answer, as it takes part in a vote.

    Attributes:
        layout: place of its layout in order of strength, 0 for the strongest; no two ballots share one.
        answer: the answer as the model gave it, or None when the call failed or held no answer; a blank
            answer counts as none.
        phase: phase of the answer span in this layout, or None when it is not known.
        strength: probability that a record at this phase is retrieved, above 0, for the weighted rule.
        probability: probability the model gave the answer, 0 to 1, see :func:`answer_probability`.

    Raises:
        InputError: when a number is out of its range.

    >>> Ballot(0, "42", phase=3, probability=0.98).missing
    False
    """

    layout: int
    answer: str | None
    phase: int | None = None
    strength: float | None = None
    probability: float | None = None

    def __post_init__(self) -> None:
        if self.layout < 0:
            raise InputError(f"Layout {self.layout}: layouts are numbered from 0, the strongest.")
        check_strength(self.layout, self.strength)
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise InputError(f"Layout {self.layout}: probability {self.probability} is not between 0 and 1.")

    @property
    def missing(self) -> bool:
        """Whether it holds no answer."""
        return self.answer is None or not self.answer.strip()


def check_strength(layout: int, strength: float | None) -> None:
    """Raise InputError when a layout's strength cannot weigh a ballot.

    >>> check_strength(0, 0.5)
    """
    if strength is not None and not 0 < strength < math.inf:
        raise InputError(f"Layout {layout}: strength {strength} is no weight; give a finite number above 0.")


@dataclass(frozen=True, slots=True)
class Group:
    """Ballots whose answers are the same.

    Attributes:
        key: what they have in common.
        ballots: in order of strength of their layouts.
    """

    key: Hashable
    ballots: tuple[Ballot, ...]

    @property
    def answer(self) -> str:
        """The most frequent way in which its answers are written; on a tie the strongest layout's."""
        return Counter(ballot.answer for ballot in self.ballots if ballot.answer).most_common(1)[0][0]

    @property
    def strongest(self) -> int:
        """The strongest layout among its ballots."""
        return self.ballots[0].layout


@dataclass(frozen=True, slots=True)
class Grouping:
    """All ballots of a question, grouped.

    Attributes:
        groups: in order of their strongest layouts; equal answers are in one group, others are not.
        missing: ballots without an answer.
        may_merge: whether a further ballot can join groups into one, as when meaning decides.
    """

    groups: tuple[Group, ...]
    missing: tuple[Ballot, ...] = ()
    may_merge: bool = False

    @property
    def counted(self) -> int:
        """Number of ballots with an answer."""
        return sum(len(group.ballots) for group in self.groups)


_AUTO = Form()


def group(ballots: Iterable[Ballot], form: Callable[[str], Hashable] = _AUTO) -> Grouping:
    """Group the ballots whose answers have the same form.

    Args:
        ballots: in any order.
        form: gives the comparable form of an answer: a :class:`Form`, or your own function.

    Raises:
        InputError: when two ballots have the same layout.

    >>> found = group([Ballot(0, "0.5"), Ballot(1, "1/2"), Ballot(2, "0.6"), Ballot(3, None)])
    >>> [(one.answer, len(one.ballots)) for one in found.groups], len(found.missing)
    ([('0.5', 2), ('0.6', 1)], 1)
    """
    keyed: dict[Hashable, list[Ballot]] = {}
    missing: list[Ballot] = []
    for ballot in in_order(ballots):
        if ballot.answer is None or ballot.missing:
            missing.append(ballot)
        else:
            keyed.setdefault(form(ballot.answer), []).append(ballot)
    return Grouping(tuple(Group(key, tuple(same)) for key, same in keyed.items()), tuple(missing))


def in_order(ballots: Iterable[Ballot]) -> list[Ballot]:
    """Ballots from the strongest layout to the weakest.

    Raises:
        InputError: when two ballots have the same layout.

    >>> [ballot.layout for ballot in in_order([Ballot(2, "x"), Ballot(0, "y")])]
    [0, 2]
    """
    ordered = sorted(ballots, key=lambda ballot: ballot.layout)
    for before, after in pairwise(ordered):
        if before.layout == after.layout:
            raise InputError(f"Two ballots have layout {after.layout}: number each layout once.")
    return ordered


def answer_probability(logprobs: Sequence[float]) -> float:
    """Probability of a whole answer from the natural log probabilities of its tokens.

    It is their product: a longer answer has a smaller one, so compare answers of about one length.

    Args:
        logprobs: one a token of the answer, each at most 0 (rounding above 0 is forgiven).

    Raises:
        InputError: when there is none, or one is no log probability.

    >>> round(answer_probability([-0.1, -0.2]), 3)
    0.741
    """
    if not len(logprobs):
        raise InputError("No log probabilities: an answer without tokens has no probability; leave it None.")
    wrong = [one for one in logprobs if not one <= 1e-3]
    if wrong:
        raise InputError(f"{wrong[0]} is no log probability: they are natural logarithms, at most 0.")
    return min(1.0, math.exp(math.fsum(logprobs)))
