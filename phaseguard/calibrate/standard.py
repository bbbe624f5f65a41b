"""Texts in English: one record that matters, among other records or sentences, and the question behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from phaseguard.align.setting import Setting
from phaseguard.calibrate.facts import CodeFacts, Fact, Facts, digit_counts
from phaseguard.calibrate.items import PROBES, Item, Probe
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile
from phaseguard.text import Span
from phaseguard.tokens import Tokenizer, TokenizerLike

Filler = Literal["load", "text", "ask"]
_SHORTEST = 0.7  # of the context: lengths differ, so that depth and phase are not one
_MARGIN = 48  # tokens around a record in the raw window: question, pads and the chat encoding's own
_WINDOW = 128  # where the profile does not know the raw window
_GOLDEN = 0.6180339887498949  # depths that follow each other cover the text evenly
_TEXT_RECORDS = 12  # distractors among sentences
_PAIRS = 4  # pairs of a paragraph that may be asked for anything
# a character that would make an answer's word longer: not of scripts that write words without blanks
_WORD = (
    r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
_PREAMBLE = "Read the notes below; a question follows them."


@dataclass(frozen=True)
class StandardLanguage:
    """Key-value records in English.

    Attributes:
        profile: tokenizer, chat encoding and raw window of the model.
        context: tokens of the longest prompts; they differ in length.
        completions: whether the model continues the text instead of answering a question.
        filler: ``load``, other records of the same form, which is what shows an effect best; ``text``,
            sentences with a few records; ``ask``, names and numbers of which any may be asked.
        answer_tokens_of: how many tokens answers take, 1 to 3.
        facts: where records come from; made up by default.
        seed: of all texts.

    Raises:
        InputError: for a context that is too short, a seed below 0, or answers that cannot be made.

    >>> from phaseguard.profiles import load_profile
    >>> language = StandardLanguage(load_profile("deepseek-v4-flash"), context=1000)
    >>> item = language.draw(0, "records")
    >>> language.right(f"It is {item.expected}.", item), language.right(f"It is {item.expected}1.", item)
    (True, False)
    """

    profile: PhaseProfile
    context: int = 8000
    completions: bool = False
    filler: Filler = "load"
    answer_tokens_of: Sequence[int] = (2,)
    facts: Facts | None = None
    seed: int = 0
    tokenizer: TokenizerLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        least = (self._window + _MARGIN) * 2
        if self.context < least:
            raise InputError(f"context={self.context}: give {least} tokens or more, beyond the raw window.")
        if self.seed < 0:
            raise InputError(f"seed={self.seed}: give 0 or more.")
        if self.filler not in ("load", "text", "ask"):
            raise InputError(f"Unknown filler {self.filler!r}: give 'load', 'text' or 'ask'.")

    @property
    def name(self) -> str:
        """``standard``."""
        return "standard"

    @property
    def tokens(self) -> int:
        """Mean length of a prompt."""
        return int(self.context * (1 + _SHORTEST) / 2)

    @property
    def answer_tokens(self) -> int:
        """Most tokens of an answer; passages may have long ones."""
        passages = getattr(self._facts, "passages", ())
        longest = max((len(fact.answer.of(fact.text)) for fact in passages), default=0)
        return max(*self.answer_tokens_of, 2, longest)

    @property
    def settings(self) -> dict[str, object]:
        """What the texts depend on."""
        return {
            "context": self.context,
            "filler": self.filler,
            "facts": dict(self._facts.settings),
            "seed": self.seed,
            "window": self._window,
        }

    @cached_property
    def _reader(self) -> Tokenizer:
        return Setting.read(self.profile, tokenizer=self.tokenizer).tokenizer

    @cached_property
    def _facts(self) -> Facts:
        if self.facts is not None:
            return self.facts
        return CodeFacts(digit_counts(self._count, self.answer_tokens_of), bare=self.filler == "ask")

    @property
    def _window(self) -> int:
        return _WINDOW if self.profile.window is None else self.profile.window

    def _count(self, numbers: Sequence[str]) -> list[int]:
        """Tokens that hold a part of each number in a sentence."""
        encodings = self._reader.encode_batch([f"is {number}." for number in numbers])
        return [
            int(((one.ends > 3) & (one.starts < 3 + len(number))).sum())
            for one, number in zip(encodings, numbers, strict=True)
        ]

    def draw(self, number: int, probe: Probe) -> Item:
        """A text of about 70% to 100% of the context, its record at another depth than the one before.

        For ``inside`` the record is the last paragraph before the question.
        """
        rng = np.random.default_rng([self.seed, PROBES.index(probe), number])
        length = int(self.context * rng.uniform(_SHORTEST, 1)) - _MARGIN
        paragraphs, asked = self._paragraphs(rng, length)
        ends = np.cumsum([len(ids) + 1 for ids in self._reader.encode_ids(paragraphs)])
        paragraphs = paragraphs[: max(2, int(np.searchsorted(ends, length)))]
        depth = (_GOLDEN * number + float(rng.random()) * 0.1) % 1
        last = len(paragraphs)
        if probe != "inside":
            outside = max(1, int(ends[last - 1]) - self._window - _MARGIN)
            last = max(1, int(np.searchsorted(ends[:last], depth * outside)))
        return self._assembled(number, probe, paragraphs, last, asked, rng)

    def right(self, answer: str, item: Item) -> bool:
        """Whether the answer stands in the reply as a word of its own, whatever its case and blanks."""
        said, want = " ".join(answer.split()).casefold(), " ".join(item.expected.split()).casefold()
        return re.search(rf"(?<!{_WORD}){re.escape(want)}(?!{_WORD})", said) is not None

    def _paragraphs(self, rng: np.random.Generator, length: int) -> tuple[list[str], Fact]:
        """More than enough paragraphs of filler, and the record that is asked."""
        count = (
            length // 6 if self.filler == "load" else length // 4 if self.filler == "ask" else _TEXT_RECORDS
        )
        facts = self._facts.draw(rng, count + 1)
        others = [fact.text for fact in facts[1:]]
        if self.filler == "ask":
            others = [" ".join(others[at : at + _PAIRS]) for at in range(0, len(others), _PAIRS)]
        if self.filler == "text" or len(facts) <= count:
            sentences = _sentences()
            drawn = [sentences[n] for n in rng.integers(0, len(sentences), length // 8).tolist()]
            for text in others:
                drawn.insert(int(rng.integers(len(drawn) // 2 + 1)), text)
            others = drawn
        return others, facts[0]

    def _assembled(
        self, number: int, probe: Probe, paragraphs: list[str], at: int, asked: Fact, rng: np.random.Generator
    ) -> Item:
        front = "\n\n".join([_PREAMBLE, *paragraphs[:at]]) + "\n\n"
        record = Span(len(front), len(front) + len(asked.text))
        tail = ""
        if self.filler == "ask" and at < len(paragraphs):  # in one paragraph with what follows
            tail = f" {paragraphs[at]}"
        behind = paragraphs[at + bool(tail) :]
        question = asked.lead if self.completions else asked.question
        text = front + asked.text + tail + "\n\n"
        moved = record
        middle = int(rng.integers(len(behind) // 4, max(len(behind) // 4 + 1, 3 * len(behind) // 4)))
        for n, paragraph in enumerate([*behind, question]):
            if probe == "behind" and n == middle:
                moved = Span(len(text), len(text) + len(paragraph))
            text += paragraph + ("\n\n" if n < len(behind) else "")
        return Item(
            number,
            probe,
            text,
            record,
            Span(record.start + asked.key.start, record.start + asked.key.end),
            Span(record.start + asked.answer.start, record.start + asked.answer.end),
            moved,
        )


@lru_cache
def _sentences() -> tuple[str, ...]:
    """Sentences of the Python documentation that comes with Python, without markup."""
    from pydoc_data.topics import topics  # noqa: PLC0415

    found: dict[str, None] = {}
    for name in sorted(topics):
        for block in re.split(r"\n\s*\n", str(topics[name])):
            text = re.sub(r"[*`]+", "", " ".join(block.split()))
            for sentence in re.findall(r"[A-Z][^.!?:|<>=]{40,220}\.(?= |$)", text):
                if not re.search(r"\d", sentence):
                    found[sentence] = None
    return tuple(found)
