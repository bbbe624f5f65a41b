"""An engine that answers what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

from phaseguard.align.prompt import Prompt
from phaseguard.align.setting import Setting
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile
from phaseguard.testing.completion import Completion
from phaseguard.tokens import TokenizerLike

Answered: TypeAlias = "str | Completion"
Answers: TypeAlias = "Answered | Sequence[Answered] | Callable[[Mapping[str, Any]], Answered]"


class ScriptedEngine:
    """Canned answers.

    Args:
        answers: one answer for every request; a sequence, one for each request in the order of arrival; or a
            function of the request's body. An answer is a string or a :class:`Completion`.
        profile: counts the tokens of prompts, rendered in its chat encoding, and of answers; without one the
            usage is left out.
        tokenizer: reads them in place of the profile's.

    Raises:
        InputError: for answers that are none; from ``reply``, which the server makes a status 400, when the
            sequence is used up or the function returns no answer.

    >>> engine = ScriptedEngine("A-17", profile="deepseek-v4-flash")
    >>> reply = engine.reply({"messages": [{"role": "user", "content": "Which code?"}]}, "")
    >>> reply.prompt_tokens, reply.tokens
    (7, ('A', '-', '17'))
    """

    def __init__(
        self,
        answers: Answers,
        *,
        profile: str | PhaseProfile | None = None,
        tokenizer: TokenizerLike | None = None,
    ) -> None:
        if not (isinstance(answers, str | Completion | Sequence) or callable(answers)):
            raise InputError(
                f"answers is a {type(answers).__name__}: give answers, or a function of the body."
            )
        if tokenizer is not None and profile is None:
            raise InputError("tokenizer= needs profile=, which names the chat encoding.")
        self._answers = answers
        self._setting = None if profile is None else Setting.read(profile, tokenizer=tokenizer)
        self._lock = threading.Lock()
        self._given = 0

    def reply(self, body: Mapping[str, Any], path: str) -> Completion:  # noqa: ARG002 - an engine's signature
        """The answer; see :class:`phaseguard.testing.Engine`."""
        answer = self._next(body)
        if not isinstance(answer, str | Completion):
            raise InputError(f"The script gave a {type(answer).__name__}: let it give a str or a Completion.")
        completion = Completion(answer) if isinstance(answer, str) else answer
        return completion if self._setting is None else _counted(completion, body, self._setting)

    def _next(self, body: Mapping[str, Any]) -> Answered:
        if isinstance(self._answers, str | Completion):
            return self._answers
        if not isinstance(self._answers, Sequence):
            return self._answers(body)
        with self._lock:
            number = self._given
            self._given += 1
        if number >= len(self._answers):
            raise InputError(
                f"The script has {len(self._answers)} answers, and this is request {number + 1}."
            )
        return self._answers[number]


def _counted(completion: Completion, body: Mapping[str, Any], setting: Setting) -> Completion:
    """With the tokens of prompt and answer, where they are not stated."""
    if completion.prompt_tokens is None:
        prompt = Prompt.read(body.get("prompt", body))
        completion = replace(completion, prompt_tokens=setting.encode(prompt.messages, prompt.options).tokens)
    text = completion.text or ""
    if completion.tokens is None and completion.completion_tokens is None:
        edges = [*setting.tokenizer.encode(text).starts.tolist(), len(text)]
        completion = replace(completion, tokens=tuple(text[a:b] for a, b in pairwise(edges)))
    return completion
