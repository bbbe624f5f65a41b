"""What a report tells its reader in sentences: what was not done, what is not known, and on what evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from phaseguard.align.grid import MOST_STRIDE, Grid, stride_of
from phaseguard.align.report import Isolation, PassageReport, Repetition, SpanReport
from phaseguard.align.request import UNKNOWN_SPECIAL, Request
from phaseguard.align.setting import Setting
from phaseguard.profiles import PhaseProfile


def notes_of(passages: Sequence[PassageReport], setting: Setting, padded: Request | None) -> tuple[str, ...]:
    """What the reader should know."""
    spans = [span for passage in passages for span in passage.spans]
    period = setting.evidence.period
    notes = [*_evidence(setting)]
    if not passages:
        notes.append("No key passage: none was given, and no sentence was found for the question.")
    unknown = sum(span.index_after is None for span in spans)
    if unknown and period > 1:
        notes.append(
            f"{unknown} answer spans have no known token index: the chat encoding drops or changes them, or "
            "an image stands before them."
        )
    weak = sum(span.strong_after is False and not span.in_window for span in spans)
    if weak:
        why = (
            "A pad needs a place to stand, a blank line in prose before the passage; and spans at a fixed "
            "distance may not all fit."
            if setting.budget != 0
            else "No pad was to be put in: align_prompt (phaseguard align) without a limit of 0 tokens moves "
            "those that it can."
        )
        notes.append(f"{weak} of {len(spans)} answer spans stand on a weak phase. {why}")
    return (*notes, *_crowded(spans), *_unknown_specials(padded))


def _evidence(setting: Setting) -> Iterator[str]:
    name, stride = setting.profile.name, stride_of(setting.profile)
    done = "the prompt was left as it is" if setting.level == "off" else "the prompt was only normalized"
    if setting.evidence.period < 2:
        yield f"{name} has no phase: nothing to align, {done}."
    elif not setting.evidence.usable:
        if setting.grid is not None:
            done = "its answers were isolated instead: pads keep other text out of the chunks they stand in"
        elif stride > MOST_STRIDE:
            done += f" (a stride of {stride} is too long to isolate answers in)"
        yield (
            f"{name} has no strengths, so nothing was aligned to a phase and {done}. "
            f"`phaseguard calibrate {_model(setting)}` measures them; strong= (--strong) states them by hand."
        )


def _model(setting: Setting) -> str:
    return f"--base-url URL --model MODEL --profile {setting.profile.name}"


def _crowded(spans: Sequence[SpanReport]) -> Iterator[str]:
    crowded = [span.strangers_after for span in spans if span.strangers_after and not span.in_window]
    if crowded:
        yield (
            f"{len(crowded)} of {len(spans)} answer spans share their chunks with other text, "
            f"{sum(crowded)} tokens in all: no pad can stand nearer, or it costs more than it is worth."
        )


def repeat_notes(repeated: Sequence[Repetition], window: int | None) -> Iterator[str]:
    """What became of the passages that were to be repeated."""
    outcomes = Counter(passage.outcome for passage in repeated)
    if outcomes["repeated"]:
        yield (
            f"{outcomes['repeated']} key passages stand again in front of the question, among the last "
            f"{window} tokens, which the model reads uncompressed; whether that helps was not measured."
        )
    if outcomes["does-not-fit"]:
        yield (
            f"{outcomes['does-not-fit']} key passages were not repeated: the copy would reach out of the "
            f"last {window} tokens. Give a shorter passage, or a shorter question behind it."
        )
    if outcomes["no-place"]:
        yield (
            f"{outcomes['no-place']} key passages were not repeated: the last user message is frozen, takes "
            "no paragraph in front of its last one, or normalizing would change the copy."
        )


def isolation_of(setting: Setting, grid: Grid, passages: Sequence[PassageReport]) -> Isolation:
    """That answers were isolated, and on what evidence."""
    spans = [span for passage in passages for span in passage.spans]
    return Isolation(
        stride=grid.stride,
        overlap=grid.overlap,
        kind="on-device",
        source="small models with real compression kernels (phaseguard lab)",
        detail=_detail(setting.profile, grid, by_strength=setting.evidence.usable),
        strangers_before=sum(span.strangers_before or 0 for span in spans),
        strangers_after=sum(span.strangers_after or 0 for span in spans),
    )


def _detail(profile: PhaseProfile, grid: Grid, *, by_strength: bool) -> str:
    words = (
        "An answer that shares its chunks with nothing was found most often there; that is a prior, not "
        f"measured on {profile.name}."
    )
    if grid.overlap and not by_strength:
        words += " Of equally cheap ways the one with the answer's first token last in its chunk was taken."
    if profile.overlap is None:
        words += " The profile does not say whether entries overlap; they were taken to."
    return words


def _unknown_specials(request: Request | None) -> list[str]:
    """Special tokens of the chat encoding that the vocabulary does not name."""
    if request is None:
        return []
    missing = np.flatnonzero(request.encoding.ids == UNKNOWN_SPECIAL)
    text, starts, ends = request.rendered.text, request.encoding.starts, request.encoding.ends
    names = sorted({text[starts[at] : ends[at]] for at in missing})
    return [f"The tokenizer does not know {name}; it was counted as one token." for name in names]
