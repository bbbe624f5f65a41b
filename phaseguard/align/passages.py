"""Finding the key passages that the caller names: exactly, at every place where they stand."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from numbers import Integral

from phaseguard.align.prompt import FieldKey, TextField
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.normalize import BlockMap, Normalized
from phaseguard.text import OffsetMap, Span


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A key passage given by its place: characters of a message's content, as given.

    >>> PassageSpan(4, 9)
    PassageSpan(start=4, end=9, message=0, block=None)
    """

    start: int
    end: int
    message: int = 0
    block: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Passage:
    """One place of a key passage, in characters of the normalized text of its field."""

    key: FieldKey
    span: Span
    why: str


@dataclass(frozen=True)
class Source:
    """A text of the prompt before and after normalizing."""

    field: TextField
    normalized: Normalized

    @property
    def text(self) -> str:
        """The text after normalizing."""
        return self.normalized.text

    @cached_property
    def offsets(self) -> OffsetMap:
        """Maps characters of the text as given to those after normalizing."""
        return OffsetMap(self.normalized.edits)

    @cached_property
    def blocks(self) -> BlockMap:
        """What is protected in the normalized text."""
        return self.normalized.blocks


Given = str | Span | PassageSpan


def find_passages(
    given: Sequence[Given],
    sources: Sequence[Source],
    *,
    occurrence: int | None = None,
    skip: Sequence[tuple[Source, Span]] = (),
) -> tuple[Passage, ...]:
    """Find every place of every given passage.

    Args:
        given: strings, or spans of the prompt as given.
        sources: the texts to search.
        occurrence: take only this place of each string, from 0; -1 is the last one.
        skip: runs that count only for a string that stands nowhere else.

    Raises:
        InputError: when a passage is blank, of another type, or outside the prompt.
        PassageNotFoundError: when one does not occur; the message shows the nearest text.
    """
    found: set[Passage] = set()
    for number, passage in enumerate(given):
        if isinstance(passage, str):
            found.update(_places(passage, number, sources, occurrence, skip))
        elif isinstance(passage, Span | PassageSpan):
            found.add(_at(passage, number, sources))
        else:
            raise InputError(
                f"key_passages[{number}] is {type(passage).__name__}: give a string, a Span or a PassageSpan."
            )
    return tuple(sorted(found))


def _places(
    passage: str,
    number: int,
    sources: Sequence[Source],
    occurrence: int | None,
    skip: Sequence[tuple[Source, Span]],
) -> list[Passage]:
    wanted = passage.strip()
    if not wanted:
        raise InputError(f"key_passages[{number}] is blank: give the text of a passage.")
    places = [
        Passage(source.field.key, span, "given") for source in sources for span in occurrences(source, wanted)
    ]
    if not places:
        raise PassageNotFoundError(
            f"key_passages[{number}] does not occur in the prompt: {shorten(wanted)!r}."
            f"{nearest(wanted, [source.text for source in sources])}"
        )
    skipped = [(source.field.key, span) for source, span in skip]
    apart = [p for p in places if not any(key == p.key and span.contains(p.span) for key, span in skipped)]
    places = apart or places
    if occurrence is None:
        return places
    if not -len(places) <= occurrence < len(places):
        raise PassageNotFoundError(
            f"occurrence={occurrence}, but the places of key_passages[{number}] are 0 to {len(places) - 1}: "
            f"{shorten(wanted)!r}."
        )
    return [places[occurrence]]


def occurrences(source: Source, wanted: str) -> list[Span]:
    """Places in the text as given, else in the normalized one, else with other blanks between words.

    Returns:
        Characters of the normalized text.
    """
    places = [source.offsets.forward_span(span) for span in _exact(source.field.text, wanted)]
    places = places or list(_exact(source.text, wanted))
    if not places and (words := wanted.split())[1:] and words[0] in source.text:
        # a framework may have wrapped lines anew, and a passage may hold pads of an earlier alignment
        pattern = re.compile(r"\s+(?:[.…·][.…· ]*\n\s*)*".join(map(re.escape, words)))
        places = [Span(*match.span()) for match in pattern.finditer(source.text)]
    return places


def _exact(text: str, wanted: str) -> Iterator[Span]:
    at = text.find(wanted)
    while at >= 0:
        yield Span(at, at + len(wanted))
        at = text.find(wanted, at + len(wanted))


def _at(passage: Span | PassageSpan, number: int, sources: Sequence[Source]) -> Passage:
    place = PassageSpan(passage.start, passage.end) if isinstance(passage, Span) else passage
    numbers = astuple(place)[: 3 if place.block is None else 4]
    if not all(isinstance(at, Integral) for at in numbers):
        raise InputError(f"key_passages[{number}] is {place!r}: give whole numbers, and a block or None.")
    key = FieldKey(place.message, -1 if place.block is None else place.block)
    source = next((source for source in sources if source.field.key == key), None)
    if source is None:
        raise InputError(
            f"key_passages[{number}]: there is no text at message {place.message}, block {place.block}."
        )
    if not 0 <= place.start < place.end <= len(source.field.text):
        raise InputError(
            f"key_passages[{number}] is {place.start}:{place.end}, but the text has "
            f"{len(source.field.text)} characters."
        )
    return Passage(key, source.offsets.forward_span(Span(place.start, place.end)), "given")


_MOST_LINES = 500


def shorten(text: str, most: int = 80) -> str:
    """The text on one line, cut to ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def nearest(wanted: str, texts: Sequence[str]) -> str:
    r"""A sentence that shows the line of ``texts`` which is most like ``wanted``, or nothing.

    >>> nearest("The access cod is 17", ["Hello.\nThe access code is 17."])
    " The nearest text is 'The access code is 17.'."
    """
    words = set(_words(wanted))
    best, best_score = "", 0.0
    for text in texts:
        for line in text.splitlines():
            here = set(_words(line))
            score = len(words & here) / max(1, len(words | here))
            if score > best_score:
                best, best_score = line, score
    best = best or _most_like(wanted, texts)
    return f" The nearest text is {shorten(best, 120)!r}." if best else ""


def _most_like(wanted: str, texts: Sequence[str]) -> str:
    """The line with most characters in common, where no whole word is; only the first lines are tried."""
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()][:_MOST_LINES]
    matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
    best, best_share = "", 0.5
    for line in lines:
        matcher.set_seq1(line[: 4 * len(wanted) + 200])
        share = sum(block.size for block in matcher.get_matching_blocks()) / len(wanted)
        if share > best_share:
            best, best_share = line, share
    return best


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def by_field(passages: Sequence[Passage]) -> Mapping[FieldKey, list[Passage]]:
    """Passages grouped by the text in which they stand."""
    grouped: dict[FieldKey, list[Passage]] = {}
    for passage in passages:
        grouped.setdefault(passage.key, []).append(passage)
    return grouped
