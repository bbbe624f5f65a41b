"""Answer spans: the characters of a passage that an answer depends on, with a kind and a weight.

Numbers, identifiers, hashes and paths weigh most, then quoted names, then names; rare words are taken
only where a passage has nothing better. The pieces of one number or identifier are one span.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from phaseguard.text import Span


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """A run of characters that the answer depends on."""

    span: Span
    kind: str
    weight: float


WEIGHTS = {
    "answer": 1.0,
    "path": 1.0,
    "identifier": 1.0,
    "number": 0.9,
    "quotation": 0.8,
    "quoted": 0.8,
    "name": 0.5,
    "rare-word": 0.3,
    "passage": 0.3,
}

# No \\w on purpose: in Chinese or Japanese text an identifier touches letters on both sides.
# A run of signs is entered at its start alone, or looked at for so many characters: else time is quadratic.
_L = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ԯ"  # Latin, Greek and Cyrillic letters
_A = _L + "0-9_"
_PATTERNS = (
    (
        "quotation",  # several words in quotation marks are one name, whatever numbers are in it
        re.compile(r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»"),
    ),
    (
        "path",  # URLs, e-mail addresses, Unix and Windows paths, file names
        re.compile(
            rf"[A-Za-z][A-Za-z0-9+.-]{{0,15}}+://[^\s<>\"'`)\]]*[^\s<>\"'`)\].,;:!?]"
            rf"|[{_A}.+-]{{1,64}}+@[{_A}-]+(?:\.[{_A}-]+)+"
            rf"|(?<![{_A}/.@+-])(?:~|\.{{1,2}})?/[{_A}.@+-]+(?:/[{_A}.@+-]+)*[{_A}]"
            rf"|(?<![{_A}/.-])[{_A}-]+(?:/[{_A}-]+)*/[{_A}-]+(?:\.[A-Za-z][{_A}]*)+"
            rf"|(?<![{_A}])[A-Za-z]:\\[{_A}.\\-]*[{_A}]"
        ),
    ),
    (
        "identifier",  # an IBAN; letters and digits joined by signs, with a digit, _ or inner capitals
        re.compile(
            rf"(?<![{_A}])[A-Z]{{2}}\d{{2}}(?: ?[A-Z0-9]{{4}}){{3,7}}(?: ?[A-Z0-9]{{1,3}})?(?![{_A}])|"
            rf"(?<![{_A}])(?=[{_L}./:#-]{{0,64}}+[\d_]|(?:[A-Z./:#-]{{0,64}}+[a-z]{{1,64}}+){{1,16}}?[A-Z])"
            rf"[{_L}_#][{_A}]*(?:[-./:#][{_A}]+)*(?:\(\))?"
            rf"|(?<![{_A}])[0-9A-Fa-f]{{2,}}(?:[-:][0-9A-Fa-f]{{2,}}){{3,}}(?![{_A}])"
            rf"|(?<![{_A}])(?=[{_A}./:-]{{0,64}}?[A-Za-z])\d[{_A}]*(?:[-./:][{_A}]+)*(?![{_A}])"
            r"|[（(]\d{4}[）)][\u4e00-\u9fff]{1,4}\d+[\u4e00-\u9fff]{1,4}\d+号"  # a Chinese case number
            rf"|(?<![{_A}.])[A-Za-z_][{_A}]*(?:\.[A-Za-z_][{_A}]*)*\(\)"
        ),
    ),
    (
        "number",  # amounts, dates, versions, percentages: grouped and decimal digits are one number
        re.compile(
            rf"(?<![{_A}])\+\d{{1,3}}(?:[ ()/-]{{0,2}}\d){{6,14}}"  # a telephone number
            rf"|(?:[$€£¥₹]\s?)?(?<![{_A}.])[-+]?(?:\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?!\d)|\d+)"
            rf"(?:[.,:/'-]\d+)*(?:\s?[%‰°])?"
        ),
    ),
    (
        "quoted",
        re.compile(
            r"\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»|「[^」\n]{1,80}」|『[^』\n]{1,80}』"
            r"|《[^》\n]{1,80}》|`[^`\n]{1,80}`|(?<!\w)'[^'\n]{1,80}'(?!\w)"
        ),
    ),
    (
        "name",  # capitalised words that do not start a sentence, and words in capitals
        re.compile(
            r"(?:(?<=[^\W\d_] )|(?<=[,;:] )|(?<=[DM][rs]\. )|(?<=Mrs\. ))"
            r"[A-Z][\w'’-]+(?: (?:of |de |von |van )?[A-Z][\w'’-]+)*"
            rf"|(?<![{_A}])[A-Z]{{2,}}(?![{_A}])"
        ),
    ),
)
_SMALL_NUMBER = 0.4
_LABEL = re.compile(r"\d{1,2}(?:\.\d{1,2}){0,3}")
_SPACE = re.compile(r"\s")
_WORD = re.compile(r"[^\W\d_]{4,}")


def long_word(word: str) -> bool:
    """Whether a word is rare, where only its length is known."""
    return len(word) > 7


def find_answer_spans(
    text: str, passage: Span, *, is_rare: Callable[[str], bool] = long_word
) -> tuple[AnswerSpan, ...]:
    """Find the answer spans of ``text[passage]``, ascending and disjoint, offsets in ``text``.

    Args:
        text: the text in which the passage stands.
        passage: its characters.
        is_rare: whether a word is rare; asked only when the passage has no number, identifier,
            path, quotation or name. Without any rare word the whole passage is one span.

    >>> text = "The access code is PROVOCATIVE-8417."
    >>> [(found.span.of(text), found.kind) for found in find_answer_spans(text, Span(0, len(text)))]
    [('PROVOCATIVE-8417', 'identifier')]
    """
    taken: list[AnswerSpan] = []
    free = bytearray(b"\1") * (passage.end - passage.start)
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text, passage.start, passage.end):
            quotes = 1 if kind in ("quotation", "quoted") else 0  # the marks are not part of the answer
            span = Span(match.start() + quotes, match.end() - quotes)
            if kind == "quotation" and not _SPACE.search(text, span.start, span.end):
                continue  # one word is looked at later; left out here, its closing mark would open another
            start, end = span.start - passage.start, span.end - passage.start
            if start < end and free.find(0, start, end) < 0 and not _abbreviates(kind, text, span, passage):
                free[start:end] = bytes(end - start)
                taken.append(AnswerSpan(span, kind, _weight(kind, span.of(text))))
    if not taken:
        taken = _rare_words(text, passage, is_rare) or [_whole(text, passage)]
    return tuple(sorted(taken, key=lambda found: found.span))


def _abbreviates(kind: str, text: str, span: Span, passage: Span) -> bool:
    """Whether a name is the "Dr" of "Dr. Smith": short, with a dot, inside the passage."""
    return kind == "name" and span.end - span.start < 5 and text.startswith(". ", span.end, passage.end)


def _weight(kind: str, text: str) -> float:
    """A bare number such as 7 or 17.3 mostly counts or labels a clause; GmbH or ValueError is a word."""
    if kind == "identifier" and text.isalpha():
        return WEIGHTS["name"]
    return _SMALL_NUMBER if kind == "number" and _LABEL.fullmatch(text) else WEIGHTS[kind]


def _rare_words(text: str, passage: Span, is_rare: Callable[[str], bool]) -> list[AnswerSpan]:
    return [
        AnswerSpan(Span(*match.span()), "rare-word", WEIGHTS["rare-word"])
        for match in _WORD.finditer(text, passage.start, passage.end)
        if is_rare(match.group())
    ]


def _whole(text: str, passage: Span) -> AnswerSpan:
    piece = passage.of(text)
    start = passage.start + len(piece) - len(piece.lstrip())
    end = passage.start + len(piece.rstrip())
    return AnswerSpan(Span(start, max(start, end)), "passage", WEIGHTS["passage"])
