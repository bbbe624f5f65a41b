"""What an engine answers, and what an engine is."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phaseguard.errors import InputError

CHAT, LEGACY = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that the model wants.

    Attributes:
        name: of the function; ``arguments``: JSON text.

    >>> ToolCall("look_up", '{"code": "A-17"}').name
    'look_up'
    """

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class Echo:
    """Tokens of the prompt, for legacy completions with ``echo``.

    Attributes:
        tokens: their texts, which make up the prompt.
        logprobs: natural log probability of each after those before it; None for the first.
        top: at each place the most probable tokens with their log probabilities, or None.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]
    top: tuple[Mapping[str, float] | None, ...] | None = None

    def __post_init__(self) -> None:
        _check_lengths("Echo", self.tokens, {"logprobs": self.logprobs, "top": self.top})


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer.

    Attributes:
        text: None for an answer that is tool calls alone.
        tool_calls: what tools it calls.
        tokens: the texts of its tokens, which make up ``text``; streams are cut there. None when not known.
        logprobs: natural log probability of each token; they are sent when the request asks for them.
        top: at each place the most probable tokens with their log probabilities, likewise.
        prompt_tokens, cached_tokens, completion_tokens: what the usage says; it is left out when the first
            is not known. ``completion_tokens`` is the number of ``tokens`` unless it is given.
        finish_reason: None for ``tool_calls`` where there are some, else ``stop``.
        echo: tokens of the prompt, for legacy completions that ask for them.

    Raises:
        InputError: when the lists differ in length or the tokens are not those of the text.

    >>> Completion("A-17", tokens=("A", "-17"), logprobs=(-0.1, -0.2)).completion_tokens
    2
    """

    text: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: tuple[str, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top: tuple[Mapping[str, float], ...] | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    echo: Echo | None = None

    def __post_init__(self) -> None:
        if self.tokens is None:
            if self.logprobs is not None or self.top is not None:
                raise InputError("A completion with logprobs or top needs tokens=, the text of each token.")
            return
        if "".join(self.tokens) != (self.text or ""):
            raise InputError(f"The tokens {self.tokens!r} do not make up the text {self.text!r}.")
        _check_lengths("Completion", self.tokens, {"logprobs": self.logprobs, "top": self.top})
        if self.completion_tokens is None:
            object.__setattr__(self, "completion_tokens", len(self.tokens))

    @property
    def finished(self) -> str:
        """Why the answer ends."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


def _check_lengths(what: str, tokens: Sequence[str], lists: Mapping[str, Sequence[Any] | None]) -> None:
    for name, values in lists.items():
        if values is not None and len(values) != len(tokens):
            raise InputError(f"{what}: {len(values)} {name} for {len(tokens)} tokens; give one a token.")


class Engine(Protocol):
    """What answers the requests of a :class:`phaseguard.testing.Server`.

    A plain ``reply`` runs in a thread of its own, an async one in the server's event loop. Errors of
    phaseguard become status 400 with their message, all others 500.
    """

    def reply(self, body: Mapping[str, Any], path: str) -> Completion | Awaitable[Completion]:
        """Answer a request.

        Args:
            body: the request; that of a legacy completion holds one string under ``prompt``.
            path: ``/v1/chat/completions`` or ``/v1/completions``.
        """
