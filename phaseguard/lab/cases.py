"""Prompts of on-device models as text, behind some decoration, with the record that a question asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phaseguard.lab.padded import questions
from phaseguard.lab.tasks import CODE, FIRST_FORM, FIRST_VALUE, IS, OF, STOP, THE, Ints, Task
from phaseguard.lab.words import END, write


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One prompt.

    Attributes:
        decoration: blank lines in front of it, one token each.
        context: ``[T]`` its words; ``asked``: ``[k]`` the question behind them.
        start, value, end: words of the context where the asked record starts, its answer starts, and it ends.
        answer: ``[V]`` the right answer.
        others: start and end of every other record of the context.
    """

    decoration: int
    context: Ints
    asked: Ints
    start: int
    value: int
    end: int
    answer: Ints
    others: tuple[tuple[int, int], ...]

    @property
    def prompt(self) -> str:
        """The text as it is sent: decoration, a word to a paragraph, the question."""
        return "\n" * self.decoration + self.text(0, len(self.context)) + write(self.asked).removesuffix(END)

    def text(self, start: int, end: int) -> str:
        """Words of the context as text."""
        return write(self.context[start:end])

    @property
    def record(self) -> str:
        """The asked record as text, without the line ends behind it."""
        return self.text(self.start, self.end).removesuffix(END)

    @property
    def answer_text(self) -> str:
        """The answer as it stands in the record."""
        return write(self.answer).removesuffix(END)

    def phase(self, period: int) -> int:
        """Phase of the answer in the prompt as it is sent."""
        return (self.decoration + self.value) % period


def draw_cases(task: Task, n: int, *, period: int, window: int, seed: int) -> tuple[Case, ...]:
    """Draw prompts, each behind 0 to ``period - 1`` decorative blank lines.

    Args:
        task: what the contexts look like.
        n: number of prompts.
        period: of the model.
        window: its raw window; the asked record stands before it.
        seed: of everything drawn.

    >>> case = draw_cases(Task(), 1, period=4, window=8, seed=0)[0]
    >>> case.prompt.endswith(case.record.split()[0]), case.answer_text == case.record.split()[1]
    (True, True)
    """
    rng = np.random.default_rng(seed)
    drawn = questions(task, n, rng, window=window)
    decorations = rng.integers(0, period, n)
    return tuple(
        Case(
            int(decorations[i]),
            drawn.texts[i],
            drawn.asked[i],
            int(drawn.starts[i]),
            int(drawn.values[i]),
            int(drawn.ends[i]),
            drawn.answers[i],
            _others(drawn.texts[i], task, int(drawn.starts[i])),
        )
        for i in range(n)
    )


def _others(context: Ints, task: Task, asked: int) -> tuple[tuple[int, int], ...]:
    """Every other place where a record of the task's form stands, none of which overlap."""
    key, value = context < FIRST_VALUE, (context >= FIRST_VALUE) & (context < FIRST_FORM)
    if task.setting == "sentences":
        front, behind = (
            [context == THE, context == CODE, context == OF, key, context == IS],
            [context == STOP],
        )
    else:
        front, behind = (
            [key] * task.key_tokens + [context >= FIRST_FORM] * (task.record_front - task.key_tokens),
            [],
        )
    form = [*front, *[value] * task.value_tokens, *behind]
    places = len(context) - len(form) + 1
    fits = np.all([part[i : places + i] for i, part in enumerate(form)], axis=0)
    found: list[tuple[int, int]] = []
    for start in np.flatnonzero(fits).tolist():
        end = start + len(form)
        apart = end <= asked or start >= asked + len(form)
        if apart and (not found or found[-1][1] <= start):
            found.append((start, end))
    return tuple(found)
