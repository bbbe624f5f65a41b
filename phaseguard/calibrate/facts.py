"""Records as sentences: made up by seed, or the user's own passages with fresh digits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from phaseguard.align.salience import find_answer_spans
from phaseguard.errors import InputError
from phaseguard.text import Span

_ONSETS, _VOWELS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z"), "aeiou"
_LABELS = ("access code", "locker number", "badge number", "order number", "account number")
_PLACES = (
    "",
    " in the north wing",
    " on the third floor of the old building",
    " since last spring",
    " abroad",
)
_MARK = re.compile(r"\[\[(.+?)\]\]", re.DOTALL)
_DIGITS = re.compile(r"[0-9]+")
_HEAVY = 0.8
_BLANK = "___"
_DRAWS = 100  # of a passage's numbers, until none holds the answer
_GUESSED = 3  # shorter numbers are often guessed


@dataclass(frozen=True, slots=True)
class Fact:
    """A record with what may be asked of it.

    Attributes:
        text: the record; ``key``, ``answer``: their characters in it.
        question: asks for the answer; ``lead``: what an answer continues.
    """

    text: str
    key: Span
    answer: Span
    question: str
    lead: str


class Facts(Protocol):
    """Where records come from."""

    @property
    def settings(self) -> Mapping[str, object]:
        """What they depend on, as JSON values."""

    def draw(self, rng: np.random.Generator, count: int) -> list[Fact]:
        """At most ``count`` records of one form with keys of their own; the first is the one to ask."""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """Records such as "The access code of Tamirel is 8417.", one form a text, names and numbers made up.

    Attributes:
        digits: how many digits numbers may have.
        bare: no sentence but "Tamirel 8417": anything in such a text may be asked.

    >>> facts = CodeFacts((4,)).draw(np.random.default_rng(0), 3)
    >>> len({fact.key.of(fact.text) for fact in facts}), [len(fact.answer.of(fact.text)) for fact in facts]
    (3, [4, 4, 4])
    """

    digits: tuple[int, ...]
    bare: bool = False

    @property
    def settings(self) -> Mapping[str, object]:
        """The same as JSON values."""
        return {"digits": list(self.digits), "bare": self.bare}

    def draw(self, rng: np.random.Generator, count: int) -> list[Fact]:
        """Records of one form."""
        label, place = str(rng.choice(_LABELS)), str(rng.choice(_PLACES))
        length = int(rng.choice(self.digits))
        names, numbers = _names(rng, count), _numbers(rng, count, length)
        if self.bare:
            return [_bare(name, number) for name, number in zip(names, numbers, strict=True)]
        return [_coded(label, place, name, number) for name, number in zip(names, numbers, strict=True)]


def _coded(label: str, place: str, name: str, number: str) -> Fact:
    front = f"The {label} of {name}{place} is "
    key = len(f"The {label} of ")
    return Fact(
        f"{front}{number}.",
        Span(key, key + len(name)),
        Span(len(front), len(front) + len(number)),
        f"What is the {label} of {name}{place}? Answer with the number alone.",
        front.rstrip(),
    )


def _bare(name: str, number: str) -> Fact:
    answer = Span(len(name) + 1, len(name) + 1 + len(number))
    question = f"Which number follows {name}? Answer with the number alone."
    return Fact(f"{name} {number}", Span(0, len(name)), answer, question, name)


def _names(rng: np.random.Generator, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        parts = range(int(rng.integers(2, 5)))
        found["".join(str(rng.choice(_ONSETS)) + _VOWELS[rng.integers(5)] for _ in parts).capitalize()] = None
    return list(found)


def _numbers(rng: np.random.Generator, count: int, length: int) -> list[str]:
    """Numbers of one length; the first is no other's."""
    low, high = 10 ** (length - 1), 10**length
    first = int(rng.integers(low, high))
    others = rng.integers(low, high - 1, count - 1)
    others += others >= first
    return [str(first), *map(str, others.tolist())]


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """The user's own passages; every number in them is replaced by another of its length.

    Passages with a number besides the answer may come many times, as records with keys of their own; others
    come once a text.

    Attributes:
        passages: each with its answer and the question, if one is given.
    """

    passages: tuple[Fact, ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PassageFacts:
        """Read a file: JSON lines with ``text`` and perhaps ``answer`` and ``question``, or paragraphs.

        The answer is marked ``[[so]]`` in the text, or named; else it is taken as
        :func:`phaseguard.align.salience.find_answer_spans` finds it.

        Raises:
            InputError: for a file that cannot be read, has no passage, or one that holds its answer twice.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"Records {os.fspath(path)} cannot be read: {error}.") from error
        rows = _rows(text, os.fspath(path))
        if not rows:
            raise InputError(f"{os.fspath(path)} has no passage: give one a paragraph, or one a JSON line.")
        return cls(tuple(_passage(row, number) for number, row in enumerate(rows, 1)))

    @property
    def settings(self) -> Mapping[str, object]:
        """The passages."""
        return {"passages": [fact.text for fact in self.passages]}

    def draw(self, rng: np.random.Generator, count: int) -> list[Fact]:
        """One passage to ask, and others, with fresh numbers."""
        order = rng.permutation(len(self.passages)).tolist()
        first = self.passages[order[0]]
        drawn = [_fresh(first, rng)]
        taken = {drawn[0].text[: drawn[0].answer.start]}
        many = [fact for fact in self.passages if _DIGITS.search(fact.text[: fact.answer.start])]
        once = [self.passages[n] for n in order[1:]]
        tries = 0
        while len(drawn) < count and (once or many) and tries < 3 * count:
            tries += 1
            source = once.pop() if once else many[int(rng.integers(len(many)))]
            fact = _fresh(source, rng)
            if (front := fact.text[: fact.answer.start]) not in taken:
                taken.add(front)
                drawn.append(fact)
        return drawn


def _rows(text: str, path: str) -> list[dict[str, Any]]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].lstrip().startswith("{"):
        return [{"text": part.strip()} for part in re.split(r"\n\s*\n", text) if part.strip()]
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}, is not JSON: {error}.") from error
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise InputError(f"{path}, line {number}, has no 'text'.")
        rows.append(row)
    return rows


def _passage(row: Mapping[str, Any], number: int) -> Fact:
    marked = _MARK.search(row["text"])
    text = _MARK.sub(r"\1", row["text"], count=1)
    if marked:
        answer = Span(marked.start(), marked.start() + len(marked[1]))
    elif row.get("answer") is not None:
        at = text.find(str(row["answer"]))
        if at < 0:
            raise InputError(f"Passage {number} does not hold its answer {row['answer']!r}.")
        answer = Span(at, at + len(str(row["answer"])))
    else:
        spans = find_answer_spans(text, Span(0, len(text)))
        heavy = [one.span for one in spans if one.weight >= _HEAVY]
        answer = heavy[-1] if heavy else max(spans, key=lambda one: one.weight).span
    if "\n\n" in text or not answer.of(text).strip():
        raise InputError(f"Passage {number} has a blank line inside, or no answer: give one paragraph each.")
    fact = _asked(text, answer, row.get("question"))
    _fresh(fact, np.random.default_rng(0))  # refused before anything is spent
    return fact


def _asked(text: str, answer: Span, question: str | None) -> Fact:
    before = text[: answer.start]
    spans = find_answer_spans(before, Span(0, len(before))) if before.strip() else ()
    key = (
        spans[-1].span
        if spans and spans[-1].kind != "passage"
        else Span(0, max(1, len(before.split(" ")[0])))
    )
    gap = f"{before}{_BLANK}{text[answer.end :]}"
    asks = question or f'Above stands: "{gap}" What stands there in place of {_BLANK}? Write that alone.'
    return Fact(text, key, answer, asks, before.rstrip())


def _fresh(fact: Fact, rng: np.random.Generator) -> Fact:
    """The same with other numbers, of which none holds the answer by chance.

    Raises:
        InputError: when the answer stands in the passage twice whatever its numbers are.
    """
    for _ in range(_DRAWS):
        made = _swapped(fact, rng)
        if made.text.count(made.answer.of(made.text)) == 1:
            return made
    raise InputError(
        f"The answer {fact.answer.of(fact.text)!r} stands in its passage {fact.text[:60]!r} more than once: "
        "give passages that hold their answer once."
    )


def _swapped(fact: Fact, rng: np.random.Generator) -> Fact:
    """Other numbers of the same lengths: the question's change with those of the text."""
    swaps: dict[str, str] = {}

    def swap(match: re.Match[str]) -> str:
        return swaps.setdefault(match[0], _like(match[0], rng))

    text = _DIGITS.sub(swap, fact.text)
    replace: Callable[[str], str] = lambda given: _DIGITS.sub(lambda m: swaps.get(m[0], m[0]), given)  # noqa: E731
    return Fact(text, fact.key, fact.answer, replace(fact.question), replace(fact.lead))


def _like(digits: str, rng: np.random.Generator) -> str:
    first = digits[0] if digits[0] == "0" else str(rng.integers(1, 10))
    return first + "".join(map(str, rng.integers(0, 10, len(digits) - 1).tolist()))


def digit_counts(count: Callable[[Sequence[str]], Sequence[int]], wanted: Sequence[int]) -> tuple[int, ...]:
    """Lengths of numbers that take so many tokens as answers.

    Args:
        count: tokens of the number in "is 8417.", for many numbers.
        wanted: numbers of tokens.

    Raises:
        InputError: when no length up to 12 digits does.

    >>> digit_counts(lambda numbers: [-(-len(number) // 3) for number in numbers], [2])
    (4, 5, 6)
    """
    lengths = range(1, 13)
    counts = count(["".join(str((7 * n + 3 * k) % 9 + 1) for k in range(n)) for n in lengths])
    found = tuple(n for n, tokens in zip(lengths, counts, strict=True) if tokens in wanted)
    found = tuple(n for n in found if n >= _GUESSED) or found
    if not found:
        raise InputError(f"No number has {tuple(wanted)} tokens with this tokenizer: ask for others.")
    return found
