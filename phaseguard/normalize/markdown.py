"""The questions about blocks that only a Markdown parser can answer; it is imported on the first one."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MARKER = re.compile(r"\n {0,3}(?:[-*+]|\d{1,9}[.)]|>)")
_TOP = re.compile(r"\n[ \t\r]*\n(?=[^\W\d_])")


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
    top = floor
    for reach in (2_000, 20_000, start):
        low = max(floor, start - reach)
        found = [m.end() for m in _TOP.finditer(text, low, start)]
        if found or low == floor:
            top = found[-1] if found else floor
            break
    piece = text[top : mark + 3]
    if not _MARKER.search("\n" + piece):
        return False
    return any(token.type == "fence" and token.level > 0 for token in _blocks(piece))
