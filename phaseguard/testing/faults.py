"""Faults that a server commits on purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from phaseguard.errors import InputError, did_you_mean
from phaseguard.testing.completion import Completion
from phaseguard.testing.wire import Refusal

FaultKind = Literal[
    "status", "delay", "truncate", "not-json", "empty-choices", "no-logprobs", "no-usage", "disconnect"
]
_ERRORS = range(400, 600)
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    Attributes:
        kind: ``status``, an error in OpenAI's form; ``delay``, the answer comes late; ``truncate``, half of
            it comes and the connection closes; ``not-json``, the body is cut JSON under status 200;
            ``empty-choices``, ``no-logprobs`` and ``no-usage``, that part is missing; ``disconnect``, the
            connection closes without an answer.
        code: HTTP status of the kind ``status``.
        retry_after: seconds that its header ``Retry-After`` states, or None for no header.
        seconds: of the kind ``delay``.

    Raises:
        InputError: for an unknown kind or a value out of range.

    >>> Fault.rate_limited(retry_after=0.01)
    Fault(kind='status', code=429, retry_after=0.01, seconds=0.0)
    >>> Fault("timeout")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    phaseguard.errors.InputError: Unknown fault 'timeout'. ...
    """

    kind: FaultKind
    code: int = 500
    retry_after: float | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise InputError(f"Unknown fault {self.kind!r}. {did_you_mean(self.kind, get_args(FaultKind))}")
        if self.code not in _ERRORS:
            raise InputError(f"code={self.code}: an error has a status from 400 to 599.")
        for name in ("retry_after", "seconds"):
            given = getattr(self, name)
            if given is not None and not given >= 0:
                raise InputError(f"{name}={given!r}: give seconds, 0 or more.")

    @classmethod
    def rate_limited(cls, retry_after: float | None = 0.01) -> Fault:
        """Status 429."""
        return cls("status", _TOO_MANY, retry_after)

    @classmethod
    def status(cls, code: int = 500, retry_after: float | None = None) -> Fault:
        """Any other error."""
        return cls("status", code, retry_after)

    @classmethod
    def delay(cls, seconds: float) -> Fault:
        """A late answer."""
        return cls("delay", seconds=seconds)

    @property
    def refusal(self) -> Refusal:
        """The error that the kind ``status`` answers."""
        headers = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        limited = self.code == _TOO_MANY
        return Refusal(
            self.code,
            "Rate limit reached: try again later." if limited else f"The server answers {self.code}.",
            "rate_limit_exceeded" if limited else None,
            kind="requests" if limited else "server_error",
            headers=headers,
        )

    def spoil(self, completion: Completion) -> Completion:
        """The completion without what this fault leaves out."""
        if self.kind == "no-logprobs":
            return replace(completion, logprobs=None, top=None)
        return replace(completion, prompt_tokens=None) if self.kind == "no-usage" else completion
