"""An on-device model as what an ensemble asks, and its calibrated profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from phaseguard.ensemble import Answer
from phaseguard.lab.ask import ask
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.padded import calibrated
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task
from phaseguard.lab.words import WordTokenizer, write
from phaseguard.profiles import PhaseProfile

TOKENIZER = WordTokenizer()
LOAD = Task("records", records=24)


def asker(name: str) -> Callable[[str], Answer]:
    """A function from a prompt to what the model answers, with its probability."""
    model = load_model(name)

    def answer(prompt: str) -> Answer:
        ids = TOKENIZER.encode(prompt).ids.astype(np.int64)
        replies = ask(model, [ids])
        return Answer(write(replies.answers[0]).strip(), min(1.0, float(replies.probability[0])), tokens=1)

    return answer


@lru_cache
def profile_of(name: str, task: Task) -> PhaseProfile:
    return calibrated(load_model(name), name, (task,), n=200, seed=11)


def cases(task: Task, n: int) -> tuple[Case, ...]:
    return draw_cases(task, n, period=4, window=8, seed=12)
