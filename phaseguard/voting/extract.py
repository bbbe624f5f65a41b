"""The final answer out of a longer text: by a named preset, a pattern, or the caller's own function."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from markdown_it import MarkdownIt

from phaseguard.errors import InputError, did_you_mean

Extractor: TypeAlias = "str | re.Pattern[str] | Callable[[str], str | None]"

_EMPHASIS = r"[*_`]{0,3}"
_ANSWER_IS = re.compile(
    rf"\banswer\b(?:\s+to\s+[^.:\n]{{1,80}}?)?{_EMPHASIS}\s*(?:[:=](?:\*\*(?=\s))?|\bis\b\s*:?)\s*(?=\S)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"\n|(?<!\bSt)(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMt)(?<!\bNo)(?<!\bMrs)[.!?]\s+(?=[A-Z\"'(])"
)
_HASHES = re.compile(r"^[ \t]*####[ \t]*(\S.*)$", re.MULTILINE)  # blanks end with the line: linear in time
_BOX = re.compile(r"\\f?box(?:ed)?\s*\{")
_JSON_START = re.compile(r"[{\[]")
_MOST_STARTS = 1000  # brackets tried as the start of a JSON value
_MARKDOWN = MarkdownIt("zero").enable(["fence", "list"])


def extract(text: str, how: Extractor | Sequence[Extractor]) -> str | None:
    r"""Return the final answer that stands in a text, or None when there is none.

    What a reasoning model wrote up to its last ``</think>`` is never searched by a preset. Where several
    places match, the last one counts.

    Args:
        text: what the model wrote.
        how: one of the following, or several, of which the first that finds an answer counts.

            - ``"answer-is"``: what follows ``The answer is`` or ``Answer:``, up to the end of its sentence;
            - ``"boxed"``: what stands in ``\boxed{...}``;
            - ``"hashes"``: what follows ``####`` at the start of a line;
            - ``"last-line"``: the last line that is not blank;
            - ``"fence"``: what stands in a code fence;
            - ``"json"``: a JSON object or array, in a fence or between other words;
            - ``"whole"``: all of it, without the reasoning;
            - a compiled pattern: its group ``answer``, else its first group, else all that it matches;
            - a function from the text to the answer or None.

    Raises:
        InputError: when a preset is unknown.

    >>> extract("First 6 x 7. So the answer is **42**. Done!", "answer-is")
    '**42**'
    >>> extract(r"Thus \boxed{\frac{1}{2}}.", ["answer-is", "boxed"])
    '\\frac{1}{2}'
    >>> extract("code: A-17, code: B-4", re.compile(r"code: (\S+)"))
    'B-4'
    """
    several = how if isinstance(how, Sequence) and not isinstance(how, str) else [how]
    for one in several:
        answer = _finder(one)(text)
        if answer is not None and answer.strip():
            return answer.strip()
    return None


def _finder(how: Extractor) -> Callable[[str], str | None]:
    if isinstance(how, re.Pattern):
        return lambda text: _by_pattern(text, how)
    if callable(how):
        return how
    if not isinstance(how, str):
        raise InputError(
            f"{how!r} finds no answer: give a preset, a compiled pattern, a function, or a list of these."
        )
    if how not in _PRESETS:
        hint = did_you_mean(how, _PRESETS)
        raise InputError(
            f"There is no preset {how!r} for answers. {hint} For a pattern, pass re.compile(...)."
        )
    preset = _PRESETS[how]
    return lambda text: preset(text.rpartition("</think>")[2])


def _by_pattern(text: str, pattern: re.Pattern[str]) -> str | None:
    match = _last(pattern, text)
    if match is None:
        return None
    if "answer" in pattern.groupindex:
        found: str | None = match["answer"]
        return found
    return match[1] if pattern.groups else match[0]


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return match


def _answer_is(text: str) -> str | None:
    match = _last(_ANSWER_IS, text)
    if match is None:
        return None
    end = _SENTENCE_END.search(text, match.end())
    answer = text[match.end() : end.start() if end else len(text)].strip()
    return answer[:-1] if answer.endswith(".") else answer


def _boxed(text: str) -> str | None:
    start = _last(_BOX, text)
    if start is None:
        return None
    depth = 1
    for at in range(start.end(), len(text)):
        if text[at - 1] != "\\":
            depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start.end() : at]
    return None  # the text was cut off inside the box


def _hashes(text: str) -> str | None:
    return _by_pattern(text, _HASHES)


def _last_line(text: str) -> str | None:
    return text.strip().rpartition("\n")[2]


def _fence(text: str) -> str | None:
    lines = text.replace("\r\n", "\n").split("\n")
    inside = None
    for token in _MARKDOWN.parse(text):
        if token.type == "fence" and token.map:
            start, end = token.map
            last = lines[end - 1].strip()
            if end - start > 1 and last.startswith(token.markup) and not last.strip(token.markup[0]):
                inside = token.content  # a fence that is not closed was cut off, and holds no answer
    return inside


def _json(text: str) -> str | None:
    fenced = _fence(text)
    return (_last_json(fenced) if fenced else None) or _last_json(text)


def _last_json(text: str) -> str | None:
    """The last object or array that is not inside another one."""
    decoder, found, at = json.JSONDecoder(), None, 0
    for _ in range(_MOST_STARTS):
        start = _JSON_START.search(text, at)
        if start is None:
            break
        try:
            _, at = decoder.raw_decode(text, start.start())
            found = text[start.start() : at]
        except (ValueError, RecursionError):
            at = start.end()
    return found


def _whole(text: str) -> str | None:
    return text


_PRESETS: dict[str, Callable[[str], str | None]] = {
    "answer-is": _answer_is,
    "boxed": _boxed,
    "hashes": _hashes,
    "last-line": _last_line,
    "fence": _fence,
    "json": _json,
    "whole": _whole,
}
