"""Results without alignment, for prompts that cannot or should not be aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from phaseguard.align import AlignedPrompt, Provenance, Report, align_prompt
from phaseguard.align.prompt import Prompt
from phaseguard.errors import InputError
from phaseguard.normalize import Level
from phaseguard.profiles import PhaseProfile


def normalized_only(prompt: Any, profile: PhaseProfile, level: Level, frozen: int, why: str) -> AlignedPrompt:
    """A prompt that was normalized, and nothing else; as it is where it cannot even be read.

    Args:
        prompt: any prompt.
        profile: the guard's; its name stands in the report.
        level: what normalizing may do.
        frozen: leading messages to leave alone.
        why: goes to the report's warnings.
    """
    flat = profile.with_(period=1, strides=(), strengths=None, reported=None, window=None)
    try:
        count = len(Prompt.read(prompt).messages)
        made = align_prompt(prompt, key_passages=(), profile=flat, level=level, frozen=min(frozen, count))
    except InputError:
        return untouched(prompt, profile, why)
    report = replace(made.report, verified=False, notes=(), warnings=(*made.report.warnings, why))
    return replace(made, report=report)


def untouched(prompt: Any, profile: PhaseProfile, why: str) -> AlignedPrompt:
    """A prompt as it was given, with a report that says why."""
    report = Report(
        verified=False,
        profile=profile.name,
        period=profile.period,
        chat=profile.chat,
        tokenizer=profile.tokenizer,
        tokens_before=None,
        tokens_normalized=None,
        tokens_after=None,
        tokens_added=0,
        pads=(),
        normalize_edits=0,
        provenance=Provenance("none", profile.name, "Nothing was aligned."),
        passages=(),
        warnings=(why,),
    )
    return AlignedPrompt(prompt, report)


def is_textless(prompt: Any) -> bool:
    """Whether a prompt is well formed and has no text, such as one image."""
    messages = prompt.get("messages") if isinstance(prompt, Mapping) else prompt
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        return False
    try:
        Prompt.read([*messages, {"role": "user", "content": "."}])
    except InputError:
        return False
    return True
