"""The questions about blocks that only a Markdown parser can answer; it is imported on the first one."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MARKER = re.compile(r"\n {0,3}(?:[-*+]|\d{1,9}[.)]|>)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)]) {1,4}(?=\S)")
_TOP = re.compile(r"\n[ \t\r]*\n(?=\S)")
_REACH = 4_000


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - costs 60 ms, and most texts never need it

    return MarkdownIt("commonmark").enable("table")


def _blocks(piece: str) -> list[Token]:
    """Parse blocks alone: what stands inside a line is never asked for."""
    parser = _parser()
    tokens: list[Token] = []
    parser.block.parse(piece.replace("\r\n", "\n"), parser, {}, tokens)
    return tokens


def list_lines(piece: str) -> frozenset[int]:
    r"""Numbers of the lines of a piece that lie in paragraphs of list items.

    Args:
        piece: text from a line that no construct reaches into.

    >>> sorted(list_lines("- a\n\n  b\n\n      code\n"))
    [0, 2]
    """
    found: set[int] = set()
    depth = 0
    for token in _blocks(piece):
        if token.type in ("list_item_open", "list_item_close"):
            depth += token.nesting
        elif depth and token.type == "paragraph_open" and token.map:
            found.update(range(*token.map))
    return frozenset(found)


def _fits_item(piece: str) -> bool:
    """Whether a piece is one list item without any doubt: all its lines are indented as its first text is."""
    item = _ITEM.match(piece)
    if item is None:
        return False
    indent = " " * item.end()
    return all(line.startswith(indent) or not line.strip() for line in piece.split("\n")[1:])


def is_nested(text: str, start: int, mark: int, floor: int) -> bool:
    r"""Whether the fence whose line starts at ``start`` stands inside a list item.

    Args:
        text: the whole text.
        start: start of the fence's line.
        mark: offset of the fence itself.
        floor: nothing in front of this offset is open any more.

    >>> is_nested("- a\n\n  ```\n", 5, 7, 0), is_nested("a\n\n  ```\n", 3, 5, 0)
    (True, False)
    """
    low = max(floor, start - _REACH)
    tops = [m.end() for m in _TOP.finditer(text, low, start)]
    if not tops and low > floor:
        return True
    piece = text[tops[-1] if tops else floor : mark + 3]
    if not _MARKER.search("\n" + piece):
        return False
    if _fits_item(piece):
        return True
    return any(token.type == "fence" and token.level > 0 for token in _blocks(piece))
