"""From what was done to the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phaseguard.align.evidence import Evidence
from phaseguard.align.layout import Key
from phaseguard.align.passages import Passage, Source
from phaseguard.align.plan import Answers, PlannedPad
from phaseguard.align.prompt import FieldKey
from phaseguard.align.report import PadReport, PassageReport, Report, SpanReport
from phaseguard.align.request import Request
from phaseguard.align.salience import AnswerSpan
from phaseguard.errors import RenderError
from phaseguard.profiles import PhaseProfile
from phaseguard.text import Edit, OffsetMap, Span, apply_edits

Steps = Mapping[FieldKey, tuple[tuple[Edit, ...], ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done, and the requests before and after.

    Attributes:
        given: the request as it was given; ``base``: normalized; ``padded``: the one returned.
        planned: the pads in it.
        keys: the answer spans as located in ``base``; ``moved``: their characters in ``padded``.
        verified: whether the proof holds.
        culprit: the pad on which the proof failed, when it failed on one.
    """

    given: Request
    base: Request
    padded: Request
    planned: tuple[PlannedPad, ...]
    keys: tuple[Key, ...]
    moved: tuple[Span, ...]
    verified: bool
    culprit: PlannedPad | None


def summarize(
    outcome: Outcome,
    sources: Sequence[Source],
    passages: Sequence[Passage],
    answers: Answers,
    evidence: Evidence,
    profile: PhaseProfile,
    steps: Steps,
) -> Report:
    """Build the report; every index is looked up in an encoded request, none is computed from a plan."""
    by_key = {source.field.key: source for source in sources}
    found = {
        (key.passage.key, key.answer.span): (key, span)
        for key, span in zip(outcome.keys, outcome.moved, strict=True)
    }
    view = _View(outcome, evidence, by_key, found, profile.window or 0)
    finals = _finals(by_key, steps)
    reports = tuple(_passage(p, answers[p], view, finals[p.key]) for p in passages)
    return Report(
        verified=outcome.verified,
        profile=profile.name,
        period=evidence.period,
        chat=profile.chat,
        tokenizer=profile.tokenizer,
        tokens_before=outcome.given.tokens,
        tokens_normalized=outcome.base.tokens,
        tokens_after=outcome.padded.tokens,
        tokens_added=outcome.padded.tokens - outcome.base.tokens,
        pads=_pads(outcome.planned, by_key, finals),
        normalize_edits=sum(len(done[0]) for done in steps.values()),
        provenance=evidence.provenance,
        passages=reports,
        notes=(*_notes(reports, evidence, profile), *outcome.padded.rendered.notes),
        warnings=_warnings(outcome),
    )


@dataclass(frozen=True, slots=True)
class _View:
    outcome: Outcome
    evidence: Evidence
    sources: Mapping[FieldKey, Source]
    found: Mapping[tuple[FieldKey, Span], tuple[Key, Span]]
    window: int

    def span(self, passage: Passage, answer: AnswerSpan) -> SpanReport:
        """Look the span up in the request as given and in the one returned."""
        source = self.sources[passage.key]
        key, moved = self.found.get((passage.key, answer.span), (None, answer.span))
        before = self._index_before(source, answer.span)
        after = None if key is None else self._index_after(moved)
        tokens = 0 if key is None else key.tokens
        return SpanReport(
            text=answer.span.of(source.text),
            kind=answer.kind,
            weight=answer.weight,
            tokens=tokens,
            index_before=before,
            index_after=after,
            phase_before=self._phase(before),
            phase_after=self._phase(after),
            strength_before=self._strength(tokens, before),
            strength_after=self._strength(tokens, after),
            strong_before=self._strong(tokens, before),
            strong_after=self._strong(tokens, after),
            in_window=after is not None and after >= self.outcome.padded.tokens - self.window,
        )

    def _index_before(self, source: Source, span: Span) -> int | None:
        given, key = self.outcome.given, source.field.key
        start = source.offsets.backward(span.start)
        try:
            at = given.rendered.locate(key.message, start, key.block_or_none)
        except RenderError:
            return None
        return given.offset + given.token_range(Span(at, at + 1))[0] if given.known(at) else None

    def _index_after(self, moved: Span) -> int:
        padded = self.outcome.padded
        return padded.offset + padded.token_range(moved)[0]

    def _phase(self, index: int | None) -> int | None:
        return None if index is None or self.evidence.period < 2 else index % self.evidence.period

    def _strength(self, tokens: int, index: int | None) -> float | None:
        phase = self._phase(index)
        return None if phase is None else self.evidence.strength(tokens, phase)

    def _strong(self, tokens: int, index: int | None) -> bool | None:
        phase = self._phase(index)
        return None if phase is None else self.evidence.is_strong(tokens, phase)


@dataclass(frozen=True, slots=True)
class _Final:
    """One text as returned, and where its characters went."""

    text: str
    offsets: OffsetMap


def _finals(sources: Mapping[FieldKey, Source], steps: Steps) -> dict[FieldKey, _Final]:
    return {
        key: _Final(apply_edits(source.text, edits), OffsetMap(edits))
        for key, source in sources.items()
        for edits in (steps[key][1] if key in steps else (),)
    }


def _passage(passage: Passage, answers: Sequence[AnswerSpan], view: _View, final: _Final) -> PassageReport:
    return PassageReport(
        text=final.offsets.forward_span(passage.span).of(final.text),
        message=passage.key.message,
        block=passage.key.block_or_none,
        why=passage.why,
        spans=tuple(view.span(passage, answer) for answer in answers),
    )


def _pads(
    planned: Sequence[PlannedPad], sources: Mapping[FieldKey, Source], finals: Mapping[FieldKey, _Final]
) -> tuple[PadReport, ...]:
    reports = []
    lines: dict[FieldKey, tuple[int, int]] = {}  # offset and line number of the pad before
    for pad in planned:
        key = pad.place.key
        final = finals[key]
        offset = final.offsets.forward(pad.place.content.start)
        before, line = lines.get(key, (0, 1))
        line += final.text.count("\n", before, offset)
        lines[key] = (offset, line)
        reports.append(
            PadReport(
                message=key.message,
                block=key.block_or_none,
                offset=offset,
                text=pad.choice.text,
                original=pad.place.content.of(sources[key].text),
                tokens=pad.choice.tokens,
                kind=pad.choice.kind,
                line=line,
            )
        )
    return tuple(reports)


def _notes(reports: Sequence[PassageReport], evidence: Evidence, profile: PhaseProfile) -> list[str]:
    notes = []
    spans = [span for report in reports for span in report.spans]
    if evidence.period < 2:
        notes.append(f"{profile.name} has no phase: nothing to align, the prompt was only normalized.")
    elif not evidence.usable:
        notes.append(
            f"{profile.name} has no strengths, so nothing was aligned to a phase and the prompt was only "
            "normalized. State strong phases by hand with strong= (--strong) once you have measured them."
        )
    if not reports:
        notes.append("No key passage: none was given, and no sentence shares a rare word with the query.")
    unknown = sum(span.index_after is None for span in spans)
    if unknown:
        notes.append(
            f"{unknown} answer spans have no known token index: the chat encoding drops or changes them, or "
            "an image stands before them."
        )
    weak = sum(span.strong_after is False for span in spans)
    if weak:
        notes.append(
            f"{weak} of {len(spans)} answer spans stand on a weak phase: no site can move them, or others "
            "with more weight decide. A blank line before a passage makes a site."
        )
    return notes


def _warnings(outcome: Outcome) -> tuple[str, ...]:
    if outcome.verified:
        return ()
    where = ""
    if outcome.culprit is not None:
        key = outcome.culprit.place.key
        where = (
            f" The pad at character {outcome.culprit.place.content.start} of message {key.message} failed."
        )
    return (
        "The padded request did not encode as planned, so no pads were put in: the prompt is normalized only."
        + where,
    )
