"""One scan of a whole text for constructs that reach across blank lines: fences, comments, math, diffs, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phaseguard.normalize import markup, quoting

_PAIRED = "|".join(markup.PAIRED_TAGS)
_OPENER = re.compile(
    rf"""\n(?P<indent>[ \t]*)(?=[`~<$\\/@\[{{di*+-]|INSERT|CREATE|UPDATE)(?:
      (?P<fence>`{{3,}}|~{{3,}})
    | (?P<html><(?:!--|\?|!\[CDATA\[|![A-Za-z]|(?:{_PAIRED})\b))
    | (?P<math>\$\$|\\\[|\\begin\{{)
    | (?P<armour>-----BEGIN[ ])
    | (?P<conflict><<<<<<<(?=[ \n\r]))
    | (?P<diff>diff[ ]--git[ ]|@@[ ]-\d|---[ ]\S)
    | (?P<comment>/\*)
    | (?P<json>[\[{{])
    | (?P<sql>INSERT[ ]INTO[ ]|CREATE[ ](?:TABLE|VIEW|TRIGGER|FUNCTION|OR)[ ]|UPDATE[ ]\S+[ ]SET[ ])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_INLINE = re.compile(r"\"\"\"|'''|<<[-~]?[ ]*(?=['\"]?[A-Za-z_])")


@dataclass(frozen=True, slots=True)
class Zone:
    """A protected range of whole lines; blank lines around a solid one mean nothing."""

    start: int
    end: int
    kind: str
    solid: bool = False


Handler = Callable[[str, int, int], "int | None"]
_ENDS: dict[str, Handler] = {
    "html": markup.end_of_html,
    "math": quoting.end_of_math,
    "armour": quoting.end_of_armour,
    "conflict": quoting.end_of_conflict,
    "diff": quoting.end_of_diff,
    "comment": quoting.end_of_comment,
    "json": quoting.end_of_json,
    "sql": quoting.end_of_sql,
    "triple": quoting.end_of_triple,
    "heredoc": quoting.end_of_heredoc,
}


def find_zones(text: str) -> Iterator[Zone]:
    r"""Yield the constructs of a text in ascending order, none inside another.

    >>> [(z.kind, z.start, z.end, z.solid) for z in find_zones("A\n\n```\nb\n\n\nc\n```\n\nD\n")]
    [('fence', 3, 16, True)]
    """
    front = markup.end_of_front_matter(text)
    at = 0
    if front:
        yield Zone(0, front, "front-matter")
        at = front
    for start, mark, kind in _openers(text):
        if start < at:
            continue
        if kind == "fence":
            end, solid = markup.end_of_fence(text, start, mark, at), True
        else:
            end, solid = _ENDS[kind](text, start, mark), kind == "math"
        if end is not None:
            at = _line_end(text, end)
            yield Zone(start, at, kind, solid)


def _openers(text: str) -> Iterator[tuple[int, int, str]]:
    """Line start, offset of the opening mark, and kind, in ascending order."""
    found = [(m.start(), m.end("indent") - 1, m.lastgroup or "") for m in _OPENER.finditer("\n" + text)]
    if '"""' in text or "'''" in text or "<<" in text:
        for m in _INLINE.finditer(text):
            kind = "heredoc" if m[0].startswith("<<") else "triple"
            found.append((text.rfind("\n", 0, m.start()) + 1, m.start(), kind))
        found.sort()
    yield from found


def _line_end(text: str, offset: int) -> int:
    """Offset of the newline that ends the line an offset lies in, a carriage return left inside."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end
