"""Characters of no width: which of them are noise, judged by their neighbours."""

from __future__ import annotations

import re

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
RUN = re.compile(f"[{ZERO_WIDTH}]+")
_BENIGN = frozenset(" \t.,;:!?'\")(…—–’‘“”")
_ENDS = frozenset(" \t\r\n")
_ORDINAL_MARKS = frozenset(".)")


def has_zero_width(text: str) -> bool:
    """Whether a text holds a character of no width; instant for ASCII.

    >>> has_zero_width("plain"), has_zero_width("in\u200bvoice")
    (False, True)
    """
    return not text.isascii() and any(char in text for char in ZERO_WIDTH)


def is_noise(before: str, run: str, after: str) -> bool:
    r"""Whether a run of zero-width characters between two neighbours carries no meaning.

    Joiners stay in every script but the Latin, Greek and Cyrillic ones, where no spelling needs them.

    Args:
        before: the character in front of the run, empty at the start of the text.
        run: the zero-width characters.
        after: the character behind the run, empty at the end of the text.

    >>> is_noise("n", "\u200b", "v"), is_noise("ب", "\u200c", "ه"), is_noise("@", "\u200b", "a")
    (True, False, False)
    """
    edges = [not char or char in _ENDS for char in (before, after)]
    if all(edges) or (before.isdigit() and after in _ORDINAL_MARKS):
        return False
    marks_only = not set(run) - {"\ufeff", "\u2060"}
    return all(
        edge or char in _BENIGN or _is_plain(char) or (marks_only and char.isalnum())
        for edge, char in zip(edges, (before, after), strict=True)
    )


def _is_plain(char: str) -> bool:
    """Whether a character is an ASCII digit or a letter of a script that uses no joiners."""
    if char.isascii():
        return char.isalnum()
    return char.isalpha() and (ord(char) < 0x0530 or 0x1E00 <= ord(char) < 0x2000)
