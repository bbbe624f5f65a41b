"""For the report: how many strangers share an answer's chunks, counted in the encoded requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phaseguard.align.draft import Draft
from phaseguard.align.grid import Grid
from phaseguard.align.layout import Key
from phaseguard.align.neighbours import Neighbours, records
from phaseguard.align.passages import Source
from phaseguard.align.prompt import FieldKey
from phaseguard.align.solve import Solution, stretches_of
from phaseguard.errors import RenderError
from phaseguard.text import OffsetMap, Span


@dataclass(frozen=True, slots=True)
class Final:
    """One text as returned, and where its characters went."""

    text: str
    offsets: OffsetMap


@dataclass(frozen=True, slots=True)
class Crowds:
    """Counts strangers in the request as given and in the one returned."""

    grid: Grid
    given: Neighbours
    padded: Neighbours
    sources: Mapping[FieldKey, Source]
    finals: Mapping[FieldKey, Final]
    records: Mapping[Key, Span]

    @classmethod
    def of(cls, draft: Draft, solution: Solution, finals: Mapping[FieldKey, Final]) -> Crowds | None:
        """What the report needs; None when answers are not isolated."""
        setting = draft.setting
        if setting.grid is None or solution.padded is None:
            return None
        owned: dict[Key, Span] = {}
        for stretch in stretches_of(draft):
            owned |= records(stretch, inside=setting.inside)
        return cls(
            setting.grid,
            Neighbours(draft.given, setting.alphabets),
            Neighbours(solution.padded, setting.alphabets),
            {source.field.key: source for source in draft.sources},
            finals,
            owned,
        )

    def before(self, key: Key) -> int | None:
        """Strangers of an answer in the request as given; None when it cannot be found there."""
        field, rendered = key.passage.key, self.given.request.rendered
        back = self.sources[field].offsets.backward
        record, answer = self.records[key], key.answer.span
        try:
            start = rendered.locate(field.message, back(answer.start), field.block_or_none)
        except RenderError:
            return None
        moved = Span(start, start + back(answer.end) - back(answer.start))
        return self._count(self.given, field, moved, Span(back(record.start), back(record.end)))

    def after(self, key: Key, moved: Span) -> int | None:
        """The same in the request returned, where the answer's characters are ``moved``."""
        field = key.passage.key
        return self._count(
            self.padded, field, moved, self.finals[field].offsets.forward_span(self.records[key])
        )

    def _count(self, seen: Neighbours, field: FieldKey, answer: Span, record: Span) -> int | None:
        for piece in seen.request.rendered.pieces:
            if (piece.message, piece.block) == (field.message, field.block_or_none) and (
                piece.request.contains(answer)
            ):
                shift = piece.request.start - piece.content.start
                whole = Span(max(0, record.start + shift), max(0, record.end + shift))
                return seen.count(self.grid, answer, piece.request, whole)
        return None
