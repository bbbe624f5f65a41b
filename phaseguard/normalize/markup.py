"""Where fences, HTML elements and front matter end."""

from __future__ import annotations

import re

from phaseguard.normalize import markdown
from phaseguard.normalize.source import Opening

_RAW = ("pre", "script", "style", "textarea")
_CLOSERS = (("<!--", "-->"), ("<?", "?>"), ("<![cdata[", "]]>"))
_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)")
_FRONT = re.compile(r"\ufeff?(?:[ \t\r]*\n)*(?P<mark>---|\+\+\+)[ \t\r]*\n")
_FRONT_LINE = re.compile(r"(?:[ \t]*(?:#.*|- .*|\[.*|['\"]?[\w.-]+['\"]?[ \t]*[:=].*|[\]}].*)?|[ \t]+.*)\r?")
_TITLE_SLACK = 2
_PROLOG = 4000


def end_of_front_matter(text: str) -> int | None:
    r"""End of the block of settings that a text starts with, if its lines are settings.

    >>> end_of_front_matter("---\ntitle: A\n---\nBody\n"), end_of_front_matter("---\nProse here.\n---\n")
    (16, None)
    """
    opened = _FRONT.match(text)
    if not opened:
        return None
    closed = re.compile(r"\n(?:" + re.escape(opened["mark"]) + r"|\.\.\.)[ \t\r]*(?=\n|\Z)").search(
        text, opened.end() - 1
    )
    if not closed:
        return None
    lines = text[opened.end() : closed.start() + 1].split("\n")
    return closed.end() if all(map(_FRONT_LINE.fullmatch, lines)) else None


def end_of_fence(at: Opening, floor: int) -> int | None:
    r"""End of the fenced block whose opening line starts at ``start``; the text's end when nothing closes it.

    None when the marks underline a title, stand in a line of text, or belong to a list or a quotation,
    which ends with its container and is left to the Markdown parser.

    >>> end_of_fence(Opening.of("```\na\n```\nb"), 0)
    9
    >>> end_of_fence(Opening.of("Title\n~~~~~\n\nText\n", 6), 0) is None
    True
    """
    source, text, start, mark = at.source, at.text, at.start, at.mark
    line = text[mark : source.line_end(mark)].rstrip()
    char = line[0]
    count = len(line) - len(line.lstrip(char))
    if mark - start > 3 or "\t" in text[start:mark] or (char == "`" and char in line[count:]):
        return None
    if count == len(line) and _underlines(text, start, count):
        return None
    if mark > start and markdown.is_nested(text, start, mark, floor):
        return None
    return source.search(rf"\n {{0,3}}{char}{{{count},}}[ \t\r]*(?=\n|\Z)", mark) or len(text)


def _underlines(text: str, start: int, count: int) -> bool:
    """Whether the line above is a title of like length: one line, a blank one or an overline before it."""
    if count < 4 or start < 2:
        return False
    above = text.rfind("\n", 0, start - 1) + 1
    title = text[above : start - 1].strip()
    if not title or abs(len(title) - count) > max(_TITLE_SLACK, len(title) // 5):
        return False
    before = text[text.rfind("\n", 0, max(0, above - 1)) + 1 : max(0, above - 1)].strip()
    return not before or set(before) == set(text[start : start + 1])


def end_of_html(at: Opening) -> int | None:
    r"""End of a comment, a processing instruction, or an element with everything in it.

    >>> end_of_html(Opening.of("<div>\n\n<div>a</div>\n</div>\nb"))
    26
    >>> end_of_html(Opening.of("<!-- a\n\nb -->"))
    13
    """
    source, text, mark = at.source, at.text, at.mark
    head = text[mark : mark + 9].lower()
    if head.startswith(("<?xml", "<!doctype")):
        root = _TAG.search(text, mark, mark + _PROLOG)
        element = source.pair(_element(root[1]), root.start()) if root else None
        return element or (source.find(">", mark) if head.startswith("<!") else len(text))
    for opener, closer in _CLOSERS:
        if head.startswith(opener):
            return source.find(closer, mark + len(opener)) or len(text)
    name = _TAG.match(text, mark)
    if name is None:
        return source.find(">", mark) or len(text)
    if name[1].lower() in _RAW:
        return source.search(r"</(?:pre|script|style|textarea)>", mark) or len(text)
    return source.pair(_element(name[1]), mark)


def _element(name: str) -> str:
    """Pattern for the opening and closing tags of an element; a tag that closes itself is neither."""
    return rf"<(?P<close>/?){re.escape(name.lower())}\b[^<>]*(?<!/)>"
