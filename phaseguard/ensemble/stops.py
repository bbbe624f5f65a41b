"""When an ensemble asks no more, and who has won then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias

from phaseguard.ensemble.layouts import Layout, LayoutSet
from phaseguard.errors import InputError, did_you_mean
from phaseguard.voting import (
    Ballot,
    Decision,
    Group,
    Grouping,
    Pending,
    Stop,
    Tie,
    agreeing,
    decide,
    decide_or_tie,
    probable,
    settled,
)
from phaseguard.voting.rules import Rule, scorer_of

StopRule: TypeAlias = Literal["all", "settled", "agree"] | float
_NAMES = ("all", "settled", "agree")
_NEEDED = 2  # strong phases that have to agree


@dataclass(frozen=True, slots=True)
class Winner:
    """Who has won.

    Attributes:
        group: the ballots of the winner; None for a tie that is reported.
        outcome: all candidates under the rule.
    """

    group: Group | None
    outcome: Decision | Tie


@dataclass(frozen=True, slots=True)
class Rules:
    """How ballots are grouped, who wins, and when no more are asked for.

    Attributes:
        rule: as in :func:`phaseguard.voting.decide`.
        grouping: puts ballots that say the same together.
        report_ties: whether a tie is an outcome of its own.
        settle: whether to stop when no further ballot changes the winner.
        agree: whether to stop when two strong phases agree; ``strong``: which phases are strong.
        threshold: stop when an answer is this probable; None for never.
    """

    rule: Rule
    grouping: Callable[[Sequence[Ballot]], Grouping]
    report_ties: bool
    settle: bool
    agree: bool
    threshold: float | None
    strong: frozenset[int] = frozenset()

    @classmethod
    def read(
        cls,
        rule: Rule,
        stop: StopRule | Sequence[StopRule],
        grouping: Callable[[Sequence[Ballot]], Grouping],
        *,
        report_ties: bool,
    ) -> Rules:
        """Check the caller's choices.

        Raises:
            InputError: when one cannot be used.
        """
        scorer_of(rule)  # an unknown rule is told before anything is asked
        if not callable(grouping):
            raise InputError(f"grouping={grouping!r}: give a function of ballots, such as voting.group.")
        several = list(stop) if isinstance(stop, Collection) and not isinstance(stop, str) else [stop]
        names = [one for one in several if isinstance(one, str)]
        numbers = [float(one) for one in several if isinstance(one, Real)]
        for name in names:
            if name not in _NAMES:
                raise InputError(f"stop={name!r} is unknown. {did_you_mean(name, _NAMES)}")
        strange = len(names) + len(numbers) < len(several)
        if strange or not several or len(numbers) > 1 or ("all" in names and len(several) > 1):
            raise InputError(
                f"stop={stop!r}: give 'settled', 'agree' and one probability, alone or together, or 'all'."
            )
        if numbers and not 0 < numbers[0] <= 1:
            raise InputError(f"stop={numbers[0]}: a probability above 0 and at most 1 is needed.")
        threshold = numbers[0] if numbers else None
        return cls(rule, grouping, report_ties, "all" not in names, "agree" in names, threshold)

    def ready(self, layouts: LayoutSet) -> None:
        """Raise InputError when these layouts cannot be voted on by these rules."""
        if self.rule == "weighted" and any(layout.strength is None for layout in layouts.layouts):
            raise InputError(
                "rule='weighted' needs strengths, and none are known for these layouts: use 'majority', or a "
                "profile with strengths and key passages that can be moved."
            )
        if self.agree and len(layouts.strong) < _NEEDED:
            raise InputError(
                f"stop='agree' needs {_NEEDED} strong phases; {len(layouts.strong)} are known here. State "
                "them with strong=, or use stop='settled'."
            )

    def check(self, ballots: Sequence[Ballot], pending: Sequence[Layout]) -> Stop | None:
        """Whether to ask no more after these ballots; with nothing pending there is nothing to settle."""
        grouping = self.grouping(ballots)
        found = None
        if self.threshold is not None:
            found = probable(grouping, self.threshold)
        if found is None and self.agree:
            found = agreeing(grouping, self.strong, needed=_NEEDED)
        if found is None and self.settle and pending:
            coming = [Pending(layout.number, layout.strength) for layout in pending]
            found = settled(grouping, coming, self.rule, report_ties=self.report_ties)
        return found

    def winner(self, ballots: Sequence[Ballot], stop: Stop | None) -> Winner:
        """Who has won: the answer for which a stop speaks, else the one that the rule elects.

        Raises:
            InputError: when no ballot holds an answer.
        """
        grouping = self.grouping(ballots)
        outcome = decide_or_tie(grouping, self.rule) if self.report_ties else decide(grouping, self.rule)
        if stop is not None and stop.group is not None:
            return Winner(stop.group, outcome)
        return Winner(outcome.winner.group if isinstance(outcome, Decision) else None, outcome)
