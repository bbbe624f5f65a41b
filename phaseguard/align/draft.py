"""A prompt on its way: normalized, with its key passages found, ready to be solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from phaseguard.align.copies import Home, Insert, find_home, insert_copies, standing_copies
from phaseguard.align.keys import Wanted, choose_answers, choose_passages
from phaseguard.align.passages import Passage, Source, find_passages
from phaseguard.align.plan import Answers
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.request import Request
from phaseguard.align.setting import Setting
from phaseguard.normalize import normalize
from phaseguard.text import Edit, Span


@dataclass(frozen=True)
class Draft:
    """The normalized prompt and what is key in it.

    Attributes:
        prompt: as given.
        setting: the caller's choices.
        sources: every text before and after normalizing; ``edits``: what normalizing did.
        passages: the key passages; ``answers``: their answer spans.
        wanted: what the caller says of key passages.
        home: where copies of passages go; None unless they are asked for and have a place.
        copies: those that stand there.
    """

    prompt: Prompt
    setting: Setting
    sources: tuple[Source, ...]
    edits: Mapping[FieldKey, tuple[Edit, ...]]
    passages: tuple[Passage, ...]
    answers: Answers
    wanted: Wanted
    home: Home | None = None
    copies: tuple[Span, ...] = ()

    @classmethod
    def make(cls, prompt: Prompt, setting: Setting, wanted: Wanted) -> Draft:
        """Normalize a prompt and find its key passages.

        Raises:
            InputError: when the level is unknown or a passage cannot be used.
            PassageNotFoundError: when a passage or answer does not occur.
        """
        sources = tuple(
            Source(
                field, normalize(field.text, setting.level if field.editable and not field.is_tool else "off")
            )
            for field in prompt.fields
        )
        return cls._of(prompt, setting, wanted, sources)

    def with_copies(self, home: Home, inserts: Sequence[Insert]) -> Draft:
        """The same with these copies in front of the question."""
        changed = insert_copies(home, inserts)
        here = changed.field.key
        sources = tuple(changed if source.field.key == here else source for source in self.sources)
        return self._of(self.prompt, self.setting, self.wanted, sources)

    @classmethod
    def _of(cls, prompt: Prompt, setting: Setting, wanted: Wanted, sources: tuple[Source, ...]) -> Draft:
        edits = {source.field.key: source.normalized.edits for source in sources if source.normalized.edits}
        home = find_home(prompt, sources) if setting.repeat else None
        copies: tuple[Span, ...] = ()
        if home is not None:
            copies = standing_copies(home, sources, _given_texts(sources, wanted))
        skip = [(home.source, span) for span in copies] if home else []
        passages = choose_passages(prompt, sources, wanted, skip)
        tokenizer = setting.tokenizer if setting.evidence.period > 1 else None
        answers = choose_answers(prompt, passages, sources, wanted, tokenizer)
        return cls(prompt, setting, sources, edits, passages, answers, wanted, home, copies)

    @cached_property
    def texts(self) -> Mapping[FieldKey, str]:
        """The normalized texts."""
        return {source.field.key: source.text for source in self.sources}

    def messages(self, texts: Mapping[FieldKey, str]) -> Sequence[Any]:
        """The prompt's messages with other texts."""
        changed = self.prompt.with_texts(texts)
        if self.prompt.kind == "text":
            return [{"role": "user", "content": changed}]
        return Prompt.read(changed).messages

    def encode(self, texts: Mapping[FieldKey, str], *, stop: int | None = None) -> Request:
        """The request with these texts, or that of its first ``stop`` messages."""
        return self.setting.encode(self.messages(texts)[:stop], self.prompt.options)

    @cached_property
    def base(self) -> Request:
        """The normalized request, without pads."""
        return self.encode(self.texts)

    @cached_property
    def given(self) -> Request:
        """The request as it was given."""
        if not self.edits:
            return self.base
        return self.setting.encode(self.prompt.messages, self.prompt.options)


def _given_texts(sources: Sequence[Source], wanted: Wanted) -> frozenset[str] | None:
    """The characters of the passages that the caller names; None when the question finds them."""
    if wanted.key_passages is None:
        return None
    texts = {source.field.key: source.text for source in sources}
    return frozenset(p.span.of(texts[p.key]) for p in find_passages(wanted.key_passages, sources))
