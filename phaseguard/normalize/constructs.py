"""One scan of a whole text for constructs that reach across blank lines: fences, comments, diffs, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phaseguard.normalize import markup, quoting, words
from phaseguard.normalize.source import Opening, Source

_PAIRED = "|".join(sorted(words.PAIRED_TAGS))
_OPENER = re.compile(
    rf"""\n(?P<indent>[ \t]*)(?=[`~<$\\/@\[{{di*+=\#-]|INSERT|CREATE|UPDATE)(?:
      (?P<fence>`{{3,}}|~{{3,}})
    | (?P<html><(?:!--|\?|!\[CDATA\[|![A-Za-z]|(?i:{_PAIRED})\b))
    | (?P<math>\$\$|\\\[)
    | (?P<environment>\\begin\{{)
    | (?P<armour>-----BEGIN[ ])
    | (?P<conflict><<<<<<<(?=[ \n\r]))
    | (?P<diff>diff[ ]--git[ ]|@@[ ]-\d|---[ ]\S)
    | (?P<comment>/\*|<\#|\#\[=*\[|--\[=*\[|=(?:pod|head\d|over|item|encoding|begin|for)\b)
    | (?P<json>[\[{{])
    | (?P<sql>INSERT[ ]INTO[ ]|CREATE[ ](?:TABLE|VIEW|TRIGGER|FUNCTION|OR)[ ]|UPDATE[ ]\S+[ ]SET[ ])
    )""",
    re.VERBOSE,
)
_INLINE = {
    '"""': "triple",
    "'''": "triple",
    "<<": "heredoc",
    ',"': "cell",
    ';"': "cell",
    '\t"': "cell",
}
_HEREDOC_MARK = re.compile(r"<<[-~]?[ ]*['\"]?[A-Za-z_]")


@dataclass(frozen=True, slots=True)
class Zone:
    """A protected range of whole lines; blank lines around a solid one mean nothing."""

    start: int
    end: int
    kind: str
    solid: bool = False


Handler = Callable[[Opening], "int | None"]
_ENDS: dict[str, Handler] = {
    "html": markup.end_of_html,
    "math": quoting.end_of_math,
    "environment": quoting.end_of_environment,
    "armour": quoting.end_of_armour,
    "conflict": quoting.end_of_conflict,
    "diff": quoting.end_of_diff,
    "comment": quoting.end_of_comment,
    "json": quoting.end_of_json,
    "sql": quoting.end_of_sql,
    "triple": quoting.end_of_triple,
    "heredoc": quoting.end_of_heredoc,
    "cell": quoting.end_of_quoted_cell,
}
_SOLID = frozenset({"fence", "math"})


def find_zones(text: str) -> Iterator[Zone]:
    r"""Yield the constructs of a text in ascending order, none inside another.

    >>> [(z.kind, z.start, z.end, z.solid) for z in find_zones("A\n\n```\nb\n\n\nc\n```\n\nD\n")]
    [('fence', 3, 16, True)]
    """
    source = Source(text)
    at = 0
    front = markup.end_of_front_matter(text)
    if front:
        yield Zone(0, front, "front-matter")
        at = front
    for start, mark, kind in _openers(text):
        if start < at:
            continue
        if kind == "fence":
            end = markup.end_of_fence(Opening(source, start, mark), at)
        else:
            end = _ENDS[kind](Opening(source, start, mark))
        if end is not None:
            at = source.line_end(end)
            yield Zone(start, at, kind, kind in _SOLID)


def _openers(text: str) -> list[tuple[int, int, str]]:
    """Line start, offset of the opening mark, and kind, in ascending order."""
    found = [(m.start(), m.end("indent") - 1, m.lastgroup or "") for m in _OPENER.finditer("\n" + text)]
    before = len(found)
    for mark, kind in _INLINE.items():
        at = text.find(mark) if mark[0] in text else -1
        while at >= 0:
            if kind != "heredoc" or _HEREDOC_MARK.match(text, at):
                found.append((text.rfind("\n", 0, at) + 1, at, kind))
            at = text.find(mark, at + len(mark))
    if len(found) > before:
        found.sort()
    return found
