"""A text under scan, with what has been looked up in it, so that no search runs over the whole text twice."""

from __future__ import annotations

import re
from dataclasses import dataclass


class Source:
    """A text and the answers of searches that would otherwise make the scan quadratic.

    >>> source = Source("a */ b")
    >>> source.find("*/", 0), source.find("*/", 4)
    (4, None)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._absent: dict[str, int] = {}
        self._pairs: dict[str, dict[int, int]] = {}

    def find(self, mark: str, offset: int) -> int | None:
        """Offset behind the next ``mark``, or None; an absence is remembered."""
        if offset >= self._absent.get(mark, len(self.text) + 1):
            return None
        found = self.text.find(mark, offset)
        if found < 0:
            self._absent[mark] = offset
            return None
        return found + len(mark)

    def search(self, pattern: str, offset: int) -> int | None:
        """Offset behind the next match of a pattern, or None; an absence is remembered."""
        if offset >= self._absent.get(pattern, len(self.text) + 1):
            return None
        found = re.compile(pattern, re.IGNORECASE).search(self.text, offset)
        if found is None:
            self._absent[pattern] = offset
            return None
        return found.end()

    def pair(self, pattern: str, start: int) -> int | None:
        """End of the closing tag for the opening one at ``start``; every pair of a pattern is found at once.

        Args:
            pattern: matches opening and closing tags; its group ``close`` is not empty in a closing one.
            start: offset of an opening tag.
        """
        if pattern not in self._pairs:
            ends: dict[int, int] = {}
            opened: list[int] = []
            for tag in re.compile(pattern, re.IGNORECASE).finditer(self.text):
                if not tag["close"]:
                    opened.append(tag.start())
                elif opened:
                    ends[opened.pop()] = tag.end()
            self._pairs[pattern] = ends
        return self._pairs[pattern].get(start)

    def line_end(self, offset: int) -> int:
        """Offset of the newline that ends the line an offset lies in, or the text's end."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a construct may begin: the start of its line, and the mark that opens it."""

    source: Source
    start: int
    mark: int

    @property
    def text(self) -> str:
        """The whole text."""
        return self.source.text

    @classmethod
    def of(cls, text: str, mark: int = 0) -> Opening:
        """The opening at ``mark`` of a text, for examples and tests."""
        return cls(Source(text), text.rfind("\n", 0, mark) + 1, mark)
