"""When to ask no more: each check looks at the ballots so far and returns why to stop, or None."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from phaseguard.errors import InputError
from phaseguard.voting.ballots import Group, Grouping, check_strength
from phaseguard.voting.rules import Decision, Rule, Scorer, decide, decide_or_tie, scorer_of

Reason = Literal["settled", "agreement", "probability", "budget"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask no more.

    Attributes:
        reason: ``settled``: no further ballot changes the outcome; ``agreement``: strong phases agree;
            ``probability``: an answer is probable enough; ``budget``: the next call costs too much.
        group: the answer that the reason speaks for; None for a budget, and for a tie that is settled.
    """

    reason: Reason
    group: Group | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A ballot that may still come.

    Attributes:
        layout: as in :class:`phaseguard.voting.Ballot`.
        strength: likewise; known before the call.

    Raises:
        InputError: when the strength is no weight.
    """

    layout: int
    strength: float | None = None

    def __post_init__(self) -> None:
        check_strength(self.layout, self.strength)


@dataclass(frozen=True, slots=True)
class Cost:
    """What calls cost: their number, their tokens, and seconds of waiting.

    >>> Cost(2, 900) + Cost(1, 450, 0.5)
    Cost(calls=3, tokens=1350, seconds=0.5)
    """

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.calls + other.calls, self.tokens + other.tokens, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a question may cost; None where there is no limit.

    Raises:
        InputError: when a limit is below 0.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise InputError(f"Budget of {limit} {name}: give 0 or more, or None for no limit.")


def settled(
    grouping: Grouping, pending: Sequence[Pending], rule: Rule = "majority", *, report_ties: bool = False
) -> Stop | None:
    """Stop when no further ballot can change who wins: exact, and never later than needed.

    A pending ballot may go to any answer, known or new, count as much as it can, or never come. Ties fall as
    in :func:`decide`; with ``report_ties`` as in :func:`decide_or_tie`. Under ``probability`` a later ballot
    can always be surer unless the leader is certain, so there :func:`probable` is what saves calls.

    Args:
        grouping: ballots so far. If a further ballot can join groups (``may_merge``), that is allowed for;
            the winner is then the group that holds the leader's ballots.
        pending: ballots that may still come.
        rule: as in :func:`decide`.
        report_ties: whether a tie is an outcome of its own.

    Raises:
        InputError: when the rule is unknown, or a ballot lacks what it needs.

    >>> from phaseguard.voting import Ballot, group
    >>> two = group([Ballot(0, "A"), Ballot(1, "A")])
    >>> settled(two, [Pending(2), Pending(3)]).group.answer  # a tie goes to A, which has layout 0
    'A'
    >>> settled(two, [Pending(2), Pending(3)], report_ties=True) is None
    True
    """
    if not grouping.groups:
        return None
    scorer = scorer_of(rule)
    coming = [_most(one, rule) for one in pending]
    outcome = decide_or_tie(grouping, rule) if report_ties else decide(grouping, rule)
    best = outcome.candidates[0]
    if not isinstance(outcome, Decision):
        can_break = any(_reach(scorer, one, coming) > best.score for one in _rivals(grouping, None, coming))
        can_merge = grouping.may_merge and bool(coming)
        return None if can_break or can_merge else Stop("settled")
    earliest = min((one.layout for one in pending), default=best.group.strongest)
    for rival in _rivals(grouping, best.group, coming):
        reach = _reach(scorer, rival, coming)
        first = min([earliest, *(group.strongest for group in rival)])
        if reach > best.score or (reach == best.score and (report_ties or first < best.group.strongest)):
            return None
    return Stop("settled", best.group)


def _most(pending: Pending, rule: Rule) -> float:
    """The most that a pending ballot can count."""
    if rule != "weighted":
        return 1.0  # one vote, or a probability of 1
    if pending.strength is None:
        raise InputError(f"The pending ballot of layout {pending.layout} has no strength: use another rule.")
    return pending.strength


def _rivals(grouping: Grouping, leader: Group | None, coming: list[float]) -> list[list[Group]]:
    """Groups that can become one answer other than the leader's; the last is an answer not seen yet."""
    others = [group for group in grouping.groups if group is not leader]
    if not coming:
        return [[group] for group in others]
    if grouping.may_merge:
        return [others]
    return [*([group] for group in others), []]


def _reach(scorer: Scorer, rival: list[Group], coming: list[float]) -> float:
    """The highest score that these groups, as one, can still get."""
    return scorer.combine([*scorer.weights(ballot for group in rival for ballot in group.ballots), *coming])


def agreeing(grouping: Grouping, strong: Collection[int], *, needed: int = 2) -> Stop | None:
    """Stop when layouts at different strong phases gave the same answer.

    Two layouts at one phase say the same thing twice and count once.

    Args:
        grouping: ballots so far, each with its phase.
        strong: the strong phases.
        needed: how many of them have to agree, at least 1.

    Raises:
        InputError: when fewer phases are strong than have to agree.

    >>> from phaseguard.voting import Ballot, group
    >>> found = group([Ballot(0, "A", phase=3), Ballot(1, "B", phase=2), Ballot(2, "a", phase=2)])
    >>> agreeing(found, {2, 3}).group.answer
    'A'
    """
    if not 1 <= needed <= len(set(strong)):
        raise InputError(f"{needed} strong phases cannot agree: there are {len(set(strong))} strong phases.")
    best: Group | None = None
    most = needed - 1
    for group in grouping.groups:  # in order of strength, so the strongest layout wins a tie
        phases = len({ballot.phase for ballot in group.ballots if ballot.phase in strong})
        if phases > most:
            best, most = group, phases
    return Stop("agreement", best) if best else None


def probable(grouping: Grouping, threshold: float = 0.9) -> Stop | None:
    """Stop when the most probable answer so far has at least this probability.

    Args:
        grouping: ballots so far, each with its probability.
        threshold: above 0 and at most 1.

    Raises:
        InputError: when the threshold is out of range, or a ballot has no probability.

    >>> from phaseguard.voting import Ballot, group
    >>> probable(group([Ballot(0, "A", probability=0.95)])).group.answer
    'A'
    """
    if not 0 < threshold <= 1:
        raise InputError(f"threshold={threshold}: a probability above 0 and at most 1 is needed.")
    if not grouping.groups:
        return None
    best = decide(grouping, "probability").winner
    return Stop("probability", best.group) if best.score >= threshold else None


def spent(cost: Cost, budget: Budget, next_call: Cost = Cost(calls=1)) -> Stop | None:
    """Stop when the next call would go over the budget.

    Args:
        cost: of all calls so far.
        budget: the most that they may cost.
        next_call: what the next call is expected to cost.

    >>> spent(Cost(calls=3), Budget(calls=3)).reason
    'budget'
    >>> spent(Cost(2, 900), Budget(tokens=1400), Cost(1, 450)) is None
    True
    """
    total = cost + next_call
    over = (
        (budget.calls is not None and total.calls > budget.calls)
        or (budget.tokens is not None and total.tokens > budget.tokens)
        or (budget.seconds is not None and total.seconds > budget.seconds)
    )
    return Stop("budget") if over else None
