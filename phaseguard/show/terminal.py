"""The token map for a terminal: phases as background colours, answer spans in brackets."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from phaseguard.show.report import SpanTable, phase_words
from phaseguard.show.tokens import Mark, Run, TokenMap, windows
from phaseguard.show.words import picture, visible

# black on light tints reads on every terminal background; eight are enough to tell neighbours apart
TINTS = ("#c9e2ff", "#ffe2b8", "#d3f2cc", "#edd5f7", "#fff3b0", "#ffd3d3", "#c8f1ee", "#e2e2e2")
_MARKS = {
    "strong": "bold white on #12692f",
    "weak": "bold white on #b3152c",
    "unknown": "bold white on #3f4a5a",
    "raw": "bold white on #3f4a5a",
}
CONTEXT = 48


def legend(tokens: TokenMap) -> Text:
    """What the colours mean."""
    text = Text()
    shown = min(tokens.period, len(TINTS))
    for phase in range(shown):
        known = "" if tokens.strong is None else (" strong" if phase in tokens.strong else " weak")
        text.append(f" phase {phase}{known} ", _tint(phase)).append(" ")
    if shown < tokens.period:
        text.append(f"and so on to {tokens.period - 1} ")
    for verdict in ("strong", "weak", "unknown"):
        if verdict in {mark.verdict for mark in tokens.marks}:
            text.append(f" ⟦{verdict} answer⟧ ", _MARKS[verdict]).append(" ")
    return text


def _tint(phase: int) -> str:
    return f"black on {TINTS[phase % len(TINTS)]}"


def render_map(tokens: TokenMap, *, everything: bool = False) -> Iterator[Text]:
    """The tokens, line by line; long stretches without an answer are left out unless ``everything``."""
    size = len(tokens)
    shown = ((0, size),) if everything else windows(tokens, CONTEXT)
    at = 0
    for start, stop in shown:
        if start > at:
            yield Text(f"… {start - at:,} tokens …", "dim")
        yield from _lines(tokens, start, stop)
        at = stop


def _lines(tokens: TokenMap, start: int, stop: int) -> Iterator[Text]:
    yield Text(f"tokens {tokens.first + start:,} to {tokens.first + stop - 1:,}", "dim underline")
    line = Text()
    for run in tokens.runs(start, stop):
        if run.mark is not None:
            _append_mark(line, tokens, run, run.mark)
            continue
        for position in range(run.start, run.stop):
            token = tokens.texts[position]
            line.append(_shown(token), _tint(tokens.phase(position)))
            if "\n" in token:
                yield line
                line = Text()
    if line:
        yield line


def _append_mark(line: Text, tokens: TokenMap, run: Run, mark: Mark) -> None:
    style = _MARKS[mark.verdict]
    pieces = (_shown(tokens.texts[position]) for position in range(run.start, run.stop))
    line.append("⟦" + "|".join(pieces) + "⟧", style)
    span = mark.span
    words = phase_words(span.phase_after, strong=span.strong_after, strength=span.strength_after)
    line.append(f" phase {words.plain}{', read raw' if span.in_window else ''} ", "dim")


def _shown(token: str) -> str:
    return "".join(map(picture, token)) or "·"


def render_inspection(tokens: TokenMap, *, everything: bool = False) -> Iterator[RenderableType]:
    """The legend, the map, the answers as a table, and what all this rests on."""
    yield legend(tokens)
    yield from render_map(tokens, everything=everything)
    yield Text()
    report = tokens.report
    if report.passages:
        yield SpanTable(report, after=False)
    total = tokens.first + len(tokens)
    yield Text(f"{report.profile}: period {report.period}, {total:,} tokens, chat {report.chat}", "bold")
    yield Text(f"{report.provenance.kind} ({report.provenance.source}): {report.provenance.detail}")
    for note in (*report.warnings, *report.notes):
        yield Text(f"note: {visible(note)}")
