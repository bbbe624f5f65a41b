"""Profiles as a table: what is measured, what is a prior, what is reported and what is only a gap."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from phaseguard.profiles import PhaseProfile, ProfileEntry

_STYLES = {
    "measured": "green",
    "on-device": "cyan",
    "weights": "cyan",
    "stated": "cyan",
    "reported order": "yellow",
    "only a gap": "red",
    "no phase": "dim",
    "nothing": "red",
    "broken": "bold red",
}
_WORDS = {
    "measured": "measured on an endpoint",
    "on-device": "a prior from a small model on a device, not a measurement of this one",
    "weights": "derived from the model's weights, not from answers",
}

_OVERLAPS = {True: ", an entry pools the chunk before its own too", False: ", without overlap", None: ""}


def known(profile: PhaseProfile) -> tuple[str, str]:
    """How far a profile's phases are known, as a word and a sentence.

    >>> from phaseguard.profiles import load_profile
    >>> known(load_profile("deepseek-v4.1-flash"))[0], known(load_profile("deepseek-v4-flash"))[0]
    ('reported order', 'only a gap')
    """
    kind, reported = profile.provenance.kind, profile.reported
    if not profile.has_phases:
        return "no phase", f"aligning does nothing ({profile.provenance.source})"
    if profile.strengths:
        date = f" on {profile.provenance.date}" if profile.provenance.date else ""
        trials = sum(shape.n for shape in profile.strengths.values())
        return kind, f"{_WORDS.get(kind, kind)}{date}, {trials:,} trials ({profile.provenance.source})"
    if profile.strong is not None and reported is not None:
        order = "stated" if kind == "stated" else "reported order"
        return order, f"{_list(profile.strong)} strong, no numbers ({reported.source})"
    if reported is not None and reported.gap_points is not None:
        return (
            "only a gap",
            f"{reported.gap_points} points between phases; which are strong is unknown ({reported.source})",
        )
    return "nothing", "no phase is known to be strong"


def _list(phases: frozenset[int]) -> str:
    return f"phase{'s' if len(phases) > 1 else ''} {', '.join(map(str, sorted(phases)))}"


def profile_table(entries: Sequence[ProfileEntry]) -> Table:
    """One row a profile."""
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("profile", no_wrap=True)
    table.add_column("origin", no_wrap=True)
    table.add_column("period", justify="right")
    table.add_column("reasoning")
    table.add_column("known", no_wrap=True)
    table.add_column("which means", ratio=1)
    for entry in entries:
        if entry.profile is None:
            table.add_row(
                Text(entry.name), entry.origin, "?", "?", _styled("broken"), Text(entry.problem or "")
            )
            continue
        word, sentence = known(entry.profile)
        table.add_row(
            Text(entry.name),
            entry.origin,
            str(entry.profile.period),
            Text(entry.profile.reasoning),
            _styled(word),
            Text(sentence),
        )
    return table


def _styled(word: str) -> Text:
    return Text(word, _STYLES.get(word, ""))


def profile_details(profile: PhaseProfile) -> Table:
    """All that one profile says."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(ratio=1)
    word, sentence = known(profile)
    rows = {
        "profile": profile.name,
        "model": profile.model or "any",
        "provider": profile.provider or "any",
        "reasoning": profile.reasoning,
        "tokenizer": profile.tokenizer,
        "chat": profile.chat,
        "period": str(profile.period) if profile.has_phases else "1 (no phase)",
        "strides": (", ".join(map(str, profile.strides)) or "none") + _OVERLAPS[profile.overlap],
        "window": f"last {profile.window} tokens are read raw" if profile.window else "unknown",
        "known": f"{word}: {sentence}",
    }
    for tokens, shape in (profile.strengths or {}).items():
        cells = (
            f"{phase}: {mean:.2f} [{low:.2f}, {high:.2f}]"
            for phase, (mean, low, high) in enumerate(zip(shape.mean, shape.low, shape.high, strict=True))
        )
        rows[f"strength, {tokens} tokens"] = "  ".join(cells)
    if profile.reported is not None and profile.reported.note:
        rows["note"] = profile.reported.note
    if profile.provenance.command:
        rows["repeat with"] = profile.provenance.command
    for label, value in rows.items():
        table.add_row(label, Text(value))
    return table
