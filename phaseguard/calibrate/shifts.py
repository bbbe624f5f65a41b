"""Moving a record by the very pads that aligning puts in front of it; positions come from the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phaseguard.align import align_prompt
from phaseguard.align.setting import Setting
from phaseguard.calibrate.items import Item
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile, Provenance
from phaseguard.text import Span
from phaseguard.tokens import TokenizerLike, load_tokenizer


@dataclass(frozen=True, slots=True)
class Shifted:
    """One prompt of an item.

    Attributes:
        prompt: the text with its pads.
        shift: tokens that the pads add.
        position: token index of the answer in the request; for ``behind``, where it would stand if the pads
            stood in front of it. ``key``: the same of the key's first token.
        shape: tokens of the answer.
        tokens: of the request, as predicted.
    """

    prompt: str
    shift: int
    position: int
    key: int
    shape: int
    tokens: int


@dataclass(frozen=True)
class Shifter:
    r"""Moves one item.

    Attributes:
        item: what is moved.
        profile: chat encoding, tokenizer and prefix of the requests; its phases do not matter.
        period: the record can be moved to each of so many phases.
        tokenizer: in place of the profile's, or None.

    >>> from phaseguard.profiles import load_profile
    >>> text = "A door.\n\nThe code of AB is 8417.\n\nWhich is the code of AB?"
    >>> record = Span(9, 32)
    >>> item = Item(0, "records", text, record, Span(21, 23), Span(27, 31), record)
    >>> shifter = Shifter(item, load_profile("deepseek-v4-flash"), 8)
    >>> moved = shifter.at(5)
    >>> moved.shift, moved.position - shifter.at(0).position, moved.shape
    (5, 5, 2)
    """

    item: Item
    profile: PhaseProfile
    period: int
    tokenizer: TokenizerLike | None = None

    @cached_property
    def _ruler(self) -> PhaseProfile:
        """A profile with as many phases as shifts: its strong phase says where the record goes."""
        return self.profile.with_(
            period=self.period,
            strengths=None,
            reported=None,
            provenance=Provenance(kind="stated", source="counts shifts"),
        )

    @cached_property
    def _starts(self) -> tuple[int, int, int]:
        """Token indices of answer, key, and what is moved, before any pad."""
        item = self.item
        setting = Setting.read(self._ruler, tokenizer=self.tokenizer)
        request = setting.encode([{"role": "user", "content": item.text}], {})

        def index(span: Span) -> int:
            start = request.rendered.locate(0, span.start)
            return request.offset + request.token_range(Span(start, start + span.end - span.start))[0]

        return index(item.answer), index(item.key), index(self._aim)

    @cached_property
    def _aim(self) -> Span:
        """The characters whose phase is aimed at: the answer, or the first word of a later paragraph."""
        item = self.item
        if item.moved == item.record:
            return item.answer
        first = item.moved.of(item.text).split(None, 1)[0]
        return Span(item.moved.start, item.moved.start + len(first))

    def at(self, shift: int, pads: str | Sequence[str] = "auto") -> Shifted | None:
        """The prompt with ``shift`` tokens of pads; None where no pad can add exactly so many.

        Raises:
            InputError: when the answer stands in its record more than once.
        """
        item, aim = self.item, self._aim
        answer, key, start = self._starts
        passage = Span(item.moved.start, max(aim.end, item.record.end if item.moved == item.record else 0))
        if passage.of(item.text).count(aim.of(item.text)) != 1:
            raise InputError(
                f"The answer {aim.of(item.text)!r} stands in its record {passage.of(item.text)!r} more than "
                "once: calibrate with records that hold their answer once."
            )
        out = align_prompt(
            item.text,
            key_passages=[passage],
            answer=aim.of(item.text),
            profile=self._ruler,
            strong={(start + shift) % self.period},
            isolate=False,
            level="off",
            pads=pads,
            tokenizer=self.tokenizer,
        )
        (span,) = out.report.passages[0].spans
        if not out.report.verified or span.index_after != start + shift or out.report.tokens_after is None:
            return None
        shape = span.tokens if item.moved == item.record else self._shape
        return Shifted(str(out.prompt), shift, answer + shift, key + shift, shape, out.report.tokens_after)

    @cached_property
    def _shape(self) -> int:
        tokenizer = load_tokenizer(self.profile.tokenizer if self.tokenizer is None else self.tokenizer)
        return len(tokenizer.encode_ids([self.item.expected])[0])
