"""On-device models as engines, and as what an ensemble asks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.align.prompt import Prompt
from phaseguard.chat import PlainRenderer
from phaseguard.ensemble import Answer
from phaseguard.errors import InputError
from phaseguard.lab.model import LabModel
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import FIRST_FORM, FIRST_VALUE, PAD, Ints
from phaseguard.lab.words import END, WordTokenizer, write
from phaseguard.testing.checks import MOST_TOP
from phaseguard.testing.completion import LEGACY, Completion, Echo
from phaseguard.voting import answer_probability

_TOKENIZER = WordTokenizer()
_RENDERER = PlainRenderer()


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """A model that reads text behind a prefix.

    Attributes:
        model: the model; ``prefix``: pads in front of every prompt.
    """

    model: LabModel
    prefix: int

    @classmethod
    def make(cls, name_or_model: str | os.PathLike[str] | LabModel, prefix: int, words: int) -> _Reader:
        """Check the arguments and load the model."""
        for name, given, least in (("prefix", prefix, 0), ("answer_tokens", words, 1)):
            if not isinstance(given, int) or isinstance(given, bool) or given < least:
                raise InputError(f"{name}={given!r}: give a whole number from {least}.")
        model = name_or_model if isinstance(name_or_model, LabModel) else load_model(name_or_model)
        return cls(model, prefix)

    def ids(self, text: str) -> Ints:
        """``[T]`` the tokens of a prompt."""
        return np.concatenate([np.full(self.prefix, PAD), _TOKENIZER.encode(text).ids]).astype(np.int64)

    def after(self, ids: Ints, positions: Ints) -> NDArray[np.float64]:
        """``[A, V]`` natural log probabilities of every word after some positions."""
        logits = self.model.logits(ids[None], positions[None])[0].astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))

    def answer(self, text: str, words: int, swap: Callable[[int], int] | None = None) -> Completion:
        """Decode so many words, the most probable at each step; ``swap`` may put others in their place."""
        ids = self.ids(text)
        if not len(ids):
            raise InputError("The prompt is empty: give a text.")
        asked, rows = len(ids), []
        for _ in range(words):
            rows.append(self.after(ids, np.array([len(ids) - 1]))[0])
            word = int(rows[-1].argmax())
            ids = np.append(ids, swap(word) if swap else word)
        answered = ids[asked:].tolist()
        spelled = [write([word]) for word in answered]
        spelled[-1:] = [last.removesuffix(END) for last in spelled[-1:]]
        return Completion(
            "".join(spelled),
            tokens=tuple(spelled),
            logprobs=tuple(float(row[word]) for row, word in zip(rows, answered, strict=True)),
            top=tuple(_top(row, END if at == words - 1 else "") for at, row in enumerate(rows)),
            prompt_tokens=asked,
        )

    def echo(self, text: str) -> Echo:
        """What the model makes of the prompt itself; its prefix is not in it."""
        ids, encoding = self.ids(text), _TOKENIZER.encode(text)
        rows = self.after(ids, np.arange(len(ids) - 1)) if len(ids) > 1 else np.zeros((0, 1))
        rows = rows[max(self.prefix - 1, 0) :]
        own = ids[len(ids) - len(rows) :]
        first: tuple[None, ...] = (None,) * (self.prefix == 0)
        return Echo(
            tuple(text[a:b] for a, b in zip(encoding.starts.tolist(), encoding.ends.tolist(), strict=True)),
            first + tuple(float(row[word]) for row, word in zip(rows, own, strict=True)),
            first + tuple(_top(row) for row in rows),
        )


def _top(row: NDArray[np.float64], without: str = "") -> dict[str, float]:
    """The most probable words as text, less what the text of an answer does not end with."""
    best = np.argsort(-row, kind="stable")[:MOST_TOP].tolist()
    return {write([word]).removesuffix(without): float(row[word]) for word in best}


def _text(body: Any) -> str:
    """The prompt as the chat encoding ``plain`` writes it."""
    prompt = Prompt.read(body)
    return _RENDERER.render(prompt.messages, prompt.options).text


@dataclass(frozen=True)
class LabEngine:
    r"""Answers with an on-device model, whose retrieval depends on phase as that of a compressed cache does.

    The contents of all messages are joined (chat encoding ``plain``) and read by
    :class:`phaseguard.lab.words.WordTokenizer`; :func:`phaseguard.lab.cases.draw_cases` makes prompts that
    the model understands. The usage is exact, and log probabilities are the model's own.

    Attributes:
        name_or_model: a shipped model such as ``csa4-s0``, the path of one, or a loaded model.
        prefix: unknown tokens that the "server" puts in front of every prompt, as a hidden system prompt
            would stand there; the usage counts them.
        wrong: share of answer words replaced by another value word, whatever the phase.
        seed: of which and by what; the same prompt always gives the same answer.
        answer_tokens: words of an answer; 1 unless the request's ``max_tokens`` allows fewer.

    Raises:
        InputError: for an unknown model or a value out of range.

    >>> from phaseguard.lab.cases import draw_cases
    >>> from phaseguard.lab.tasks import Task
    >>> case = draw_cases(Task("records"), 1, period=4, window=8, seed=1)[0]
    >>> reply = LabEngine("full-s0").reply({"messages": [{"role": "user", "content": case.prompt}]}, "")
    >>> reply.text == case.answer_text, reply.prompt_tokens, reply.completion_tokens
    (True, 99, 1)
    """

    name_or_model: str | os.PathLike[str] | LabModel
    prefix: int = 0
    wrong: float = 0.0
    seed: int = 0
    answer_tokens: int = 1
    _reader: _Reader = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.wrong <= 1:
            raise InputError(f"wrong={self.wrong!r}: give a share from 0 to 1.")
        reader = _Reader.make(self.name_or_model, self.prefix, self.answer_tokens)
        object.__setattr__(self, "_reader", reader)

    def reply(self, body: Mapping[str, Any], path: str) -> Completion:
        """The answer; see :class:`phaseguard.testing.Engine`."""
        legacy = path == LEGACY
        text = _text(body["prompt"] if legacy else body)
        most = body.get("max_completion_tokens", body.get("max_tokens"))
        words = self.answer_tokens if most is None else min(most, self.answer_tokens)
        completion = self._reader.answer(text, words, self._swap(text))
        if words < self.answer_tokens:
            completion = replace(completion, finish_reason="length")
        return (
            replace(completion, echo=self._reader.echo(text)) if legacy and body.get("echo") else completion
        )

    def _swap(self, text: str) -> Callable[[int], int]:
        """Puts a wrong word in the place of some, by seed and prompt alone: threads come in any order."""
        digest = sha256(f"{self.seed}\n{text}".encode()).digest()
        rng = np.random.default_rng(np.frombuffer(digest, np.uint32))

        def swap(word: int) -> int:
            if rng.random() >= self.wrong:
                return word
            others = np.setdiff1d(np.arange(FIRST_VALUE, FIRST_FORM), [word])
            return int(rng.choice(others))

        return swap


def lab_ask(
    name_or_model: str | os.PathLike[str] | LabModel, *, prefix: int = 0, answer_tokens: int = 1
) -> Callable[[Any], Answer]:
    r"""A function for :class:`phaseguard.ensemble.Ensemble` that asks an on-device model in this process.

    ``aask`` runs it in threads. Arguments and errors are those of :class:`LabEngine`.

    Returns:
        A function from a string, messages or a payload to an answer with the model's probability.

    >>> lab_ask("full-s0")("bena\n\nkosi\n\n" * 3 + "bena").text
    'kosi'
    """
    reader = _Reader.make(name_or_model, prefix, answer_tokens)

    def ask(prompt: Any) -> Answer:
        completion = reader.answer(_text(prompt), answer_tokens)
        return Answer(
            completion.text or "",
            probability=answer_probability(completion.logprobs or ()),
            tokens=completion.completion_tokens,
            prompt_tokens=completion.prompt_tokens,
        )

    return ask
