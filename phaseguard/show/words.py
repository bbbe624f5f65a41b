r"""Words and figures to be shown: text of a prompt made safe and short, so that no control character acts."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

_MOST = 60
_PICTURES = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


def picture(char: str) -> str:
    r"""What stands for a character that would act instead of showing.

    >>> [picture(char) for char in ("\n", "\t", "\x1b", "\u202e", "a")]
    ['⏎', '⇥', '␛', '<202E>', 'a']
    """
    known = _PICTURES.get(char)
    if known is not None:
        return known
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if char == "\x7f":
        return "␡"
    # joiners stay: emoji and several scripts need them to show as they are read
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in "\u200c\u200d":
        return f"<{code:04X}>"
    return char


def visible(text: str) -> str:
    r"""The text on one line, with pictures for what would not show.

    >>> visible("a\tb\n")
    'a⇥b⏎'
    """
    return text if text.isprintable() else "".join(map(picture, text))


def brief(text: str, most: int = _MOST) -> str:
    r"""The text on one line, blanks folded, with its middle left out when it is long.

    >>> brief("The access\ncode is 17", 14)
    'The acc… is 17'
    """
    line = visible(" ".join(text.split()))
    if len(line) <= most:
        return line
    head = most // 2
    return line[:head] + "…" + line[head + 1 - most :]


def quoted(text: str, most: int = _MOST) -> str:
    r"""The text as a literal, every blank and newline to be seen.

    >>> quoted("\n \n")
    "'\\n \\n'"
    """
    literal = ascii(text) if any(unicodedata.category(char) == "Cf" for char in text) else repr(text)
    if len(literal) <= most:
        return literal
    return f"{literal[: most - 1]}…{literal[0]} ({len(text)} characters)"


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "pad"), count(1200, "token")
    ('1 pad', '1,200 tokens')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(accuracy: Mapping[str, Any]) -> str:
    """An accuracy with its interval, as plain values; a dash where nothing was asked.

    >>> share({"n": 10, "mean": 0.5, "low": 0.237, "high": 0.763})
    '0.500 [0.237 0.763]'
    """
    if not accuracy["n"]:
        return "-"
    return f"{accuracy['mean']:.3f} [{accuracy['low']:.3f} {accuracy['high']:.3f}]"
