"""Where fences, HTML elements and front matter end."""

from __future__ import annotations

import re

from phaseguard.normalize import markdown

PAIRED_TAGS = tuple(
    "html head body table thead tbody tr ul ol dl div section article nav header footer main aside form select "
    "svg pre script style textarea details figure blockquote fieldset object template center".split()
)
_RAW = ("pre", "script", "style", "textarea")
_CLOSERS = (("<!--", "-->"), ("<?", "?>"), ("<![cdata[", "]]>"))
_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)")
_FRONT = re.compile(r"\ufeff?(?:[ \t\r]*\n)*(?P<mark>---|\+\+\+)[ \t\r]*\n")
_FRONT_LINE = re.compile(r"(?:[ \t]*(?:#.*|- .*|\[.*|['\"]?[\w.-]+['\"]?[ \t]*[:=].*|[\]}].*)?|[ \t]+.*)\r?")
_TITLE_SLACK = 2


def end_of_front_matter(text: str) -> int | None:
    r"""End of the block of settings that a text starts with, if its lines are settings.

    >>> end_of_front_matter("---\ntitle: A\n---\nBody\n"), end_of_front_matter("---\nProse here.\n---\n")
    (17, None)
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


def end_of_fence(text: str, start: int, mark: int, floor: int) -> int | None:
    r"""End of the fenced block whose opening line starts at ``start``; the text's end when nothing closes it.

    None when the marks underline a title, stand in a line of text, or belong to a list or a quotation,
    which ends with its container and is left to the Markdown parser.

    >>> end_of_fence("```\na\n```\nb", 0, 0, 0)
    9
    >>> end_of_fence("Title\n~~~~~\n\nText\n", 6, 6, 0) is None
    True
    """
    line_end = text.find("\n", mark)
    line = text[mark : len(text) if line_end < 0 else line_end].rstrip()
    char = line[0]
    count = len(line) - len(line.lstrip(char))
    if mark - start > 3 or "\t" in text[start:mark] or (char == "`" and char in line[count:]):
        return None
    if count == len(line) and _underlines(text, start, count):
        return None
    if mark > start and markdown.is_nested(text, start, mark, floor):
        return None
    closed = re.compile(rf"\n {{0,3}}{char}{{{count},}}[ \t\r]*(?=\n|\Z)").search(text, mark)
    return closed.end() if closed else len(text)


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


def end_of_html(text: str, start: int, mark: int) -> int | None:
    r"""End of a comment, a processing instruction, or an element with everything in it.

    >>> end_of_html("<div>\n\n<div>a</div>\n</div>\nb", 0, 0)
    27
    >>> end_of_html("<!-- a\n\nb -->", 0, 0)
    13
    """
    head = text[mark : mark + 9].lower()
    if head.startswith("<?xml") or head.startswith("<!doctype"):
        return _end_of_document(text, mark)
    for opener, closer in _CLOSERS:
        if head.startswith(opener):
            return _end_after(text, closer, mark + len(opener))
    name = _TAG.match(text, mark)
    if name is None:
        return _end_after(text, ">", mark)
    if name[1].lower() in _RAW:
        closed = re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE).search(text, mark)
        return closed.end() if closed else len(text)
    return _end_of_element(text, name[1], mark)


def _end_after(text: str, closer: str, offset: int) -> int:
    found = text.find(closer, offset)
    return len(text) if found < 0 else found + len(closer)


def _end_of_document(text: str, mark: int) -> int | None:
    """End of the root element behind an XML declaration or a document type."""
    root = _TAG.search(text, mark)
    if root is None:
        return _end_after(text, ">", mark)
    return _end_of_element(text, root[1], root.start()) or len(text)


def _end_of_element(text: str, name: str, mark: int) -> int | None:
    depth = 0
    for tag in re.compile(rf"<(/?){re.escape(name)}\b[^<>]*?(/?)>", re.IGNORECASE).finditer(text, mark):
        if tag[2]:
            continue
        depth += -1 if tag[1] else 1
        if depth <= 0:
            return tag.end()
    return None
