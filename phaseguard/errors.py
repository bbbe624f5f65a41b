"""The exception tree. Every message says what was wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class PhaseGuardError(Exception):
    """Base class of every error that phaseguard raises on purpose."""


class InputError(PhaseGuardError):
    """An argument, prompt or file that cannot be used as it is."""


class EditError(PhaseGuardError):
    """Edits that overlap, leave the text, or do not belong to it."""


class TokenizerError(PhaseGuardError):
    """A tokenizer that is unknown, cannot be loaded, or gives unusable offsets."""


class RenderError(PhaseGuardError):
    """A prompt that the chat encoding cannot render, or whose text cannot be located in the request."""


class ProfileError(PhaseGuardError):
    """A profile that is unknown, unreadable, or inconsistent."""


class PassageNotFoundError(InputError):
    """A key passage or answer that does not occur in the prompt."""


class KernelError(PhaseGuardError):
    """Arrays or settings that a compression kernel cannot use."""


class AllCallsFailedError(PhaseGuardError):
    """No call of an ensemble gave an answer; ``votes`` holds each with its error."""

    def __init__(self, message: str, votes: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.votes = tuple(votes)


class PhaseGuardWarning(UserWarning):
    """A prompt went out without the alignment that was asked for; the message says why, and what to do."""


class EndpointError(PhaseGuardError):
    """An endpoint that cannot be asked, or whose answers cannot be used; what was answered is kept."""


class MissingExtraError(PhaseGuardError):
    """An optional dependency that is not installed; the message names the extra."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that lists near names, or every known name when none is near.

    >>> did_you_mean("deepseek-v4-flsh", ["deepseek-v4-flash", "llama-3"])
    "Did you mean 'deepseek-v4-flash'?"
    >>> did_you_mean("zzz", ["b", "a"])
    'Known names: a, b.'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(repr(n) for n in near) + "?"
    return f"Known names: {', '.join(names)}."
