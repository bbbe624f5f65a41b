"""What a call gives back, and the vote that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from phaseguard.ensemble.layouts import Layout
from phaseguard.errors import InputError
from phaseguard.voting import Ballot


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered; a plain string will do where nothing else is known.

    Attributes:
        text: the answer.
        probability: probability the model gave it, see :func:`phaseguard.voting.answer_probability`.
        tokens: tokens of the answer, as the endpoint counts them.
        prompt_tokens: tokens of the prompt, likewise; ``cached_tokens``: those of them read from a cache.
        raw: whatever the caller wants to find again in the verdict, such as the endpoint's response.

    >>> Answer("42", probability=0.9).text
    '42'
    """

    text: str
    probability: float | None = None
    tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    raw: Any = None

    @classmethod
    def read(cls, given: object) -> Answer:
        """What a caller's function returned.

        Raises:
            InputError: when it is neither a string nor an answer.
        """
        if isinstance(given, Answer):
            return given
        if isinstance(given, str):
            return cls(given)
        raise InputError(f"ask returned {type(given).__name__}: let it return a str or an Answer.")


@dataclass(frozen=True, slots=True)
class Reply:
    """How a call ended.

    Attributes:
        layout: what was asked.
        result: the answer, or the error that the call raised.
        seconds: that it took.
        at: seconds from the first call's start to this one's end.
    """

    layout: Layout
    result: Answer | Exception
    seconds: float
    at: float


@dataclass(frozen=True, slots=True)
class Vote:
    """One call and what it counts.

    Attributes:
        layout: number of its layout; ``phase``, ``strength``: as in
            :class:`~phaseguard.ensemble.layouts.Layout`.
        answer: the final answer in the reply; None when the call failed or no answer stands in it.
        reply: the answer as it came; None when the call failed.
        error: what the call raised, or None.
        seconds: that the call took; ``at``: seconds from the first call's start to this one's end.
        tokens: of prompt and answer, counted by the endpoint where it says so, else the request's own and
            those expected of an answer; None for a model whose requests are not encoded.
    """

    layout: int
    phase: int | None
    strength: float | None
    answer: str | None
    reply: Answer | None
    error: Exception | None
    seconds: float
    at: float
    tokens: int | None

    @property
    def failure(self) -> str | None:
        """Why it holds no answer, in words; None when it holds one."""
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return None if self.answer and self.answer.strip() else "a reply without an answer"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        reply = self.reply
        return {
            "layout": self.layout,
            "phase": self.phase,
            "strength": self.strength,
            "answer": self.answer,
            "reply": None if reply is None else reply.text,
            "probability": None if reply is None else reply.probability,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "cached_tokens": None if reply is None else reply.cached_tokens,
            "error": self.failure,
        }

    @property
    def ballot(self) -> Ballot:
        """The ballot that it casts.

        Raises:
            InputError: when the reply's probability is none.
        """
        probability = None if self.reply is None else self.reply.probability
        return Ballot(self.layout, self.answer, self.phase, self.strength, probability)
