"""One question from the first call to the verdict; it makes no call: sync and async drive the same steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from phaseguard.ensemble.layouts import Layout, LayoutSet
from phaseguard.ensemble.stops import Rules
from phaseguard.ensemble.verdict import Verdict, make_verdict, overruled
from phaseguard.ensemble.votes import Answer, Reply, Vote
from phaseguard.errors import AllCallsFailedError, InputError
from phaseguard.voting import Budget, Cost, Stop, spent


@dataclass(frozen=True, slots=True)
class Start:
    """Start these calls, possibly none, wait until one ends, and send back the replies of all that have."""

    layouts: tuple[Layout, ...]


@dataclass(frozen=True, slots=True)
class Consult:
    """Hand this verdict to ``on_disagreement`` and send back what it says."""

    verdict: Verdict


Step: TypeAlias = Start | Consult
Steps: TypeAlias = Generator[Step, tuple[Reply, ...] | Answer | None, Verdict]


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be spent.

    Attributes:
        concurrency: calls under way at once, after the first has ended.
        budget: the most that a question may cost.
        answer_tokens: tokens expected of an answer.
    """

    concurrency: int
    budget: Budget
    answer_tokens: int

    def affordable(self, layouts: LayoutSet) -> tuple[Layout, ...]:
        """The layouts that the budget of calls allows.

        Raises:
            InputError: when it allows none.
        """
        if self.budget.calls == 0:
            raise InputError("A budget of 0 calls asks nothing: give at least 1, or None.")
        return layouts.layouts[: self.budget.calls]

    def estimate(self, layout: Layout) -> Cost:
        """What one call is expected to cost."""
        return Cost(1, (layout.tokens or 0) + self.answer_tokens)


@dataclass(slots=True)
class Poll:
    """The state of one question.

    Votes are counted in the order of layouts, whichever call ends first: so the verdict is the one that
    asking one after the other gives.
    """

    layouts: LayoutSet
    rules: Rules
    limits: Limits
    extract: Callable[[str], str | None]
    consult: bool
    asked: tuple[Layout, ...] = ()
    waiting: deque[Layout] = field(default_factory=deque)
    running: dict[int, Layout] = field(default_factory=dict)
    arrived: dict[int, Vote] = field(default_factory=dict)
    counted: list[Vote] = field(default_factory=list)
    stop: Stop | None = None

    def __post_init__(self) -> None:
        self.asked = self.limits.affordable(self.layouts)
        self.waiting.extend(self.asked)

    def steps(self) -> Steps:
        """Yield what to do and take what came of it; return the verdict.

        Raises:
            AllCallsFailedError: when no call gave an answer; it carries them all.
            InputError: when a reply lacks what the rules need.
        """
        while self.stop is None:
            started = self._start()
            if not self.running:
                break
            replies = yield Start(started)
            assert isinstance(replies, tuple)  # noqa: S101 - the drivers answer a Start with replies
            self._take(replies)
        verdict = self._verdict()
        if self.consult and verdict.disputed:
            second = yield Consult(verdict)
            if isinstance(second, Answer) and (answer := self.extract(second.text)):
                return overruled(verdict, self.rules, second, answer)
        return verdict

    def _start(self) -> tuple[Layout, ...]:
        """The calls to start now: the first alone, so that the next ones find its prefix cached."""
        started: list[Layout] = []
        most = self.limits.concurrency if self.arrived else 1
        while self.waiting and len(self.running) < most:
            layout = self.waiting[0]
            if spent(self._cost(), self.limits.budget, self._next(layout)):
                if not self.arrived and not self.running:
                    raise InputError(
                        f"The budget does not allow the first call, about {layout.tokens} tokens: raise it."
                    )
                self.waiting.clear()
                break
            self.waiting.popleft()
            self.running[layout.number] = layout
            started.append(layout)
        return tuple(started)

    def _next(self, layout: Layout) -> Cost:
        """What a call is expected to cost, its seconds being the mean of those before."""
        seconds = [vote.seconds for vote in self.arrived.values()]
        return self.limits.estimate(layout) + Cost(seconds=sum(seconds) / len(seconds) if seconds else 0.0)

    def _cost(self) -> Cost:
        """Of every call so far, those under way as estimated."""
        total = Cost(seconds=max((vote.at for vote in self.arrived.values()), default=0.0))
        for vote in self.arrived.values():
            total += Cost(1, vote.tokens or 0)
        for layout in self.running.values():
            total += self.limits.estimate(layout)
        return total

    def _take(self, replies: tuple[Reply, ...]) -> None:
        for reply in replies:
            layout = self.running.pop(reply.layout.number)
            self.arrived[layout.number] = self._vote(layout, reply)
        while len(self.counted) in self.arrived:
            self.counted.append(self.arrived[len(self.counted)])
            ballots = [vote.ballot for vote in self.counted]
            self.stop = self.rules.check(ballots, self.asked[len(ballots) :])
            if self.stop is not None:
                return

    def _vote(self, layout: Layout, reply: Reply) -> Vote:
        answer = reply.result if isinstance(reply.result, Answer) else None
        tokens = layout.tokens
        if answer is not None and answer.prompt_tokens is not None:
            tokens = answer.prompt_tokens
        if tokens is not None and answer is not None:
            tokens += self.limits.answer_tokens if answer.tokens is None else answer.tokens
        return Vote(
            layout=layout.number,
            phase=layout.phase,
            strength=layout.strength,
            answer=None if answer is None else self.extract(answer.text),
            reply=answer,
            error=reply.result if isinstance(reply.result, Exception) else None,
            seconds=reply.seconds,
            at=reply.at,
            tokens=tokens,
        )

    def _verdict(self) -> Verdict:
        if all(vote.ballot.missing for vote in self.counted):
            raise _all_failed(self.counted)
        stop = self.stop
        if stop is None and len(self.counted) < len(self.layouts):
            stop = Stop("budget")
        unused = [vote for number, vote in sorted(self.arrived.items()) if number >= len(self.counted)]
        return make_verdict(
            self.rules,
            self.counted,
            stop,
            unused=unused,
            cancelled=len(self.running),
            cost=self._cost(),
            layouts=self.layouts,
        )


def _all_failed(votes: list[Vote]) -> AllCallsFailedError:
    reasons = dict.fromkeys(str(vote.failure) for vote in votes)
    return AllCallsFailedError(
        f"None of {len(votes)} calls gave an answer ({'; '.join(reasons)}): see .votes of this error, and "
        "let ask retry what can be retried.",
        votes,
    )
