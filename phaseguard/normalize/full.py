"""The rules that only the full level has: blanks inside sentences, a common indent, rules in comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phaseguard.normalize import words
from phaseguard.normalize.lines import CODE_LINE, LIST_LINE, RULE_LINE
from phaseguard.normalize.prose import Kind
from phaseguard.normalize.rules import Rule, canonical_rule
from phaseguard.normalize.zones import BlockMap
from phaseguard.text import Edit, make_edit

_INNER_RUN = re.compile(r"(?<=\S)  +(?=[^\s])")
_TITLE_SLACK = 3
_MARKS = "#/;-*=~ "
_BANNER = re.compile(
    r"\n[ \t]*(?P<mark>#|//|--|;|/?\*|\"\"\"|''')?[ ]?(?P<rule>([=\-*_~#+─━═])(?:\3{2,}|(?: \3){2,}))"
    r"(?P<close>[ ]?(?:\*/|\"\"\"|'''))?[ \t]*(?=\n|\Z)"
)


def collapse_inner_blanks(blocks: BlockMap) -> Iterator[Edit]:
    r"""Bring a run of spaces inside a sentence to one.

    >>> [e.replacement for e in collapse_inner_blanks(BlockMap("They  must pay.\n"))]
    [' ']
    """
    text = blocks.text
    if "  " not in text:
        return
    for match in _INNER_RUN.finditer(text):
        start, end = match.span()
        if not blocks.is_editable(start) or blocks.in_code_span(start, end):
            continue
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if not LIST_LINE.fullmatch(line + " ") and not RULE_LINE.match(line):
            yield make_edit(text, start, end, " ", "inner-blanks")


def drop_common_indent(blocks: BlockMap) -> Iterator[Edit]:
    r"""Drop the indent that every line of a text has, when prose is what it indents.

    >>> [e.original for e in drop_common_indent(BlockMap("    You are an expert.\n    Write.\n"))]
    ['    ', '    ']
    """
    text = blocks.text
    lines = list(re.finditer(r"^([ \t]*)\S.*$", text, re.MULTILINE))
    if not lines or text[blocks.lead : blocks.lead + 1] not in (" ", "\t"):
        return
    indent = min((m[1] for m in lines), key=len)
    if not indent or not all(m[1].startswith(indent) for m in lines):
        return
    inner = BlockMap("\n".join(line.removeprefix(indent) for line in text.split("\n")))
    if any(inner.segments(n)[0].kind is Kind.ZONE for n in range(inner.count)) or not inner.opening:
        return
    for m in lines:
        yield make_edit(text, m.start(), m.start() + len(indent), "", "common-indent")


def shorten_banners(blocks: BlockMap) -> Iterator[Edit]:
    r"""Bring comment and docstring lines that are one long rule to one length.

    >>> [e.replacement for e in shorten_banners(BlockMap("```python\n# =======\nx = 8\n```\n"))]
    ['===']
    """
    text = blocks.text
    for match in _BANNER.finditer("\n" + text):
        start, rule = match.start("rule") - 1, match["rule"]
        short = canonical_rule(rule)
        if rule != short and _is_banner(blocks, match, start) and not _underlines(text, match):
            yield make_edit(text, start, start + len(rule), short, "code-banner")


def _is_banner(blocks: BlockMap, match: re.Match[str], start: int) -> bool:
    """Whether a rule is a comment or a line of a docstring in code, fenced or not."""
    zone = blocks.zone_at(start)
    if zone is not None and zone.kind == "triple":
        return True
    if not match["mark"]:
        return False
    if zone is not None:
        info = blocks.text[zone.start : zone.end].split("\n", 1)[0].lstrip(" `~").split()
        return zone.kind == "comment" or (zone.kind == "fence" and not set(info[:1]) & words.TEXT_FENCES)
    segment = blocks.segment_at(start)
    if segment.kind is not Kind.ZONE:
        return False
    mark, lines = match["mark"], blocks.text[segment.start : segment.end].split("\n")
    return all(line.lstrip().startswith(mark) or CODE_LINE.match("\n" + line) for line in lines)


def _underlines(text: str, match: re.Match[str]) -> bool:
    """Whether a tight rule has about the length of a title beside it, in the same comment or string."""
    rule, mark = match["rule"], match["mark"] or ""
    if rule[1] == " ":
        return False
    start, end = match.start(), match.end()
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)].strip()
    below = text[end : text.find("\n", end) if text.find("\n", end) >= 0 else len(text)].strip()
    return any(
        line.startswith(mark) and 0 <= abs(len(line.lstrip(_MARKS)) - len(rule)) <= _TITLE_SLACK
        for line in (above, below)
        if line.strip(_MARKS)
    )


FULL_RULES: tuple[Rule, ...] = (collapse_inner_blanks, drop_common_indent, shorten_banners)


def may_apply(text: str) -> bool:
    """Whether any rule of the full level can have a candidate."""
    return "  " in text or "\t" in text or _BANNER.search("\n" + text) is not None
