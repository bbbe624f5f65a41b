"""An alignment's report as rich text."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from phaseguard.align.report import PadReport, Report, SpanReport
from phaseguard.show.words import brief, count, quoted, visible

STRONG, WEAK, DIM = "bold green", "bold red", "dim"
_PADS_SHOWN = 40


def render_report(report: Report) -> RenderableType:
    """Passages with phases before and after, the pads, the proof, and what all this rests on."""
    parts: list[RenderableType] = [_heading(report)]
    if report.passages:
        parts.append(span_table(report, after=True))
    parts.append(_pads(report))
    parts += [Text.assemble((f"{label}  ", "bold"), text) for label, text in _lines(report)]
    return Group(*parts)


def _heading(report: Report) -> Text:
    tokens = (
        f"{report.tokens_before:,} tokens as given, {report.tokens_normalized:,} normalized "
        f"({count(report.normalize_edits, 'edit')}), {report.tokens_after:,} with pads "
        f"({report.tokens_added:+,})"
    )
    name = f"{report.profile}: period {report.period}, chat {report.chat}, tokenizer {report.tokenizer}"
    return Text.assemble((name, "bold"), "\n", tokens)


def _lines(report: Report) -> Iterator[tuple[str, Text]]:
    yield "proof", _proof(report)
    evidence = report.provenance
    yield "evidence", Text(f"{evidence.kind} ({evidence.source}): {evidence.detail}")
    for note in report.notes:
        yield "note", Text(visible(note))
    for warning in report.warnings:
        yield "warning", Text(visible(warning), WEAK)


def _proof(report: Report) -> Text:
    if not report.verified:
        return Text("FAILED: the padded request did not encode as planned; no pads were put in", WEAK)
    if not report.pads:
        return Text.assemble(("verified", STRONG), ": no pads were put in, so no token was moved")
    return Text.assemble(
        ("verified", STRONG),
        ": encoded again as a whole; each answer stands where planned, and no token outside the pads changed",
    )


def span_table(report: Report, *, after: bool) -> Table:
    """The answer spans: where they stand and, with ``after``, where they stood before."""
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("answer", overflow="fold", max_width=36)
    table.add_column("in passage", overflow="ellipsis", no_wrap=True, style=DIM, ratio=1)
    table.add_column("tokens", justify="right")
    table.add_column("token index", justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    for passage in report.passages:
        for span in passage.spans:
            table.add_row(
                Text(brief(span.text, 72)),
                Text(brief(passage.text, 80)),
                str(span.tokens),
                _indices(span, after=after),
                _phases(span, after=after),
            )
    return table


def _indices(span: SpanReport, *, after: bool) -> str:
    old, new = _number(span.index_before), _number(span.index_after)
    return f"{old} → {new}" if after else new


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
