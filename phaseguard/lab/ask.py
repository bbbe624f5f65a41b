"""Asking an on-device model many prompts of any lengths: one batch for each length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.lab.model import LabModel
from phaseguard.lab.tasks import Ints

_BATCH = 32  # more does not stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """What a model answered.

    Attributes:
        answers: ``[n, V]`` int64, the most probable word at each place of the answer.
        probability: ``[n]`` float64, of the whole answer, as the model gives it.
    """

    answers: Ints
    probability: NDArray[np.float64]

    def right(self, expected: Ints) -> NDArray[np.bool_]:
        """``[n]`` whether all words of each answer are the expected ones."""
        return np.asarray((self.answers == expected).all(-1))


def ask(model: LabModel, prompts: Sequence[Ints], answer_tokens: int = 1) -> Replies:
    """Decode an answer to every prompt, the most probable word at each step.

    Args:
        model: a trained model.
        prompts: token ids, each ``[T]`` with a length of its own; the answer follows the last one.
        answer_tokens: words to decode.

    Raises:
        InputError: for an empty prompt or ids out of range.

    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import Task, draw
    >>> drawn = draw(Task(questions=1), 8, np.random.default_rng(0))
    >>> replies = ask(load_model("full-s0"), list(drawn.tokens[:, :-1]))
    >>> replies.right(drawn.targets).all(), replies.probability.shape
    (np.True_, (8,))
    """
    lengths = np.array([len(prompt) for prompt in prompts])
    if not lengths.all():
        raise InputError("An empty prompt cannot be asked.")
    answers = np.zeros((len(prompts), answer_tokens), np.int64)
    probability = np.ones(len(prompts))
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length)
        for start in range(0, len(same), _BATCH):
            rows = same[start : start + _BATCH]
            tokens = np.stack([prompts[row] for row in rows])
            answers[rows], probability[rows] = _decode(model, tokens, answer_tokens)
    return Replies(answers, probability)


def _decode(model: LabModel, tokens: Ints, steps: int) -> tuple[Ints, NDArray[np.float64]]:
    probability = np.ones(len(tokens))
    first = tokens.shape[1]
    for _ in range(steps):
        last = np.full((len(tokens), 1), tokens.shape[1] - 1)
        logits = model.logits(tokens, last)[:, 0].astype(np.float64)
        word = logits.argmax(-1)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        probability *= shares.max(-1) / shares.sum(-1)
        tokens = np.concatenate([tokens, word[:, None]], 1)
    return tokens[:, first:], probability
