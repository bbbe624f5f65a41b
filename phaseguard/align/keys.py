"""Which passages are key, and which of their characters the answer depends on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from phaseguard.align.passages import Given, Passage, Source, find_passages, shorten
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.retrieve import find_by_query, question_of
from phaseguard.align.salience import WEIGHTS, AnswerSpan, find_answer_spans, long_word
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.text import Span
from phaseguard.tokens.base import Tokenizer

_ASKED = 0.25  # share of its weight that a span keeps when the question names it
_LONGEST_WORD = 40  # characters: no vocabulary has a longer word
_COMMON_IDS = 20_000  # merges are learnt in order of frequency: a word with a low id is a common one


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller says of key passages.

    Attributes:
        key_passages: strings or spans; None to find them from the query.
        query: the question of the last turn; None to take it from the prompt.
        answer: the answer's own characters, when the caller knows them.
        occurrence: which place of each key passage, or None for all.
    """

    key_passages: tuple[Given, ...] | None
    query: str | None
    answer: tuple[str, ...] | None
    occurrence: int | None

    @classmethod
    def read(
        cls,
        key_passages: Given | Sequence[Given] | None,
        query: str | None,
        answer: str | Sequence[str] | None,
        occurrence: int | None,
    ) -> Wanted:
        """Check the caller's arguments.

        Raises:
            InputError: when one is of another type.
        """
        answers = _strings("answer", answer)
        if query is not None and not isinstance(query, str):
            raise InputError(f"query is {type(query).__name__}: give a string.")
        if occurrence is not None and (not isinstance(occurrence, int) or isinstance(occurrence, bool)):
            raise InputError(
                f"occurrence={occurrence!r}: give a whole number from 0, or None for every place."
            )
        given: tuple[Given, ...] | None
        if key_passages is None:
            given = answers if answers and query is None else None
        elif isinstance(key_passages, Sequence) and not isinstance(key_passages, str):
            given = tuple(key_passages)
        else:
            given = (key_passages,)
        return cls(given, query, answers, occurrence)


def _strings(name: str, given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    values = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else ()
    if not values or not all(isinstance(value, str) and value.strip() for value in values):
        raise InputError(f"{name}: give a text or a list of texts, none of them blank.")
    return values


Asked = Sequence[tuple[Source, Span]]


def choose_passages(
    prompt: Prompt, sources: Sequence[Source], wanted: Wanted, copies: Asked = ()
) -> tuple[Passage, ...]:
    """The key passages: the caller's, or those that each turn's own question points at; no ``copies``."""
    if wanted.key_passages is not None:
        return find_passages(wanted.key_passages, sources, occurrence=wanted.occurrence, skip=copies)
    found: set[Passage] = set()
    for message, query, asked in _turns(prompt, sources, wanted):
        # each message by itself, so that what counts in it does not change with what follows
        here = [source for source in sources if source.field.key.message == message]
        found.update(find_by_query(query, here, skip=[*asked, *copies]))
    return tuple(sorted(found))


def _turns(prompt: Prompt, sources: Sequence[Source], wanted: Wanted) -> list[tuple[int, str, Asked]]:
    """Each message with the question that decides what is key in it: never a question of a later turn.

    A message belongs to the last user message up to it, and what stands before the first user message
    to the first one. A query given by the caller is that of the last turn.
    """
    query = wanted.query
    users = [index for index, message in enumerate(prompt.messages) if message["role"] == "user"]
    if not users:
        return [(index, query, []) for index in range(len(prompt.messages))] if query else []
    turns: list[tuple[int, str, Asked]] = []
    for number, user in enumerate(users):
        first = 0 if number == 0 else user
        stop = users[number + 1] if number + 1 < len(users) else len(prompt.messages)
        asked, question = _question(sources, user)
        if query is not None and stop == len(prompt.messages):
            question = query
        turns += [(message, question, asked) for message in range(first, stop)]
    return turns


def _question(sources: Sequence[Source], user: int) -> tuple[Asked, str]:
    """Where a user message asks, and its question: the last of its texts that has one."""
    for source in reversed([source for source in sources if source.field.key.message == user]):
        span = question_of(source.text)
        if span.of(source.text).strip():
            return [(source, span)], span.of(source.text)
    return [], ""


def choose_answers(
    prompt: Prompt,
    passages: Sequence[Passage],
    sources: Sequence[Source],
    wanted: Wanted,
    tokenizer: Tokenizer | None,
) -> dict[Passage, tuple[AnswerSpan, ...]]:
    """The answer spans of every passage; without a tokenizer long words count as rare.

    What the question of its turn already says is not the answer: such a span weighs less.

    Raises:
        PassageNotFoundError: when ``answer`` is given and stands in none of the passages.
    """
    texts: Mapping[FieldKey, str] = {source.field.key: source.text for source in sources}
    if wanted.answer is None:
        rare = long_word if tokenizer is None else _rarity(tokenizer)
        asked = {message: question for message, question, _ in _turns(prompt, sources, wanted)}
        return {
            p: tuple(
                _less_if_asked(texts[p.key], answer, asked.get(p.key.message, ""))
                for answer in find_answer_spans(texts[p.key], p.span, is_rare=rare)
            )
            for p in passages
        }
    chosen = {p: _named(texts[p.key], p.span, wanted.answer) for p in passages}
    for answer in wanted.answer:
        if not any(a.span.of(texts[p.key]) == answer for p, spans in chosen.items() for a in spans):
            raise PassageNotFoundError(
                f"answer {shorten(answer)!r} stands in no key passage: give characters of a passage."
            )
    return chosen


def _less_if_asked(text: str, answer: AnswerSpan, question: str) -> AnswerSpan:
    said = answer.span.of(text)
    if not said or said.lower() not in question.lower():
        return answer
    if re.search(rf"(?<!\w){re.escape(said)}(?!\w)", question, re.IGNORECASE):
        return replace(answer, weight=answer.weight * _ASKED)
    return answer


def _named(text: str, passage: Span, answers: Sequence[str]) -> tuple[AnswerSpan, ...]:
    found: list[AnswerSpan] = []
    for answer in answers:
        at = text.find(answer, passage.start, passage.end)
        while at >= 0:
            found.append(AnswerSpan(Span(at, at + len(answer)), "answer", WEIGHTS["answer"]))
            at = text.find(answer, at + len(answer), passage.end)
    return tuple(sorted(found, key=lambda answer: answer.span))


def _rarity(tokenizer: Tokenizer) -> Callable[[str], bool]:
    """A word is rare when the vocabulary spells it in pieces, or learnt it late."""

    @lru_cache(maxsize=4096)
    def is_rare(word: str) -> bool:
        if len(word) > _LONGEST_WORD:
            return True
        ids = tokenizer.encode_ids([" " + word])[0]
        return len(ids) > 1 or int(ids[0]) >= _COMMON_IDS

    return is_rare
