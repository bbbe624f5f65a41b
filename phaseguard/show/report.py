"""An alignment's report as rich text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from phaseguard.align.report import PadReport, Report, SpanReport
from phaseguard.show.words import brief, count, quoted, visible

STRONG, WEAK, DIM = "bold green", "bold red", "dim"
_PADS_SHOWN = 40
_REASONS_SHOWN = 12
_OUTCOMES = {
    "repeated": "once more in front of the question",
    "in-window": "stands in the raw window already",
    "does-not-fit": "not repeated, does not fit into the raw window",
    "no-place": "not repeated, no place in front of the question",
}
_ANSWER, _LEAST, _GAP = 36, 12, 3  # cells: widest answer, narrowest column worth having, between columns


def render_report(report: Report) -> RenderableType:
    """Passages with phases before and after, the pads, the proof, and what all this rests on."""
    parts: list[RenderableType] = [_heading(report)]
    if report.passages and report.tokens_after is not None:
        parts.append(SpanTable(report, after=True))
        parts += _reasons(report)
    parts.append(_pads(report))
    parts += [Text.assemble((f"{label}  ", "bold"), text) for label, text in _lines(report)]
    return Group(*parts)


def _heading(report: Report) -> Text:
    edits = count(report.normalize_edits, "edit")
    if report.tokens_before is None or report.tokens_normalized is None or report.tokens_after is None:
        tokens = f"normalized ({edits}); a model without phases needs no tokens counted"
    else:
        tokens = (
            f"{report.tokens_before:,} tokens as given, {report.tokens_normalized:,} normalized ({edits}), "
            + (f"{report.tokens_repeated:,} repeated, " if report.tokens_repeated else "")
            + f"{report.tokens_after:,} with pads ({report.tokens_added:+,})"
        )
    name = f"{report.profile}: period {report.period}, chat {report.chat}, tokenizer {report.tokenizer}"
    return Text.assemble((name, "bold"), "\n", tokens)


def _reasons(report: Report) -> list[Text]:
    """Why passages were chosen that the caller did not name."""
    found = [passage for passage in report.passages if passage.why != "given"]
    return [
        Text.assemble(("found  ", "bold"), f"{quoted(brief(passage.text, 48))}: {passage.why}")
        for passage in found[:_REASONS_SHOWN]
    ]


def _lines(report: Report) -> Iterator[tuple[str, Text]]:
    yield "proof", _proof(report)
    evidence = report.provenance
    if report.period > 1:
        yield "evidence", Text(f"{evidence.kind} ({evidence.source}): {evidence.detail}")
    else:
        yield "evidence", Text(f"no phases ({evidence.source})")
    if (done := report.isolation) is not None:
        words = f"{done.strangers_before:,} → {done.strangers_after:,} strangers in the chunks of all answers"
        yield "isolated", Text(f"{words}; {done.kind} ({done.source}): {done.detail}")
    for passage in report.repeated:
        where = _OUTCOMES[passage.outcome]
        yield "repeat", Text(f"{quoted(brief(passage.text, 48))}: {where}")
    for note in report.notes:
        yield "note", Text(visible(note))
    for warning in report.warnings:
        yield "warning", Text(visible(warning), WEAK)


def _proof(report: Report) -> Text:
    if not report.verified:
        return Text("FAILED: the padded request did not encode as planned; no pads were put in", WEAK)
    if not report.pads:
        return Text("nothing to prove: no pads were put in")
    return Text.assemble(
        ("verified", STRONG),
        ": encoded again as a whole; each answer stands where planned, and no token outside the pads changed",
    )


@dataclass(frozen=True, slots=True)
class SpanTable:
    """The answer spans: where they stand and, with ``after``, where they stood before.

    What a reader came for, the answer with its phases, is shown whole; the passage around it takes what
    room is left, stands only in its first row, and is dropped where there is no room.

    Attributes:
        report: the report.
        after: whether to show both places or only the one now.
    """

    report: Report
    after: bool

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay the columns out for the width at hand."""
        rows = [
            (passage, span, number == 0)
            for passage in self.report.passages
            for number, span in enumerate(passage.spans)
        ]
        several = len({passage.message for passage in self.report.passages}) > 1
        columns: list[tuple[str, JustifyMethod, list[Text]]] = [
            ("answer", "left", [Text(brief(span.text, 2 * _ANSWER)) for _, span, _ in rows])
        ]
        if several:
            columns.append(("message", "right", [Text(str(passage.message)) for passage, _, _ in rows]))
        columns += [
            ("tokens", "right", [Text(str(span.tokens)) for _, span, _ in rows]),
            ("token index", "right", [Text(_indices(span, after=self.after)) for _, span, _ in rows]),
            ("phase", "left", [_phases(span, after=self.after) for _, span, _ in rows]),
        ]
        if self.report.isolation is not None:
            columns.append(("strangers", "right", [Text(_strangers(span)) for _, span, _ in rows]))
        widths = [max(len(name), *(cell.cell_len for cell in cells)) for name, _, cells in columns]
        widths[0] = min(widths[0], _ANSWER)
        room = options.max_width - sum(widths) - _GAP * len(columns)
        table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
        for (name, justify, _), width in zip(columns, widths, strict=True):
            table.add_column(name, justify=justify, overflow="fold", min_width=min(width, _LEAST))
        if room >= _LEAST:
            table.add_column("in passage", style=DIM, no_wrap=True, overflow="ellipsis", max_width=room)
            shown = [Text(brief(passage.text, room)) if first else Text() for passage, _, first in rows]
            columns.append(("in passage", "left", shown))
        for cells in zip(*(cells for _, _, cells in columns), strict=True):
            table.add_row(*cells)
        yield table


def _indices(span: SpanReport, *, after: bool) -> str:
    old, new = _number(span.index_before), _number(span.index_after)
    return f"{old} → {new}" if after else new


def _strangers(span: SpanReport) -> str:
    return f"{_number(span.strangers_before)} → {_number(span.strangers_after)}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _phases(span: SpanReport, *, after: bool) -> Text:
    new = phase_words(span.phase_after, strong=span.strong_after, strength=span.strength_after)
    if span.in_window:
        new.append(" (read raw)", DIM)
    if not after:
        return new
    old = phase_words(span.phase_before, strong=span.strong_before, strength=span.strength_before)
    return Text.assemble(old, " → ", new)


def phase_words(phase: int | None, *, strong: bool | None, strength: float | None) -> Text:
    """A phase with what is known of it.

    >>> phase_words(1, strong=True, strength=None).plain, phase_words(0, strong=False, strength=0.4).plain
    ('1 strong', '0 weak 0.40')
    """
    if phase is None:
        return Text("-", DIM)
    text = Text(str(phase))
    if strong is not None:
        text.append(" strong" if strong else " weak", STRONG if strong else WEAK)
    if strength is not None:
        text.append(f" {strength:.2f}")
    return text


def _pads(report: Report) -> Text:
    pads, kinds = report.pads, sorted({pad.kind for pad in report.pads})
    text = Text.assemble(
        ("pads", "bold"), f"  {count(len(pads), 'pad')}, {count(report.tokens_added, 'token')}"
    )
    if pads:
        text.append(f" ({', '.join(kinds)})")
    for pad in pads[:_PADS_SHOWN]:
        text.append("\n" + _pad(pad))
    if len(pads) > _PADS_SHOWN:
        text.append(f"\n  and {len(pads) - _PADS_SHOWN} more", DIM)
    return text


def _pad(pad: PadReport) -> str:
    block = "" if pad.block is None else f", block {pad.block}"
    where = f"message {pad.message}{block}, line {pad.line}"
    change = (
        f"{quoted(pad.original)} became {quoted(pad.text)}" if pad.original else f"put in {quoted(pad.text)}"
    )
    return f"  {where}: {change}, {count(pad.tokens, 'token')} ({pad.kind})"
