"""Checks of what went over the wire: where passages stood in the request that the model saw."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.align.prompt import Prompt
from phaseguard.align.request import Request
from phaseguard.align.setting import Setting
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.profiles import PhaseProfile
from phaseguard.testing.calls import Call
from phaseguard.text import Span
from phaseguard.tokens import TokenizerLike

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class WirePassage:
    """One place of a passage in a request.

    Attributes:
        text: the passage.
        index: absolute token index of its first token in the request.
        phase: the index mod the profile's period.
    """

    text: str
    index: int
    phase: int


def phases_on_wire(
    sent: Call | Mapping[str, Any],
    passages: str | Sequence[str],
    profile: str | PhaseProfile = "deepseek-v4-flash",
    *,
    tokenizer: TokenizerLike | None = None,
) -> tuple[WirePassage, ...]:
    """Where passages stand in a recorded request, rendered and encoded anew from what was sent.

    It knows nothing of how the prompt was aligned: so it proves that the alignment reached the wire.

    Args:
        sent: a call that a :class:`phaseguard.testing.Server` recorded, or the body of one.
        passages: texts to look for, such as answers; every place of each is found.
        profile: of the model that the request is for.
        tokenizer: reads the request in place of the profile's.

    Returns:
        Every place, passage by passage, in the order of the request.

    Raises:
        PassageNotFoundError: when one does not stand in the request; shows what does.
        InputError: for no passages or an empty one, or when the token index is not known, behind an image.
        RenderError: when the chat encoding cannot render the request.

    >>> body = {"messages": [{"role": "user", "content": "The code is A-17."}]}
    >>> phases_on_wire(body, "A-17")
    (WirePassage(text='A-17', index=5, phase=1),)
    """
    setting = Setting.read(profile, tokenizer=tokenizer)
    body = sent.body if isinstance(sent, Call) else sent
    prompt = Prompt.read(body.get("prompt") if "prompt" in body else body)
    request = setting.encode(prompt.messages, prompt.options)
    wanted = [passages] if isinstance(passages, str) else list(passages)
    if not wanted or not all(wanted):
        raise InputError("Give at least one passage to look for, and none that is empty.")
    return tuple(place for text in wanted for place in _places(text, request, setting.profile.period))


def _places(text: str, request: Request, period: int) -> list[WirePassage]:
    whole = request.rendered.text
    starts = [match.start() for match in re.finditer(f"(?={re.escape(text)})", whole)]
    if not starts:
        raise PassageNotFoundError(
            f"{text!r} does not stand in the request, {len(whole)} characters that end with "
            f"{whole[-_SHOWN:]!r}: look for a passage as it was sent, after normalizing."
        )
    if not request.known(starts[-1]):
        raise InputError(f"The token index of {text!r} is not known: an image stands in front of it.")
    indexes = [request.offset + request.token_range(Span(at, at + len(text)))[0] for at in starts]
    return [WirePassage(text, index, index % period) for index in indexes]


def assert_phases(
    sent: Call | Mapping[str, Any],
    passages: str | Sequence[str],
    phases: Collection[int],
    profile: str | PhaseProfile = "deepseek-v4-flash",
    *,
    tokenizer: TokenizerLike | None = None,
) -> None:
    """Fail unless every place of every passage in a recorded request stands at one of these phases.

    Arguments and errors are those of :func:`phases_on_wire`.

    Raises:
        AssertionError: names each place that does not.

    >>> body = {"messages": [{"role": "user", "content": "The code is A-17."}]}
    >>> assert_phases(body, "A-17", {2, 3})
    Traceback (most recent call last):
    ...
    AssertionError: 'A-17' stands at token 5, phase 1: expected phase 2 or 3.
    """
    found = phases_on_wire(sent, passages, profile, tokenizer=tokenizer)
    expected = " or ".join(map(str, sorted(phases)))
    wrong = [place for place in found if place.phase not in phases]
    if wrong:
        places = "; ".join(f"{p.text!r} stands at token {p.index}, phase {p.phase}" for p in wrong)
        raise AssertionError(f"{places}: expected phase {expected}.")
