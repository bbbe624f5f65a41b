"""What is asked of an endpoint, and what comes back; an endpoint is anything that answers questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Question:
    """One request.

    Attributes:
        number: names it among those that are asked together.
        prompt: the text.
        max_tokens: most tokens of the answer.
        extra: what the request says besides, such as the reasoning mode.
    """

    number: int
    prompt: str
    max_tokens: int
    extra: Mapping[str, Any] = field(default_factory=dict)

    def digest(self, model: str) -> str:
        """16 hexadecimal digits that change with the request.

        >>> Question(0, "Hi", 1).digest("m") == Question(1, "Hi", 1).digest("m")
        True
        """
        asked = [model, self.prompt, self.max_tokens, dict(self.extra)]
        return sha256(json.dumps(asked, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """One token of an answer with its alternatives.

    Attributes:
        text: of the token; ``top``: natural log probability of the most probable tokens, this one included.
    """

    text: str
    top: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        text: what it says.
        choices: its tokens with their alternatives; empty where the endpoint gives none.
        prompt_tokens, cached_tokens, completion_tokens: as the endpoint counts them, None where it does not.
    """

    text: str
    choices: tuple[TokenChoice, ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a request ended.

    Attributes:
        number: of its question.
        reply: the answer; None when there is none.
        error: why there is none; holds no secret.
        fatal: whether no other request can succeed either (a wrong key, an unknown model).
        seconds: that it took.
    """

    number: int
    reply: Reply | None
    error: str | None = None
    fatal: bool = False
    seconds: float = 0.0


class Endpoint(Protocol):
    """Answers questions: over HTTP, or by a model in this process."""

    @property
    def model(self) -> str:
        """The model that answers."""

    @property
    def provider(self) -> str | None:
        """Who serves it: a host, or an engine."""

    @property
    def completions(self) -> bool:
        """Whether prompts are continued as they are, without a chat encoding's question and answer."""

    def ask(self, questions: Iterable[Question]) -> Iterator[Outcome]:
        """Ask, and give each outcome as it comes, in any order; after a fatal one those under way."""


def margin(reply: Reply, expected: str) -> float | None:
    """Log probability of the right answer less that of the best wrong token, where they part or are nearest.

    Args:
        reply: an answer with its tokens' alternatives.
        expected: the right answer.

    Returns:
        Nats; None without alternatives. Where the right token is not among them, their least stands for it,
        so the margin is never below what is true.

    >>> margin(Reply("B", (TokenChoice("B", {"B": -0.1, "A": -2.5}),)), "A")
    -2.4
    """
    if not reply.choices:
        return None
    want = expected.strip()
    at = _start(reply, want)
    least: float | None = None
    for choice in reply.choices[at:]:
        fitting = {token: logprob for token, logprob in choice.top.items() if _opens(want, token)}
        others = [logprob for token, logprob in choice.top.items() if token not in fitting]
        if choice.top and (fitting or others):
            floor = min(choice.top.values())
            here = max(fitting.values(), default=floor) - max(others, default=floor)
            least = here if least is None else min(least, here)
        if not _opens(want, choice.text):
            break
        want = want.removeprefix(choice.text.strip()).lstrip()
        if not want:
            break
    return None if least is None else round(least, 6)


def _opens(want: str, token: str) -> bool:
    said = token.strip()
    return bool(said) and (want.startswith(said) or said == want)


def _start(reply: Reply, want: str) -> int:
    """The token at which the answer starts, or should have: the first that could be its beginning."""
    found = "".join(choice.text for choice in reply.choices).find(want)
    length = 0
    for number, choice in enumerate(reply.choices):
        length += len(choice.text)
        if found >= 0 and length > found and choice.text.strip():
            return number
    for number, choice in enumerate(reply.choices):
        if any(_opens(want, token) for token in choice.top):
            return number
    return next((n for n, choice in enumerate(reply.choices) if choice.text.strip()), 0)
