"""A prompt on its way: normalized, with its key passages found, ready to be solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from phaseguard.align.keys import Wanted, choose_answers, choose_passages
from phaseguard.align.passages import Passage, Source
from phaseguard.align.plan import Answers
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.request import Request
from phaseguard.align.setting import Setting
from phaseguard.normalize import normalize
from phaseguard.text import Edit


@dataclass(frozen=True)
class Draft:
    """The normalized prompt and what is key in it.

    Attributes:
        prompt: as given.
        setting: the caller's choices.
        sources: every text before and after normalizing; ``edits``: what normalizing did.
        passages: the key passages; ``answers``: their answer spans.
    """

    prompt: Prompt
    setting: Setting
    sources: tuple[Source, ...]
    edits: Mapping[FieldKey, tuple[Edit, ...]]
    passages: tuple[Passage, ...]
    answers: Answers

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
        edits = {source.field.key: source.normalized.edits for source in sources if source.normalized.edits}
        passages = choose_passages(prompt, sources, wanted)
        tokenizer = setting.tokenizer if setting.evidence.period > 1 else None
        answers = choose_answers(prompt, passages, sources, wanted, tokenizer)
        return cls(prompt, setting, sources, edits, passages, answers)

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
