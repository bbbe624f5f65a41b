"""Retrieval tasks for the on-device model: records under load, ask-anything filler, sentences.

Every sequence is a context, then questions, each followed by its answer (teacher forced). Tokens are
integers: 128 keys, 128 values, 32 words of filler and form. The three settings differ in what competes:

- ``records``: records (key tokens, then value tokens) between inert filler; only records are asked for.
- ``ask``: the context is keys and values drawn at random; any key that occurs once may be asked for what
  follows it, so every chunk holds competing content and nothing says in advance what will be asked.
- ``sentences``: "the code of K is V ." in text from a Zipf-Markov source over the same words; besides
  the codes any word that occurs once may be asked for its successor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError

Setting = Literal["records", "ask", "sentences"]
SETTINGS: tuple[Setting, ...] = ("records", "ask", "sentences")
KEYS, VALUES, FORM = 128, 128, 32
FIRST_VALUE, FIRST_FORM = KEYS, KEYS + VALUES
VOCABULARY = KEYS + VALUES + FORM + 1
PAD = VOCABULARY - 1  # what a pad is made of: no task draws it
THE, CODE, OF, IS, STOP = range(FIRST_FORM, FIRST_FORM + 5)
_MOST_DRAWS = 200  # texts that are tried before a task counts as impossible
_FREE_FORM = FIRST_FORM + 5  # filler words start behind the words of sentences
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Task:
    """What a batch looks like.

    Attributes:
        setting: records, ask, or sentences.
        context: tokens before the questions.
        records: records (or sentences) in the context; the setting ``ask`` has none of its own.
        questions: questions a sequence.
        value_tokens: tokens of an answer, 1 to 3; ``key_tokens``: of a key, 1 or 2.
        gap: filler tokens between key and value in ``records``.
        echoes: questions that are asked a second time right away, or after one other: what they need stands
            near, as a repeated passage does.
    """

    setting: Setting = "ask"
    context: int = 96
    records: int = 24
    questions: int = 16
    value_tokens: int = 1
    key_tokens: int = 1
    gap: int = 0
    echoes: int = 0

    def __post_init__(self) -> None:
        if self.setting not in SETTINGS:
            raise InputError(f"Unknown setting {self.setting!r}: give one of {', '.join(SETTINGS)}.")
        bounds = {"value_tokens": (1, 3), "key_tokens": (1, 2), "gap": (0, 8), "questions": (1, 512)}
        bounds["echoes"] = (0, self.questions - 1)
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name}={getattr(self, name)}: give {low} to {high}.")
        if self.records < 1 or self.records * self.record_tokens > self.context:
            raise InputError(
                f"{self.records} records of {self.record_tokens} tokens do not fit into {self.context}."
            )

    @property
    def record_tokens(self) -> int:
        """Tokens of one record, form included."""
        return self.record_front + self.value_tokens + (self.setting == "sentences")  # and a full stop

    @property
    def record_front(self) -> int:
        """Tokens of a record in front of its answer."""
        if self.setting == "sentences":
            return 5  # the code of K is
        return self.key_tokens + (self.gap if self.setting == "records" else 0)

    def scaled(self, factor: float) -> Task:
        """The same task with a longer or shorter context and as many records for its length."""
        records = max(1, int(self.records * factor))
        context = max(16, records * self.record_tokens, int(self.context * factor))
        return replace(self, context=context, records=records)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sequences with their questions.

    Attributes:
        tokens: ``[B, T]`` int64.
        positions: ``[B, A]`` int64, the position from which each answer token is predicted.
        targets: ``[B, A]`` int64, the answer tokens; the ``value_tokens`` of one question stand side by side.
        values: ``[B, Q]`` int64, position in the context of the first token of each answer.
        keys: ``[B, Q]`` int64, position of the last key token that stands in front of it.
    """

    tokens: Ints
    positions: Ints
    targets: Ints
    values: Ints
    keys: Ints


def draw(task: Task, batch: int, rng: np.random.Generator) -> Batch:
    """Draw a batch of a task; the same generator state gives the same batch.

    Args:
        task: what to draw.
        batch: number of sequences.
        rng: numpy generator.

    >>> drawn = draw(Task(context=32, questions=4, records=8), 2, np.random.default_rng(0))
    >>> drawn.tokens.shape, drawn.positions.shape
    ((2, 40), (2, 4))
    """
    sequences = [_sequence(task, rng) for _ in range(batch)]
    return Batch(*(np.stack(parts) for parts in zip(*sequences, strict=True)))


def _sequence(task: Task, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    context, asked = _DRAWERS[task.setting](task, rng)
    if task.echoes:
        _echo(task, asked, rng)
    tokens, positions, targets = [context], [], []
    at = len(context)
    for prompt, value in asked:
        answer = context[value : value + task.value_tokens]
        tokens += [prompt, answer]
        positions.append(at + len(prompt) - 1 + np.arange(task.value_tokens))
        targets.append(answer)
        at += len(prompt) + task.value_tokens
    values = np.array([value for _, value in asked])
    keys = values - 1 - (task.gap if task.setting == "records" else 0)
    return np.concatenate(tokens), np.concatenate(positions), np.concatenate(targets), values, keys


Asked = list[tuple[Ints, int]]


def _echo(task: Task, asked: Asked, rng: np.random.Generator) -> None:
    """Ask some questions again, each in place of one of the two behind it that is as long."""
    for at in rng.choice(len(asked) - 1, task.echoes, replace=False) + 1:
        earlier = asked[at - int(rng.integers(1, min(2, at) + 1))]
        if len(earlier[0]) == len(asked[at][0]):
            asked[at] = earlier


def _records(task: Task, rng: np.random.Generator) -> tuple[Ints, Asked]:
    context = rng.integers(_FREE_FORM, PAD, task.context)
    starts = _places(task, rng)
    if task.key_tokens == 1:
        keys = rng.choice(KEYS, task.records, replace=task.records > KEYS)[:, None]
    else:
        keys = rng.integers(0, KEYS, (task.records, 2))
    for start, key in zip(starts, keys, strict=True):
        context[start : start + task.key_tokens] = key
        value = start + task.key_tokens + task.gap
        context[value : value + task.value_tokens] = rng.integers(FIRST_VALUE, FIRST_FORM, task.value_tokens)
    chosen = rng.choice(task.records, task.questions, replace=task.records < task.questions)
    return context, [(keys[i], int(starts[i]) + task.key_tokens + task.gap) for i in chosen]


def _ask(task: Task, rng: np.random.Generator) -> tuple[Ints, Asked]:
    while True:
        is_key = rng.random(task.context) < 0.5
        context = np.where(
            is_key, rng.integers(0, KEYS, task.context), rng.integers(FIRST_VALUE, FIRST_FORM, task.context)
        )
        last = task.context - task.value_tokens
        may = is_key[:last] & np.all([~is_key[i : last + i] for i in range(1, task.value_tokens + 1)], axis=0)
        if task.key_tokens == 1:
            may &= np.bincount(context, minlength=VOCABULARY)[context[:last]] == 1
        else:
            may[1:] &= is_key[: last - 1]
            may[0] = False
        places = np.flatnonzero(may)
        if len(places):
            break
    chosen = rng.choice(places, task.questions, replace=len(places) < task.questions)
    return context, [(context[at - task.key_tokens + 1 : at + 1], int(at) + 1) for at in chosen]


def _sentences(task: Task, rng: np.random.Generator) -> tuple[Ints, Asked]:
    for _ in range(_MOST_DRAWS):
        context, starts, keys, places = _sentence_context(task, rng)
        if len(places):
            break
    else:
        raise InputError(
            f"{task.records} sentences leave no word that occurs once in {task.context} tokens: give a "
            "longer context or fewer records."
        )
    codes = max(1, min(task.records, task.questions // 4))
    asked: Asked = [
        (np.array([OF, keys[i], IS]), int(starts[i]) + 5)
        for i in rng.choice(task.records, codes, replace=False)
    ]
    left = task.questions - codes
    chosen = rng.choice(places, left, replace=len(places) < left)
    return context, asked + [(context[at : at + 1], int(at) + 1) for at in chosen]


def _sentence_context(task: Task, rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """A text with sentences, where they start, their keys, and the words outside that occur once."""
    context = _text(task.context, rng)
    starts = _places(task, rng)
    keys = rng.choice(KEYS, task.records, replace=task.records > KEYS)
    inside = np.zeros(task.context, bool)
    for start, key in zip(starts, keys, strict=True):
        value = rng.integers(FIRST_VALUE, FIRST_FORM, task.value_tokens)
        context[start : start + task.record_tokens] = [THE, CODE, OF, key, IS, *value, STOP]
        inside[start : start + task.record_tokens] = True
    last = task.context - task.value_tokens
    free = ~inside
    may = np.all([free[i : last + i] for i in range(task.value_tokens + 1)], axis=0)
    may &= np.bincount(context, minlength=VOCABULARY)[context[:last]] == 1
    return context, starts, keys, np.flatnonzero(may)


_DRAWERS = {"records": _records, "ask": _ask, "sentences": _sentences}


def _places(task: Task, rng: np.random.Generator) -> Ints:
    """Starts of records that do not overlap, uniformly among all ways to place them."""
    free = task.context - task.records * task.record_tokens
    gaps = np.sort(rng.integers(0, free + 1, task.records))
    return gaps + np.arange(task.records) * task.record_tokens


@lru_cache
def _chain() -> NDArray[np.float64]:
    """Cumulative transition rows of the Zipf-Markov source: each word has its own order of a Zipf law."""
    rng = np.random.default_rng(20260928)
    words = KEYS + VALUES
    zipf = 1.0 / np.arange(1, words + 1)
    common = zipf[rng.permutation(words)] ** 0.5
    rows = np.stack([zipf[rng.permutation(words)] * common for _ in range(words)])
    return np.asarray(np.cumsum(rows / rows.sum(axis=1, keepdims=True), axis=1))


def _text(length: int, rng: np.random.Generator) -> Ints:
    chain = _chain()
    draws = rng.random(length)
    words = np.empty(length, np.int64)
    word = int(rng.integers(0, len(chain)))
    for i, u in enumerate(draws):
        word = min(int(np.searchsorted(chain[word], u)), len(chain) - 1)
        words[i] = word
    return words


def standard_tasks(
    settings: Sequence[Setting] = ("ask",),
    value_tokens: Sequence[int] = (1,),
    *,
    key_tokens: int = 1,
    gaps: Sequence[int] = (0,),
) -> tuple[Task, ...]:
    """The tasks that models are trained on and measured with: these settings with these answer lengths.

    Args:
        settings: each with every answer length.
        value_tokens: answer lengths.
        key_tokens: length of all keys; sentences have one key token whatever this is.
        gaps: tokens between key and answer in ``records``, each with every answer length.

    >>> [(task.setting, task.value_tokens) for task in standard_tasks(("ask", "records"), (1, 2))]
    [('ask', 1), ('records', 1), ('ask', 2), ('records', 2)]
    """
    records = {"records": 24, "ask": 24, "sentences": 4}
    for setting in settings:
        Task(setting, records=1)  # refuses what is not known
    return tuple(
        Task(
            setting,
            records=min(records[setting], 72 // (key_tokens + gap + tokens)),  # a quarter is filler
            value_tokens=tokens,
            key_tokens=1 if setting == "sentences" else key_tokens,
            gap=gap,
        )
        for tokens in value_tokens
        for setting in settings
        for gap in (gaps if setting == "records" else (0,))
    )
