"""What is about to be sent, aligned: a list of messages, or the text of a completion."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.postprocessor.phaseguard.messages import to_payload, with_contents

from phaseguard import PhaseGuard, PhaseProfile, load_profile
from phaseguard.errors import InputError, PhaseGuardWarning


def aligned_messages(
    guard: PhaseGuard, messages: Sequence[ChatMessage], model: str | None, options: Mapping[str, Any]
) -> list[ChatMessage]:
    """Aligned copies of messages; arguments are those of :func:`to_payload`."""
    made = guard.align_payload(to_payload(messages, model, options)).prompt
    return with_contents(messages, made["messages"])


def aligned_text(guard: PhaseGuard, prompt: str, model: str | None) -> str:
    r"""The aligned text of a completion.

    No server wraps it into a chat encoding, so its positions are known only with a profile whose chat
    encoding is ``plain``; with any other it is normalized only, and a warning says so.

    Raises:
        InputError: in place of the warning, for a guard with ``unknown_model="raise"``.

    >>> guard = PhaseGuard(profile=load_profile("deepseek-v4-flash").with_(chat="plain"), strong={2})
    >>> guard.mark(["The code is A-17."], query="Which code?")
    >>> text = "Found:\n\nThe code is A-17.\n\nWhich code?"
    >>> aligned_text(guard, text, "deepseek-v4-flash")
    'Found:\n \nThe code is A-17.\n\nWhich code?'
    """
    if profile_for(guard, model).chat == "plain":
        (message,) = aligned_messages(guard, [ChatMessage(prompt)], model, {})
        return message.content or ""
    why = (
        f"A completion of {model!r} is only normalized: its prompt is sent without the chat encoding that "
        "the guard's profile has. Say is_chat_model=True where it is a chat model, else give the guard "
        "profile=load_profile(NAME).with_(chat='plain', prefix_offset=TOKENS_IN_FRONT)."
    )
    if guard.unknown_model == "raise":
        raise InputError(why)
    if guard.unknown_model == "warn":
        warnings.warn(why, PhaseGuardWarning, stacklevel=2)
    return guard.normalize(prompt)


def profile_for(guard: PhaseGuard, model: str | None) -> PhaseProfile:
    """The profile that a guard has for a model: its own unless ``models`` names another."""
    return load_profile((guard.models or {}).get(model or "", guard.profile))
