"""Calibrated profiles of on-device models, and prompts for them."""

from __future__ import annotations

from functools import lru_cache

from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.padded import calibrated
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task
from phaseguard.lab.words import WordTokenizer
from phaseguard.profiles import PhaseProfile

TOKENIZER = WordTokenizer()
LOAD = Task("records", records=24)


@lru_cache
def profile_of(name: str, task: Task) -> PhaseProfile:
    return calibrated(load_model(name), name, (task,), n=200, seed=11)


def cases(task: Task, n: int) -> tuple[Case, ...]:
    return draw_cases(task, n, period=4, window=8, seed=12)
