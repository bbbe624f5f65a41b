"""The answer of an ensemble, and all that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from phaseguard.ensemble.layouts import LayoutSet
from phaseguard.ensemble.stops import Rules
from phaseguard.ensemble.votes import Answer, Vote
from phaseguard.voting import Ballot, Cost, Decision, Group, Stop, Tie

Ended = Literal["settled", "agreement", "probability", "budget", "all"]
DISAGREEMENT = 0.5  # with no more than this share behind it an answer is disputed
_MEANINGS = {
    "probability": (
        "the highest probability that the model itself gave to this answer; how often such an answer is "
        "right depends on the model and was not measured here"
    ),
    "agreement": (
        "share of the ballots that give this answer; it is no probability of being right, but layouts that "
        "disagree are a sign of an answer that was not retrieved"
    ),
}


@dataclass(frozen=True, slots=True)
class Confidence:
    """A number, and what it means.

    Attributes:
        value: 0 to 1.
        kind: ``probability`` where all ballots of the answer have one, else ``agreement``.
    """

    value: float
    kind: Literal["probability", "agreement"]

    @property
    def meaning(self) -> str:
        """What the number says, in words."""
        return _MEANINGS[self.kind]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What several layouts answered together.

    Attributes:
        answer: the answer that won; None for a tie, where ties are to be reported.
        support: ballots that give it; ``counted``: ballots with any answer, on which the verdict rests.
        confidence: a number with its meaning.
        outcome: every answer with its score under the rule; after an early stop the answer that won is the
            one for which the stop speaks.
        ended: why no more was asked: ``settled`` (no further ballot that the budget of calls allows changes
            the winner), ``agreement`` (two strong phases agree), ``probability`` (an answer passed the
            threshold), ``budget``, or ``all`` (every layout was asked).
        votes: every call that counts, in order of layouts, failed ones too.
        unused: calls that ended after the verdict was clear; ``cancelled``: number of those called off.
        cost: of all calls: those called off count with the tokens of their prompts.
        layouts: what was asked.
        second: what ``on_disagreement`` answered in place of the vote, or None.

    >>> from phaseguard.ensemble import Ensemble
    >>> replies = iter(["Paris", "Rome", "paris."])
    >>> verdict = Ensemble(lambda prompt: next(replies)).ask("Which is the capital of France?")
    >>> verdict.answer, verdict.support, verdict.counted, verdict.ended, round(verdict.agreement, 2)
    ('Paris', 2, 3, 'settled', 0.67)
    """

    answer: str | None
    support: int
    counted: int
    confidence: Confidence
    outcome: Decision | Tie
    ended: Ended
    votes: tuple[Vote, ...]
    unused: tuple[Vote, ...]
    cancelled: int
    cost: Cost
    layouts: LayoutSet
    second: Answer | None = None

    @property
    def agreement(self) -> float:
        """Share of the ballots with an answer that give the most frequent one: low means uncertain."""
        return max(candidate.support for candidate in self.outcome.candidates) / self.counted

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it, without the prompts."""
        return {
            "answer": self.answer,
            "tie": self.answer is None,
            "support": self.support,
            "counted": self.counted,
            "agreement": self.agreement,
            "confidence": {
                "value": self.confidence.value,
                "kind": self.confidence.kind,
                "meaning": self.confidence.meaning,
            },
            "rule": self.outcome.rule,
            "ended": self.ended,
            "candidates": [
                {"answer": one.answer, "support": one.support, "score": one.score}
                for one in self.outcome.candidates
            ],
            "votes": [vote.to_dict() for vote in self.votes],
            "unused": [vote.to_dict() for vote in self.unused],
            "cancelled": self.cancelled,
            "cost": asdict(self.cost),
            "second": None if self.second is None else self.second.text,
        }

    @property
    def disputed(self) -> bool:
        """Whether no answer has more than half of the ballots, or a tie is reported."""
        return self.answer is None or self.agreement <= DISAGREEMENT


def make_verdict(
    rules: Rules,
    votes: Sequence[Vote],
    stop: Stop | None,
    *,
    unused: Sequence[Vote],
    cancelled: int,
    cost: Cost,
    layouts: LayoutSet,
) -> Verdict:
    """Count the votes.

    Raises:
        InputError: when no vote holds an answer.
    """
    won = rules.winner([vote.ballot for vote in votes], stop)
    counted = sum(candidate.support for candidate in won.outcome.candidates)
    group = won.group or won.outcome.candidates[0].group
    return Verdict(
        answer=won.group.answer if won.group else None,
        support=len(group.ballots),
        counted=counted,
        confidence=_confidence(group, counted),
        outcome=won.outcome,
        ended=stop.reason if stop else "all",
        votes=tuple(votes),
        unused=tuple(unused),
        cancelled=cancelled,
        cost=cost,
        layouts=layouts,
    )


def _confidence(group: Group, counted: int) -> Confidence:
    known = [ballot.probability for ballot in group.ballots if ballot.probability is not None]
    if len(known) == len(group.ballots):
        return Confidence(max(known), "probability")
    return Confidence(len(group.ballots) / counted, "agreement")


def overruled(verdict: Verdict, rules: Rules, second: Answer, answer: str) -> Verdict:
    """The verdict with the answer of a second opinion; its support is that among the ballots."""
    ballots = [vote.ballot for vote in verdict.votes]
    number = max(ballot.layout for ballot in ballots) + 1
    weight = min((b.strength for b in ballots if b.strength is not None), default=None)
    mine = Ballot(number, answer, strength=weight, probability=second.probability)
    grouping = rules.grouping([*ballots, mine])
    same = next(group for group in grouping.groups if mine in group.ballots)
    support = len(same.ballots) - 1
    confidence = Confidence(support / verdict.counted, "agreement")
    if second.probability is not None:
        confidence = Confidence(second.probability, "probability")
    return replace(verdict, answer=answer, support=support, confidence=confidence, second=second)
