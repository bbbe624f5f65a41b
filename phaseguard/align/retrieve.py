"""Finding key passages from a question: the sentences that share its rare words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phaseguard.align.passages import Passage, Source, shorten
from phaseguard.text import Span

MOST_PASSAGES = 3  # a question has few answers; more passages only compete for the same phases
_LONG_QUESTION = 800  # characters: what is longer is material, not a question
_TAIL = 6 * _LONG_QUESTION
_PARAGRAPH = re.compile(r"\S(?:.|\n(?![ \t]*\n))*")
_ASKS = re.compile(r"[?？]|(?:question|query|task|问题|质问)[ \t]*[:：]", re.IGNORECASE)
_COMMON = """
a about all an and any are as at be been but by can could did do does for from had has have how i if in
into is it its me my no not of on only or our out please should so tell than that the their them then
there these they this to was we were what when where which who whom whose why will with would you your
answer context document question text use using give find
"""
_STOP = frozenset(_COMMON.split())
# CJK text has no blanks between words: pairs of characters stand for words
_TERM = re.compile(
    r"[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:[-_.'’][^\W_\u3040-\u30ff\u3400-\u9fff]+)*|[\u3040-\u30ff\u3400-\u9fff]+"
)
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])|\n")
_ABBREVIATION = re.compile(
    r"(?:(?<!\w)(?:No|Nos|Nr|Dr|Mr|Mrs|Ms|Prof|St|Art|Sec|Sect|Fig|Eq|Ref|Abs|Abt|Az|Vol|Ch|pp?|vs|etc|cf|ca|approx"
    r"|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|z\.B|d\.h|e\.g|i\.e|u\.a|bzw|vgl|[A-Z])\.)\Z",
    re.IGNORECASE,
)
_ASKING = re.compile(r"[?？][\"'”’)]*\Z")
_TELLING = re.compile(r"\d|[A-Z]{2}|[a-z][A-Z]|_")


@dataclass(frozen=True, slots=True)
class _Hit:
    source: Source
    sentence: Span
    words: frozenset[str]


def question_of(text: str) -> Span:
    r"""The part of a user message that asks: the last paragraph that does, else all of a short one.

    >>> text = "Context:\n" + "Some text. " * 50 + "\n\nQuestion: What is the code?"
    >>> question_of(text).of(text)
    'Question: What is the code?'
    """
    end = len(text.rstrip())
    edges = _edge_paragraphs(text, end)
    if len(edges) == 1 and (asked := _last_sentence(text, edges[0])) != edges[0]:
        return asked
    if len(edges) > 1:
        for span in edges:
            if span.end - span.start <= _LONG_QUESTION and _ASKS.search(text, span.start, span.end):
                return span
        if end > _LONG_QUESTION:
            last = edges[0]
            return last if last.end - last.start <= _LONG_QUESTION else Span(end, end)
    return Span(0, end) if end <= _LONG_QUESTION else Span(end, end)


def _edge_paragraphs(text: str, end: int) -> list[Span]:
    """The last paragraph, the first, then the three before the last, without looking at the rest."""
    start = max(0, end - _TAIL)
    back = [Span(*match.span()) for match in _PARAGRAPH.finditer(text, start, end)][::-1]
    if start and len(back) > 1:
        back.pop()  # its beginning lies further in front
    first = next(_PARAGRAPH.finditer(text, 0, end), None)
    edges = [*back[:1], *([Span(*first.span())] if first else []), *back[1:4]]
    return list(dict.fromkeys(edges))


def _last_sentence(text: str, paragraph: Span) -> Span:
    """The last sentence of a paragraph if it asks, else the paragraph."""
    found = next(sentences_at(text, [paragraph.end - 1]))
    return found if _ASKING.search(found.of(text)) else paragraph


def find_by_query(
    query: str, sources: Sequence[Source], *, skip: Sequence[tuple[Source, Span]] = ()
) -> tuple[Passage, ...]:
    """Choose up to three sentences that share rare words with the query.

    A word counts by its rarity, log(1 + sentences with any shared word / sentences with this word). A
    sentence must reach half of the best score. Of a query with more than two words it must share two;
    where none does, one shared word is enough for a sentence with a number or an identifier. Sentences
    that ask are no answers.

    Args:
        query: the question.
        sources: the texts to search.
        skip: runs that are not searched: the question itself, where it stands in the prompt.
    """
    terms = _terms(query) - _STOP
    if not terms:
        return ()
    hits = [hit for source in sources for hit in _hits(source, terms, skip)]
    frequency = Counter(word for hit in hits for word in hit.words)
    scored = sorted(
        (
            (sum(math.log(1 + len(hits) / frequency[word]) for word in hit.words), -place, hit)
            for place, hit in enumerate(_near_enough(hits, terms))
        ),
        key=lambda item: (item[0], item[1]),
        reverse=True,
    )
    chosen = [(score, hit) for score, _, hit in scored[:MOST_PASSAGES] if score >= scored[0][0] / 2]
    return tuple(
        sorted(
            Passage(hit.source.field.key, hit.sentence, _why(query, score, hit.words))
            for score, hit in chosen
        )
    )


def _near_enough(hits: Sequence[_Hit], terms: set[str]) -> list[_Hit]:
    near = [hit for hit in hits if len(hit.words) >= min(2, len(terms) - 1 or 1)]
    return near or [hit for hit in hits if _TELLING.search(hit.sentence.of(hit.source.text))]


def _why(query: str, score: float, words: frozenset[str]) -> str:
    shared = ", ".join(repr(word) for word in sorted(words))
    return f"shares {shared} with the question {shorten(query)!r} (score {score:.2f})"


def _terms(text: str) -> set[str]:
    terms: set[str] = set()
    for match in _TERM.finditer(text.lower()):
        word = match.group().removesuffix("'s").removesuffix("’s")
        if "\u3040" <= word[0] <= "\u9fff":
            terms.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            terms.add(word)
    return terms


def _hits(source: Source, terms: set[str], skip: Sequence[tuple[Source, Span]]) -> list[_Hit]:
    """Sentences of one text with the words they share; only sentences around a shared word are cut out."""
    text = source.text
    lowered = text.lower()
    if len(lowered) != len(text):  # a few characters change length in lower case
        lowered = text
    skipped = [span for other, span in skip if other is source]
    found = [
        match
        for match in _any_of(terms).finditer(lowered)
        if not any(span.start <= match.start() < span.end for span in skipped)
    ]
    by_sentence: dict[Span, set[str]] = {}
    for match, sentence in zip(found, sentences_at(text, [match.start() for match in found]), strict=True):
        by_sentence.setdefault(sentence, set()).add(match.group())
    return [
        _Hit(source, sentence, frozenset(words))
        for sentence, words in sorted(by_sentence.items())
        if not _ASKING.search(sentence.of(text))
    ]


def _any_of(terms: set[str]) -> re.Pattern[str]:
    cjk = sorted(term for term in terms if "\u3040" <= term[0] <= "\u9fff")
    other = sorted((term for term in terms if term not in cjk), key=len, reverse=True)
    parts = [re.escape(term) for term in cjk]
    if other:
        parts.append(r"(?<![^\W_])(?:" + "|".join(map(re.escape, other)) + r")(?![^\W_])")
    return re.compile("|".join(parts))


def sentences_at(text: str, places: Sequence[int]) -> Iterator[Span]:
    """The sentence at each of ascending places; a line is read once, however many places are in it."""
    sentence, line_end = Span(0, 0), -1
    for at in places:
        if at >= sentence.end:
            since = sentence.end
            if at > line_end:
                since = text.rfind("\n", max(line_end, 0), at) + 1
                line_end = text.find("\n", at)
                line_end = len(text) if line_end < 0 else line_end
            sentence = _sentence_at(text, at, since, line_end)
        yield sentence


def _sentence_at(text: str, at: int, start: int, end: int) -> Span:
    """The sentence at a place of ``text[start:end]``, which starts with a sentence and ends with its line."""
    for match in _SENTENCE_END.finditer(text, start, end):
        if _ABBREVIATION.search(text, max(start, match.start() - 12), match.start()):
            continue
        if match.end() <= at:
            start = match.end()
        else:
            end = match.start()
            break
    sentence = text[start:end]
    start += len(sentence) - len(sentence.lstrip())
    return Span(start, start + len(sentence.strip()))
