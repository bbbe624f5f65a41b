"""What a block of lines is: prose that may be edited, or something to be left alone."""

from __future__ import annotations

import re
from enum import Enum
from itertools import pairwise

from phaseguard.normalize import data, words
from phaseguard.normalize.lines import LIST_LINE, RULE_LINE, has_picture, has_zone_line


class Kind(Enum):
    """What may be done to a block of lines that no blank line divides."""

    PROSE = "prose"
    """Decoration in it and around it may be edited."""
    RULE = "rule"
    """One line of a repeated rule character."""
    SOLID = "solid"
    """Untouched inside; blank lines around it mean nothing."""
    ZONE = "zone"
    """Untouched inside and around it."""


_BENIGN = r"[^\n{}\[\]|\\<>=@$^~\#\t\r─-▟←-⇿]*"
_PLAIN = re.compile(
    rf"""\n(?:\#{{1,6}}[ ][^\W\d_]{_BENIGN}
    |(?:(?:[-*][ ]|\d{{1,3}}[.)][ ])?\*{{0,2}}["'(“‘„«¿¡]?[^\W\d_]{_BENIGN}(?:\n|\Z))+)""",
    re.VERBOSE,
)
_SHAPE = re.compile(
    r"""\n(?:[-*\d][ .)][ ]?)?\*{0,2}
    (?:[\w./$-]+(?:\(|:(?!\S)|:\d|[ ][-+*/%][ ]|[^\s]?(?<![.,!?)])(?=\n|\Z))
    |["'][\w.-]+["'][ ]?:
    |(?=[a-f]*\d)[0-9a-f]{6,}[ ])""",
    re.VERBOSE,
)
_FIRST_WORD = re.compile(r"\n\W*(\w+)")
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+(?<!`)\1(?!`)")
_TAG_LINE = re.compile(r"<(/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:\"[^\"\n]*\"|'[^'\n]*'))*)\s*(/?)>")
_DELIMITER_ROW = re.compile(r"[ ]{0,3}\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*")


def classify(block: str) -> Kind:
    r"""Judge a block: lines without a blank one among them, its first line not indented.

    Args:
        block: the lines, without the newline behind the last one.

    >>> classify("The supplier must pay.\nWithin 30 days.").value
    'prose'
    >>> classify("for x in y:\n    print(x)").value
    'zone'
    """
    if "\r" in block:
        block = block.replace("\r\n", "\n").removesuffix("\r")
        if "\r" in block:
            return Kind.ZONE
    padded = "\n" + block.lstrip("\ufeff")
    if _is_plain(padded):
        return Kind.PROSE
    return _judge(_SPAN.sub("`code`", padded) if "`" in padded else padded)


def _is_plain(padded: str) -> bool:
    """A cheap test that only unmistakable prose passes: benign characters, no line with a code-like start."""
    return (
        _PLAIN.fullmatch(padded) is not None
        and _SHAPE.search(padded) is None
        and ("  " not in padded or data.ODD_RUN.search(padded) is None)
        and len(data.TIGHT_MARK.findall(padded)) <= 1
        and " ...\n" not in padded
        and (_starts_like_text(padded) or not has_zone_line(padded + "\n"))
        and not data.is_numeric(padded)
    )


def _starts_like_text(padded: str) -> bool:
    """Whether no line begins with the word of a statement; some of these ask for a colon at a line's end."""
    found = words.STATEMENT_STARTS.intersection(_FIRST_WORD.findall(padded))
    return not found or (found <= words.COLON_STARTS and ":\n" not in padded and padded[-1] != ":")


def _judge(padded: str) -> Kind:
    lines = [line.rstrip(" \t") for line in padded[1:].split("\n")]
    if len(lines) == 1 and RULE_LINE.fullmatch(lines[0]):
        return Kind.ZONE if lines[0].lstrip().startswith("~~~") else Kind.RULE
    if lines[0].startswith("<"):
        return _judge_tagged(lines)
    if all(line.startswith(">") for line in lines):
        return Kind.ZONE if lines[0].startswith(">>> ") else Kind.SOLID
    if "|" in padded:
        return Kind.SOLID if _is_table(lines) else _judge_pipes(lines)
    return _judge_lines(lines)


def _judge_tagged(lines: list[str]) -> Kind:
    """Tags that a prompt's author made up, around nothing or prose, bound prose; other markup is a zone."""
    inner = lines
    first, last = _TAG_LINE.fullmatch(lines[0]), _TAG_LINE.fullmatch(lines[-1])
    if first and not _is_html(first[2]):
        inner = inner[1:]
        if last and inner and not _is_html(last[2]):
            inner = inner[:-1]
        if not inner or (not inner[0][:1].isspace() and _judge("\n" + "\n".join(inner)) is Kind.PROSE):
            return Kind.SOLID
    return Kind.ZONE


def _is_html(name: str) -> bool:
    return name.lower() in words.HTML_NAMES


def _is_table(lines: list[str]) -> bool:
    return len(lines) > 1 and "|" in lines[0] and _DELIMITER_ROW.fullmatch(lines[1]) is not None


def _judge_pipes(lines: list[str]) -> Kind:
    """One line such as "Source: guide.pdf | Page 3" is prose, anything else with pipes may be a table."""
    line = lines[0]
    if len(lines) == 1 and " | " in line and not line.startswith("|") and not line.endswith("|"):
        return _judge_lines([line.replace(" | ", " ")])
    return Kind.ZONE


def _judge_lines(lines: list[str]) -> Kind:
    listed = LIST_LINE.match(lines[0]) is not None
    for before, line in pairwise(lines):
        if line[:1].isalpha():
            continue
        listed = listed or LIST_LINE.match(line) is not None
        if line[:1].isspace() and not listed:
            return Kind.ZONE
        if line.startswith("#") and before.startswith("#") and _level(line) == _level(before):
            return Kind.ZONE
    kept = [line for line in lines if line[:1].isalpha() or not RULE_LINE.fullmatch(line)]
    padded = "\n" + "\n".join(kept)
    if "\t" in padded or has_picture(padded) or has_zone_line(padded + "\n"):
        return Kind.ZONE
    if not any(map(str.isalpha, padded)) or data.is_numeric(padded) or data.is_symbolic(padded):
        return Kind.ZONE
    if data.is_data(kept, padded):
        return Kind.ZONE
    return Kind.PROSE


def _level(line: str) -> int:
    return len(line) - len(line.lstrip("#"))
