"""Which tokenizer and chat encoding read a model's requests, before anything is known of its phases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phaseguard.calibrate.items import Language
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile, Provenance, list_profiles, load_profile
from phaseguard.profiles.store import profile_name

SLACK = 16  # tokens that a chat model may say around an answer
THINKING = 8192  # tokens that reasoning may take


def base_profile(
    model: str,
    *,
    profile: str | PhaseProfile | Any = None,
    tokenizer: str | None = None,
    chat: str | None = None,
    reasoning: str | None = None,
    completions: bool = False,
) -> PhaseProfile:
    """The profile that says how requests are read.

    Args:
        model: as the endpoint calls it.
        profile: take this one; else a known one of the same model, if there is one.
        tokenizer: in place of the profile's.
        chat: likewise.
        reasoning: likewise.
        completions: whether prompts are continued as they are, which is the chat encoding ``plain``.

    Raises:
        InputError: when nothing says which tokenizer reads the model's text.
        ProfileError: for a profile that is unknown.

    >>> base_profile("deepseek-v4-flash", reasoning="high").name
    'deepseek-v4-flash-high'
    >>> base_profile("my/model", tokenizer="cl100k_base", completions=True).chat
    'plain'
    """
    base = load_profile(profile) if profile is not None else _known(model)
    changes: dict[str, Any] = {"tokenizer": tokenizer, "chat": chat, "reasoning": reasoning}
    if completions and chat is None:
        changes["chat"] = "plain"
    given = {key: value for key, value in changes.items() if value is not None}
    if base is not None:
        changed = given.get("reasoning", base.reasoning) != base.reasoning
        name = f"{base.name}-{given['reasoning']}" if changed else base.name
        return base.with_(name=name, **given)
    if tokenizer is None or "chat" not in given:
        raise InputError(
            f"No profile is of model {model!r}: give --tokenizer (a name, a tokenizer.json or a hub name) "
            "and --chat (plain, deepseek-v4, or jinja:FOLDER), or the --profile of a model that reads alike."
        )
    source = "nothing is known before calibrating"
    return PhaseProfile(
        name=profile_name(model),
        model=model,
        period=1,
        provenance=Provenance(kind="stated", source=source),
        **given,
    )


def answer_room(language: Language, profile: PhaseProfile) -> int:
    """Most tokens of an answer: what it needs, a little around it, and what reasoning takes before it.

    >>> from phaseguard.calibrate import LabLanguage, lab_profile
    >>> answer_room(LabLanguage(), lab_profile("csa4-s0"))
    1
    """
    room = language.answer_tokens if language.name == "lab" else language.answer_tokens + SLACK
    return room if profile.reasoning == "off" else room + THINKING


def _known(model: str) -> PhaseProfile | None:
    """The profile of that name or model; the shortest name where several are of one model."""
    wanted = model.rpartition("/")[2].casefold()
    return next((found for name, found in _by_name() if wanted == name), None)


def _by_name() -> Iterator[tuple[str, PhaseProfile]]:
    entries = [entry.profile for entry in list_profiles() if entry.profile is not None]
    for found in entries:
        yield found.name.casefold(), found
    for found in sorted(entries, key=lambda one: len(one.name)):
        if found.model is not None:
            yield found.model.rpartition("/")[2].casefold(), found
