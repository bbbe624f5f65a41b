"""Several layouts of each prompt, what a model answered to them, and the ballots of each question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from phaseguard.lab.ask import Replies, ask
from phaseguard.lab.cases import Case
from phaseguard.lab.model import LabModel
from phaseguard.lab.strategies import Defender, Layout
from phaseguard.lab.tasks import Ints
from phaseguard.voting import Ballot

Maker = Callable[[Case], Layout]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One layout of every prompt, and the model's replies.

    Attributes:
        layouts: one a prompt.
        replies: ``[n]`` answers with their probabilities.
    """

    layouts: tuple[Layout, ...]
    replies: Replies

    @property
    def added(self) -> tuple[int, ...]:
        """Tokens added to each prompt."""
        return tuple(layout.added for layout in self.layouts)


@dataclass(frozen=True, slots=True, eq=False)
class Poll:
    """Several layouts of every prompt, in the order in which they are asked.

    Attributes:
        asked: one a layout.
        expected: ``[n, V]`` the right answers.
    """

    asked: tuple[Asked, ...]
    expected: Ints

    def ballots(self) -> tuple[tuple[Ballot, ...], ...]:
        """The ballots of each question, one a layout."""
        return tuple(
            tuple(_ballot(number, asked, row) for number, asked in enumerate(self.asked))
            for row in range(len(self.expected))
        )

    def right(self, answers: Sequence[str]) -> NDArray[np.bool_]:
        """``[n]`` whether each answer, spelled as ballots spell theirs, is the expected one."""
        return np.array([a == _spell(e) for a, e in zip(answers, self.expected, strict=True)])


def ask_layouts(model: LabModel, cases: Sequence[Case], make: Maker) -> Asked:
    """Lay out every prompt and ask the model.

    Args:
        model: a trained model.
        cases: prompts whose answers have one length.
        make: a layout of a prompt, such as a method of a :class:`Defender`.

    >>> from phaseguard.lab.cases import draw_cases
    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import Task
    >>> cases = draw_cases(Task(), 3, period=4, window=8, seed=0)
    >>> bare = lambda case: Layout(np.concatenate([case.context, case.asked]), 0, case.value % 4)
    >>> asked = ask_layouts(load_model("csa4-s0"), cases, bare)
    >>> asked.added, asked.replies.answers.shape
    ((0, 0, 0), (3, 1))
    """
    layouts = tuple(make(case) for case in cases)
    return Asked(layouts, ask(model, [layout.ids for layout in layouts], len(cases[0].answer)))


def poll(model: LabModel, cases: Sequence[Case], makers: Sequence[Maker]) -> Poll:
    """Ask the model several layouts of every prompt.

    Args:
        model: a trained model.
        cases: prompts whose answers have one length.
        makers: one a layout, in the order of asking.

    >>> from phaseguard.lab.cases import draw_cases
    >>> from phaseguard.lab.padded import calibrated
    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import Task
    >>> model = load_model("csa4-s0")
    >>> defender = Defender.of(calibrated(model, "csa4-s0", (Task(),), n=100))
    >>> cases = draw_cases(Task(), 3, period=4, window=8, seed=0)
    >>> [len(ballots) for ballots in poll(model, cases, [defender.raw, defender.isolated]).ballots()]
    [2, 2, 2]
    """
    expected = np.stack([case.answer for case in cases])
    return Poll(tuple(ask_layouts(model, cases, make) for make in makers), expected)


def poll_phases(model: LabModel, defender: Defender, cases: Sequence[Case]) -> Poll:
    """Ask with the answer on each phase, the strongest first: what an ensemble asks when it asks all.

    Args:
        model: a trained model.
        defender: knows the strengths of its phases.
        cases: prompts whose answers have one length.

    >>> from phaseguard.lab.cases import draw_cases
    >>> from phaseguard.lab.padded import calibrated
    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import Task
    >>> model = load_model("csa4-s0")
    >>> defender = Defender.of(calibrated(model, "csa4-s0", (Task(),), n=100))
    >>> asked = poll_phases(model, defender, draw_cases(Task(), 1, period=4, window=8, seed=0))
    >>> [ballot.phase for ballot in asked.ballots()[0]] == list(defender.order)
    True
    """
    return poll(model, cases, [partial(defender.at_phase, phase=phase) for phase in defender.order])


def _ballot(number: int, asked: Asked, row: int) -> Ballot:
    return Ballot(
        number,
        _spell(asked.replies.answers[row]),
        phase=asked.layouts[row].phase,
        probability=min(1.0, float(asked.replies.probability[row])),
    )


def _spell(answer: NDArray[np.int64]) -> str:
    return " ".join(f"word{word}" for word in answer.tolist())
