"""The check before the run: are prompts as long for the endpoint as they are here?

Phases count from the request's first token. So what an endpoint puts in front of a prompt must be known: a
constant number of tokens is measured and kept as the profile's ``prefix_offset``; a varying one means that
the request is not what the profile says, and no phase can be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phaseguard.calibrate.record import Answered
from phaseguard.errors import EndpointError
from phaseguard.profiles import PhaseProfile

CALLS = 4


@dataclass(frozen=True, slots=True)
class Check:
    """What the check calls told.

    Attributes:
        predicted: tokens of each prompt as counted here, without any in front of the rendered text.
        counted: as the endpoint counts them; empty where it tells nothing.
        unexplained: tokens that every prompt has more there than the given profile says; None where the
            endpoint does not count.
        prefix_offset: tokens in front of the rendered text, for the profile.
        note: one sentence for the reader.
    """

    predicted: tuple[int, ...]
    counted: tuple[int, ...]
    unexplained: int | None
    prefix_offset: int
    note: str


def check_lengths(answers: Sequence[Answered], profile: PhaseProfile) -> Check:
    """Compare predicted lengths with those that the endpoint counts.

    Args:
        answers: of prompts of different lengths, read without tokens in front.
        profile: as given, with the tokens in front that it knows of.

    Raises:
        EndpointError: when the difference varies, or prompts have fewer tokens there than here.
    """
    predicted = tuple(answer.tokens for answer in answers)
    counted = tuple(answer.prompt_tokens for answer in answers if answer.prompt_tokens is not None)
    if len(counted) < len(predicted):
        note = "The endpoint does not count prompt tokens: that phases are counted right is not checked."
        return Check(predicted, (), None, profile.prefix_offset, note)
    differences = {there - here for there, here in zip(counted, predicted, strict=True)}
    if len(differences) > 1:
        pairs = ", ".join(f"{there} for {here}" for there, here in zip(counted, predicted, strict=True))
        raise EndpointError(
            f"The endpoint counts prompt tokens otherwise than tokenizer {profile.tokenizer!r} and chat "
            f"encoding {profile.chat!r}, by a number that varies ({pairs}): no phase can be known. Either "
            "they are not this model's, or something is put into prompts on the way (a hidden system prompt, "
            "a moderation text). Give the right --tokenizer, --chat and --reasoning, or another endpoint."
        )
    (offset,) = differences
    if offset < 0:
        raise EndpointError(
            f"Every prompt has {-offset} tokens fewer at the endpoint than the chat encoding "
            f"{profile.chat!r} writes: it renders prompts otherwise. Give the right --chat and --reasoning."
        )
    more = offset - profile.prefix_offset
    note = "Prompts have as many tokens as predicted."
    if more:
        note = (
            f"Every prompt has {abs(more)} tokens {'more' if more > 0 else 'fewer'} than predicted; the "
            f"difference is taken to stand in front of it, and kept as prefix_offset {offset}."
        )
    return Check(predicted, counted, more, offset, note)
