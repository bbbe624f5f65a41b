"""What is asked: a text with one record that matters, and the same text with the record moved by pads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from phaseguard.text import Span
from phaseguard.tokens import TokenizerLike

Probe = Literal["records", "inside", "behind", "filler"]
PROBES: tuple[Probe, ...] = get_args(Probe)


@dataclass(frozen=True, slots=True)
class Item:
    r"""One text and what is asked about it, before any pad.

    Attributes:
        number: of the item, from 0 in its probe; ``probe``: what it is for: ``records``, whose record stands
            where the cache is compressed; ``inside``, in the raw window; ``behind``, whose pads stand behind
            the record; ``filler``, whose pads are visible decoration.
        text: the whole prompt.
        record: its characters; ``key``, ``answer``: those of the record's key and answer.
        moved: what the pads stand in front of: the record, or for ``behind`` a later paragraph.

    >>> item = Item(0, "records", "A is 7.\n\nA is", Span(0, 7), Span(0, 1), Span(5, 6), Span(0, 7))
    >>> item.expected
    '7'
    """

    number: int
    probe: Probe
    text: str
    record: Span
    key: Span
    answer: Span
    moved: Span

    @property
    def expected(self) -> str:
        """The right answer."""
        return self.answer.of(self.text)


class Language(Protocol):
    """How items are made, and how their answers are read."""

    @property
    def name(self) -> str:
        """What it is called in results."""

    @property
    def tokenizer(self) -> TokenizerLike | None:
        """What reads its texts in place of the profile's tokenizer, or None."""

    @property
    def tokens(self) -> int:
        """About how many tokens a prompt has."""

    @property
    def answer_tokens(self) -> int:
        """Most tokens that an answer may take."""

    @property
    def settings(self) -> dict[str, object]:
        """All that its texts depend on, as JSON values: a results file belongs to them."""

    def draw(self, number: int, probe: Probe) -> Item:
        """An item; the same number gives the same item."""

    def right(self, answer: str, item: Item) -> bool:
        """Whether a reply gives the item's answer."""
