"""Who wins: plurality, votes weighted by strength, or the probability of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from phaseguard.errors import InputError, did_you_mean
from phaseguard.voting.ballots import Ballot, Group, Grouping

Rule = Literal["majority", "weighted", "probability", "probability-sum"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that stands for election.

    Attributes:
        group: its ballots.
        score: what the rule gives it.
    """

    group: Group
    score: float

    @property
    def answer(self) -> str:
        """The answer as it is shown."""
        return self.group.answer

    @property
    def support(self) -> int:
        """Number of its ballots."""
        return len(self.group.ballots)


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer won.

    Attributes:
        rule: the rule that was used.
        candidates: all answers, the winner first, then by score, then by their strongest layouts.
        missing: number of ballots without an answer.
    """

    rule: Rule
    candidates: tuple[Candidate, ...]
    missing: int

    @property
    def winner(self) -> Candidate:
        """The answer that won."""
        return self.candidates[0]

    @property
    def answer(self) -> str:
        """The winner's answer as it is shown."""
        return self.winner.answer

    @property
    def tie_broken(self) -> bool:
        """Whether another answer has the same score, and the strongest layout decided."""
        return len(self.candidates) > 1 and self.candidates[1].score == self.winner.score

    @property
    def agreement(self) -> float:
        """Share of the ballots with an answer that are the winner's, whatever the rule."""
        return self.winner.support / sum(candidate.support for candidate in self.candidates)


@dataclass(frozen=True, slots=True)
class Tie:
    """Several answers have the highest score.

    Attributes:
        rule: the rule that was used.
        candidates: all answers, those that tie first.
        missing: number of ballots without an answer.
    """

    rule: Rule
    candidates: tuple[Candidate, ...]
    missing: int

    @property
    def tied(self) -> tuple[Candidate, ...]:
        """The answers with the highest score, by their strongest layouts."""
        best = self.candidates[0].score
        return tuple(candidate for candidate in self.candidates if candidate.score == best)


def decide(grouping: Grouping, rule: Rule = "majority") -> Decision:
    """Return the winner; on a tie, the answer with the strongest layout among its ballots.

    Rules, by the score of an answer:

    - ``majority``: number of its ballots. The answer with most wins (a plurality, as in self-consistency:
      Wang et al., `arXiv:2203.11171 <https://arxiv.org/abs/2203.11171>`_); more than half is not needed.
    - ``weighted``: sum of the strengths of its layouts. Sums are compared to 12 digits.
    - ``probability``: the highest probability among its ballots. On the on-device models this beats the
      vote: a layout that reads the record is sure of it, and layouts that fail are unsure, each in its own
      way, so one sure ballot says more than two unsure ones that agree.
    - ``probability-sum``: sum of the probabilities of its ballots, as in weighted self-consistency; better
      where probabilities are poorly calibrated, since one overconfident ballot cannot win alone.

    Args:
        grouping: ballots of one question, see :func:`phaseguard.voting.group`.
        rule: one of the above.

    Raises:
        InputError: when no ballot holds an answer, the rule is unknown, or a ballot lacks what it needs.

    >>> from phaseguard.voting import Ballot, group
    >>> answers = [("A", 0.97), ("B", 0.4), ("b", 0.5)]
    >>> found = group(Ballot(n, answer, probability=p) for n, (answer, p) in enumerate(answers))
    >>> decide(found).answer, decide(found, "probability").answer
    ('B', 'A')
    """
    if not grouping.groups:
        raise InputError(
            f"None of {len(grouping.missing)} ballots holds an answer: there is nothing to decide."
        )
    scorer = scorer_of(rule)
    candidates = [Candidate(group, scorer.score(group.ballots)) for group in grouping.groups]
    candidates.sort(key=lambda candidate: (-candidate.score, candidate.group.strongest))
    return Decision(rule, tuple(candidates), len(grouping.missing))


def decide_or_tie(grouping: Grouping, rule: Rule = "majority") -> Decision | Tie:
    """As :func:`decide`, but a tie is returned as a :class:`Tie` and not broken.

    Raises:
        InputError: as :func:`decide`.

    >>> from phaseguard.voting import Ballot, group
    >>> [one.answer for one in decide_or_tie(group([Ballot(0, "A"), Ballot(1, "B")])).tied]
    ['A', 'B']
    """
    decision = decide(grouping, rule)
    return Tie(rule, decision.candidates, decision.missing) if decision.tie_broken else decision


@dataclass(frozen=True, slots=True)
class Scorer:
    """How a rule scores: what one ballot counts, and what several count together.

    Attributes:
        weigh: what a ballot counts.
        combine: score of ballots that count so much; more ballots never give less.
        needs: the attribute of a ballot without which it cannot be weighed, or None.
    """

    weigh: Callable[[Ballot], float | None]
    combine: Callable[[Iterable[float]], float]
    needs: str | None = None

    def weights(self, ballots: Iterable[Ballot]) -> list[float]:
        """What each ballot counts.

        Raises:
            InputError: when a ballot lacks what is needed.
        """
        weights = []
        for ballot in ballots:
            weight = self.weigh(ballot)
            if weight is None:
                raise InputError(
                    f"The ballot of layout {ballot.layout} has no {self.needs}: use another rule or stop."
                )
            weights.append(weight)
        return weights

    def score(self, ballots: Iterable[Ballot]) -> float:
        """Score of ballots that agree."""
        return self.combine(self.weights(ballots))


def _total(weights: Iterable[float]) -> float:
    # twelve digits, so that 0.1 + 0.2 ties with 0.3, in whatever order they are added
    return float(f"{math.fsum(weights):.12g}")


_SCORERS: dict[Rule, Scorer] = {
    "majority": Scorer(lambda _: 1.0, sum),
    "weighted": Scorer(lambda ballot: ballot.strength, _total, "strength"),
    "probability": Scorer(lambda ballot: ballot.probability, max, "probability"),
    "probability-sum": Scorer(lambda ballot: ballot.probability, _total, "probability"),
}


def scorer_of(rule: Rule) -> Scorer:
    """How a rule scores.

    Raises:
        InputError: when the rule is unknown.

    >>> scorer_of("majority").combine([1.0, 1.0])
    2.0
    """
    if not isinstance(rule, str) or rule not in _SCORERS:
        raise InputError(f"There is no rule {rule!r}. {did_you_mean(str(rule), get_args(Rule))}")
    return _SCORERS[rule]
