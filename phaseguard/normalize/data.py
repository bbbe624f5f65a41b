"""Blocks of data without a fence: columns, CSV, YAML, headers. Each test is one pure function on lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_KEY = re.compile(r"[ \t]*(?:- )*['\"]?(?P<key>[A-Za-z_][\w./-]*)['\"]?:(?:[ \t]+(?P<value>\S.*)|$)")
_MAIL = re.compile(
    r"(?:From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Message-ID|Received|Return-Path|Delivered-To|In-Reply-To"
    r"|References|Sender|(?:[A-Z][A-Za-z]*-)+[A-Za-z]+): "
)
ODD_RUN = re.compile(r"""  (?:(?<![.:?!)"'”’]  )| )""")
"""A run of blanks that is more than the gap behind a sentence."""

TIGHT_MARK = re.compile(r"[,;](?![ \n])(?!(?<=\d,)\d{3}(?!\d))")
"""A comma or semicolon without a blank behind it, but not the comma of thousands."""

_ANY_KEY = re.compile(r"\n[ \t]*(?:- )*['\"]?[A-Za-z_][\w./-]*['\"]?:(?!\S)")
_RUN = re.compile(r"(?<=\S) {2,}(?=\S)")
_SENTENCE_GAP = re.compile(r"(?<=[.!?:;\"')\]]) {2}(?=\S)")
_QUOTED = re.compile(r'"[^"]*"')
_RULED = re.compile(r" *[-=]{2,}(?: +[-=]{2,})+ *")
_NO_LETTERS = bytes(c for c in range(128) if not chr(c).isalpha())
_SYMBOLS = b"{}[]<>=|\\^~$@+&;"
_WORDY = re.compile(r"[^\W\d_]{2,}[.!?:…。！？]?[\"')”]?$")


def is_data(lines: Sequence[str], padded: str) -> bool:
    r"""Whether the lines are a table, key-value or header block rather than prose.

    Args:
        lines: the lines, without trailing blanks.
        padded: the same lines, a newline in front of each: looked at first, for speed.

    >>> is_data(["name      qty", "bolt       12"], "\nname      qty\nbolt       12")
    True
    >>> is_data(["Question: who wrote it?", "Answer:"], "\nQuestion: who wrote it?\nAnswer:")
    False
    """
    return (
        ("  " in padded and ODD_RUN.search(padded) is not None and is_columns(lines))
        or (("," in padded or ";" in padded) and is_separated(lines))
        or (_ANY_KEY.search(padded) is not None and (is_yaml(lines) or is_headers(lines)))
    )


def is_columns(lines: Sequence[str]) -> bool:
    """Whether runs of blanks stand at like columns in two lines, or make cells of the only line."""
    edges: list[set[int]] = []
    for line in lines:
        if _RULED.fullmatch(line):
            return True
        runs = [m.span() for m in _RUN.finditer(line) if not _SENTENCE_GAP.match(line, m.start())]
        runs = [run for run in runs if not _after_marker(line, run[0])]
        if runs:
            edges.append({edge for run in runs for edge in run})
    if len(edges) == 1:
        return len(lines) == 1 and not _WORDY.search(lines[0])
    return any(one & two for one, two in pairwise(edges))


def _after_marker(line: str, column: int) -> bool:
    """Whether the run at a column is the gap behind a list marker."""
    return re.fullmatch(r"[ \t]*(?:[-*+]|\d{1,9}[.)])", line[:column]) is not None


def is_separated(lines: Sequence[str]) -> bool:
    """Whether every line has the same number of commas or semicolons, as CSV has, mostly without blanks."""
    for mark in (",", ";"):
        count = _common_count(lines, mark)
        if not count:
            continue
        tight = sum(line.count(mark) - line.count(mark + " ") for line in lines)
        if count >= (1 if len(lines) > 2 else 2) and 2 * tight > count * len(lines):
            return True
        if len(lines) > 2 and not any(map(_WORDY.search, lines)):
            return True
    first = lines[0]
    return 2 <= len(TIGHT_MARK.findall(first)) > first.count(", ") and " " not in first.split(",")[0]


def _common_count(lines: Sequence[str], mark: str) -> int:
    """How often a mark stands outside quotes in every line; 0 when lines differ."""
    common = -1
    for line in lines:
        count = (_QUOTED.sub("", line) if '"' in line else line).count(mark)
        if common not in (-1, count):
            return 0
        common = count
    return common


def is_yaml(lines: Sequence[str]) -> bool:
    """Whether lines of lower-case keys, or nested keys, make a YAML mapping."""
    keys = [match for line in lines if (match := _KEY.match(line))]
    if not keys:
        return False
    nested = sum(1 for match in keys if match.start("key") > 0)
    if nested and any(not (match["value"] or "").count(" ") >= 2 for match in keys if match.start("key") > 0):
        return True
    values = [match["value"] or "" for match in keys]
    if len(keys) == len(lines) >= 2 and all(value and " " not in value for value in values):
        return True
    low = [match for match in keys if match["key"][0].islower() or "_" in match["key"]]
    return len(low) == len(keys) and 2 * len(keys) > len(lines)


def is_headers(lines: Sequence[str]) -> bool:
    """Whether two lines or more are headers of a mail or of an HTTP message."""
    return sum(1 for line in lines if _MAIL.match(line)) >= 2


def is_numeric(padded: str) -> bool:
    """Whether digits and signs outweigh the letters; in bytes, for speed: above ASCII all are letters."""
    dense = padded.encode("utf-8", "surrogatepass").translate(None, b" \n")
    return 3 * len(dense.translate(None, _NO_LETTERS)) < len(dense)


def is_symbolic(padded: str) -> bool:
    """Whether more than one character in eight is of the kind that code and pictures are made of."""
    raw = padded.encode("utf-8", "surrogatepass")
    return len(raw) - len(raw.translate(None, _SYMBOLS)) > max(6, len(padded) // 8)
