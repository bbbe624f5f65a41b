"""From what was done to the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phaseguard.align.copies import REPEAT
from phaseguard.align.crowds import Crowds, Final
from phaseguard.align.evidence import Evidence
from phaseguard.align.layout import Key
from phaseguard.align.notes import isolation_of, notes_of, repeat_notes
from phaseguard.align.passages import Passage, Source
from phaseguard.align.plan import PlannedPad
from phaseguard.align.prompt import FieldKey
from phaseguard.align.repeat import Repeated
from phaseguard.align.report import PadReport, PassageReport, Report, SpanReport
from phaseguard.align.request import Request
from phaseguard.align.salience import AnswerSpan
from phaseguard.align.solve import Solution
from phaseguard.errors import RenderError
from phaseguard.text import Edit, OffsetMap, Span, apply_edits

Steps = Mapping[FieldKey, tuple[tuple[Edit, ...], ...]]


def summarize(done: Repeated, steps: Steps) -> Report:
    """Build the report; every index is looked up in an encoded request, none is computed from a plan."""
    draft, solution = done.draft, done.solution
    profile, evidence = draft.setting.profile, draft.setting.evidence
    sources = {source.field.key: source for source in draft.sources}
    finals = _finals(sources, steps)
    found = {
        (key.passage.key, key.answer.span): (key, span)
        for key, span in zip(solution.keys, solution.moved, strict=True)
    }
    padded = solution.padded
    given = None if padded is None else draft.given
    crowds = Crowds.of(draft, solution, finals)
    view = _View(given, padded, evidence, sources, found, profile.window or 0, crowds)
    passages = tuple(_passage(p, draft.answers[p], view, finals[p.key]) for p in draft.passages)
    return Report(
        verified=solution.verified,
        profile=profile.name,
        period=evidence.period,
        chat=profile.chat,
        tokenizer=draft.setting.tokenizer_name,
        tokens_before=None if given is None else given.tokens,
        tokens_normalized=None if padded is None else draft.base.tokens - done.tokens,
        tokens_after=None if padded is None else padded.tokens,
        tokens_added=0 if padded is None else padded.tokens - draft.base.tokens,
        pads=_pads(solution.planned, sources, finals),
        normalize_edits=sum(edit.reason != REPEAT for edits in draft.edits.values() for edit in edits),
        provenance=evidence.provenance,
        passages=passages,
        notes=(
            *notes_of(passages, draft.setting, padded),
            *repeat_notes(done.reports, profile.window),
            *(padded.rendered.notes if padded else ()),
        ),
        warnings=_warnings(solution),
        repeated=done.reports,
        tokens_repeated=done.tokens,
        isolation=None if crowds is None else isolation_of(draft.setting, crowds.grid, passages),
    )


@dataclass(frozen=True, slots=True)
class _View:
    """Looks spans up in the request as given and in the one returned; None for both without a phase."""

    given: Request | None
    padded: Request | None
    evidence: Evidence
    sources: Mapping[FieldKey, Source]
    found: Mapping[tuple[FieldKey, Span], tuple[Key, Span]]
    window: int
    crowds: Crowds | None

    def span(self, passage: Passage, answer: AnswerSpan) -> SpanReport:
        source = self.sources[passage.key]
        key, moved = self.found.get((passage.key, answer.span), (None, answer.span))
        before = self._index_before(source, answer.span)
        after = None if key is None else self._index_after(moved)
        tokens = 0 if key is None else key.tokens
        crowds = None if key is None else self.crowds
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
            in_window=self._in_window(after),
            strangers_before=None if crowds is None or key is None else crowds.before(key),
            strangers_after=None if crowds is None or key is None else crowds.after(key, moved),
        )

    def _index_before(self, source: Source, span: Span) -> int | None:
        if self.given is None:
            return None
        key = source.field.key
        try:
            at = self.given.rendered.locate(
                key.message, source.offsets.backward(span.start), key.block_or_none
            )
        except RenderError:
            return None
        if not self.given.known(at):
            return None
        return self.given.offset + self.given.token_range(Span(at, at + 1))[0]

    def _index_after(self, moved: Span) -> int | None:
        if self.padded is None:
            return None
        return self.padded.offset + self.padded.token_range(moved)[0]

    def _in_window(self, index: int | None) -> bool:
        return self.padded is not None and index is not None and index >= self.padded.tokens - self.window

    def _phase(self, index: int | None) -> int | None:
        return None if index is None or self.evidence.period < 2 else index % self.evidence.period

    def _strength(self, tokens: int, index: int | None) -> float | None:
        phase = self._phase(index)
        return None if phase is None else self.evidence.strength(tokens, phase)

    def _strong(self, tokens: int, index: int | None) -> bool | None:
        phase = self._phase(index)
        return None if phase is None else self.evidence.is_strong(tokens, phase)


def _finals(sources: Mapping[FieldKey, Source], steps: Steps) -> dict[FieldKey, Final]:
    return {
        key: Final(apply_edits(source.text, edits), OffsetMap(edits))
        for key, source in sources.items()
        for edits in (steps[key][1] if key in steps else (),)
    }


def _passage(passage: Passage, answers: Sequence[AnswerSpan], view: _View, final: Final) -> PassageReport:
    return PassageReport(
        text=final.offsets.forward_span(passage.span).of(final.text),
        message=passage.key.message,
        block=passage.key.block_or_none,
        why=passage.why,
        spans=tuple(view.span(passage, answer) for answer in answers),
    )


def _pads(
    planned: Sequence[PlannedPad], sources: Mapping[FieldKey, Source], finals: Mapping[FieldKey, Final]
) -> tuple[PadReport, ...]:
    reports = []
    ahead: dict[FieldKey, tuple[int, int, int]] = {}  # characters added, offset and line of the pad before
    for pad in planned:
        key, content = pad.place.key, pad.place.content
        added, before, line = ahead.get(key, (0, 0, 1))
        offset = content.start + added
        line += finals[key].text.count("\n", before, offset)
        ahead[key] = (added + len(pad.choice.text) - (content.end - content.start), offset, line)
        reports.append(
            PadReport(
                message=key.message,
                block=key.block_or_none,
                offset=offset,
                text=pad.choice.text,
                original=content.of(sources[key].text),
                tokens=pad.choice.tokens,
                kind=pad.choice.kind,
                line=line,
            )
        )
    return tuple(reports)


def _warnings(solution: Solution) -> tuple[str, ...]:
    if solution.verified:
        return ()
    where = ""
    if solution.culprit is not None:
        key = solution.culprit.place.key
        where = (
            f" The pad at character {solution.culprit.place.content.start} of message {key.message} failed."
        )
    return (
        "The padded request did not encode as planned, so no pads were put in: the prompt is normalized only."
        + where,
    )
