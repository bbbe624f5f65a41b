"""What each defence is worth on an on-device model: accuracy, the worst phase, calls, and tokens added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.model import LabModel
from phaseguard.lab.padded import calibrated
from phaseguard.lab.poll import Asked, Maker, Poll, ask_layouts, poll, poll_phases
from phaseguard.lab.strategies import Defender
from phaseguard.lab.tasks import Task
from phaseguard.profiles import PhaseProfile
from phaseguard.stats import Accuracy, clustered, clustered_by
from phaseguard.voting import Ballot, Pending, Stop, decide, group, probable, settled

CALIBRATION_SEED, SEED = 11, 12  # texts that strengths are measured on are not those they are tried on
STRATEGIES = 15  # rows of the comparison
SURE = 0.9  # an answer with this probability needs no second call


@dataclass(frozen=True, slots=True)
class Row:
    """What one strategy reached.

    Attributes:
        name: of the strategy.
        accuracy: over all prompts.
        by_phase: by the phase that the answer had in the raw prompt.
        calls: mean number of calls a question; ``tokens``: mean number of tokens added a call.
    """

    name: str
    accuracy: Accuracy
    by_phase: tuple[Accuracy, ...]
    calls: float
    tokens: float

    @property
    def worst(self) -> Accuracy:
        """Accuracy at the worst initial phase."""
        return min(self.by_phase, key=lambda phase: phase.mean)


@dataclass(frozen=True, slots=True)
class Demo:
    """The comparison.

    Attributes:
        model: its name.
        task: what was asked.
        n: prompts.
        profile: strengths of the model, measured on padded prompts.
        rows: one a strategy.
    """

    model: str
    task: Task
    n: int
    profile: PhaseProfile
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every figure with its interval, as plain values."""
        return {
            "model": self.model,
            "task": asdict(self.task),
            "n": self.n,
            "profile": self.profile.model_dump(by_alias=True, mode="json"),
            "rows": [_row_dict(row) for row in self.rows],
        }


def _row_dict(row: Row) -> dict[str, Any]:
    worst = row.worst
    return {
        "strategy": row.name,
        "accuracy": row.accuracy.to_dict(),
        "worst_phase": row.by_phase.index(worst),
        "worst": worst.to_dict(),
        "by_phase": [phase.to_dict() for phase in row.by_phase],
        "calls": round(row.calls, 3),
        "tokens_added": round(row.tokens, 2),
    }


@dataclass(frozen=True, slots=True)
class _Verdict:
    answer: str
    calls: int


_Rule = Callable[[Sequence[Ballot]], _Verdict]


class _Bench:
    """The prompts, the model, and what was found so far."""

    def __init__(self, model: LabModel, defender: Defender, cases: Sequence[Case], seed: int) -> None:
        self.model, self.defender, self.cases = model, defender, cases
        self._period = defender.profile.period
        self._rng = np.random.default_rng(seed)
        self._phases = np.array([case.phase(self._period) for case in cases])
        self._expected = np.stack([case.answer for case in cases])

    def single(self, name: str, make: Maker) -> Row:
        """A strategy of one call."""
        return self.of(name, ask_layouts(self.model, self.cases, make))

    def of(self, name: str, asked: Asked) -> Row:
        """The row of a strategy of one call that was asked already."""
        return self.row(name, asked.replies.right(self._expected), 1.0, asked.added)

    def voted(self, name: str, asked: Poll, rule: _Rule) -> Row:
        """The row of a strategy of several calls."""
        verdicts = [rule(ballots) for ballots in asked.ballots()]
        right = asked.right([verdict.answer for verdict in verdicts])
        added = [tokens for one in asked.asked for tokens in one.added]
        return self.row(name, right, float(np.mean([verdict.calls for verdict in verdicts])), added)

    def row(self, name: str, right: NDArray[np.bool_], calls: float, added: Sequence[int]) -> Row:
        """Accuracy over all prompts and by the answer's raw phase."""
        each = np.arange(len(right))
        by_phase = clustered_by(right, each, self._phases, self._period)
        return Row(name, clustered(right, each), by_phase, calls, float(np.mean(added)))

    def rows(self) -> Iterator[Row]:
        """All strategies, one after the other."""
        defender = self.defender
        yield self.single("raw", defender.raw)
        yield self.single("normalize only", defender.normalized)
        aligned = ask_layouts(self.model, self.cases, defender.aligned)
        yield self.of("aligned", aligned)
        pads = iter(aligned.added)
        yield self.single(
            "as many pads, anywhere (control)", lambda c: defender.shuffled(c, next(pads), self._rng)
        )
        yield self.single("all records aligned", defender.aligned_all)
        yield self.single("isolated, no strengths needed", defender.isolated)
        yield self.single("aligned and isolated", defender.aligned_isolated)
        yield self.single("repeated in the raw window", defender.repeated)
        yield from self._votes()

    def _votes(self) -> Iterator[Row]:
        asked = poll_phases(self.model, self.defender, self.cases)
        layouts = len(asked.asked)
        yield self.voted(f"vote over {layouts}", asked, _whole_vote)
        yield from self._same_phase(layouts)
        yield self.voted(f"vote over {layouts}, stopped when decided", asked, _settled_vote)
        yield self.voted(f"most probable of {layouts}", asked, _most_probable)
        yield self.voted(f"most probable, stopped at {SURE:.0%}", asked, _probable_enough)

    def _same_phase(self, layouts: int) -> Iterator[Row]:
        """Controls for the vote: as many calls and different prompts, but the answer keeps its phase.

        The model is deterministic, so the prompts must differ; they do by 0, 1, 2, ... whole periods of pads.
        In front of the prompt these leave every word its phase and its neighbours, so that nothing but the
        number of calls differs from "normalize only". In front of the record they also thin out its chunks,
        which helps or harms alone: that vote is to be compared with the row behind it, the best of its
        layouts asked once, chosen in hindsight.
        """
        defender = self.defender
        front = [partial(defender.same_phase, periods=periods) for periods in range(layouts)]
        thinned = [partial(defender.same_phase_thinned, periods=periods) for periods in range(layouts)]
        asked = poll(self.model, self.cases, front)
        yield self.voted(f"vote over {layouts}, one phase (control)", asked, _whole_vote)
        asked = poll(self.model, self.cases, thinned)
        yield self.voted("the same, pads at the record (control)", asked, _whole_vote)
        alone = [self.of("the best of these alone (control)", one) for one in asked.asked]
        yield max(alone, key=lambda row: row.accuracy.mean)


def _whole_vote(ballots: Sequence[Ballot]) -> _Verdict:
    return _Verdict(decide(group(ballots)).answer, len(ballots))


def _most_probable(ballots: Sequence[Ballot]) -> _Verdict:
    return _Verdict(decide(group(ballots), "probability").answer, len(ballots))


def _settled_vote(ballots: Sequence[Ballot]) -> _Verdict:
    pending = [Pending(ballot.layout) for ballot in ballots]
    return _until(ballots, lambda so_far: settled(group(so_far), pending[len(so_far) :]), "majority")


def _probable_enough(ballots: Sequence[Ballot]) -> _Verdict:
    return _until(ballots, lambda so_far: probable(group(so_far), SURE), "probability")


def _until(
    ballots: Sequence[Ballot], check: Callable[[Sequence[Ballot]], Stop | None], rule: Any
) -> _Verdict:
    for calls in range(1, len(ballots)):
        if check(ballots[:calls]):
            return _Verdict(decide(group(ballots[:calls]), rule).answer, calls)
    return _Verdict(decide(group(ballots), rule).answer, len(ballots))


def run_demo(
    model: LabModel,
    name: str,
    *,
    task: Task | None = None,
    n: int = 500,
    seed: int = SEED,
    report: Callable[[str], None] | None = None,
) -> Demo:
    """Compare the defences on one model.

    Args:
        model: a trained model with a compressed cache.
        name: its name, for the report.
        task: what to ask; ask-anything filler of 96 tokens by default.
        n: prompts.
        seed: of the prompts.
        report: called with the name of each strategy when it is done.

    Raises:
        InputError: for full attention, which has no phase.

    >>> from phaseguard.lab.store import load_model
    >>> demo = run_demo(load_model("csa4-s0"), "csa4-s0", n=40)
    >>> [row.name for row in demo.rows][:3]
    ['raw', 'normalize only', 'aligned']
    """
    if model.spec.full:
        raise InputError("Full attention has no phase: choose a scheme with a compressed cache.")
    task = task or Task()
    profile = calibrated(model, name, (task,), seed=CALIBRATION_SEED)
    cases = draw_cases(task, n, period=profile.period, window=model.spec.raw, seed=seed)
    rows = []
    for row in _Bench(model, Defender.of(profile), cases, seed).rows():
        rows.append(row)
        if report is not None:
            report(row.name)
    return Demo(name, task, n, profile, tuple(rows))
