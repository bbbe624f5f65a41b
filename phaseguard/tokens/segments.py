"""Cuts text where tokenization composes: ``encode(a) + encode(b) == encode(a + b)``.

The pre-tokenizers of today's byte-level vocabularies end a piece with a newline run and start the next one at
the character behind it. Two exceptions are known: before a slash (o200k and its kin let slashes join the
newlines behind punctuation), and GPT-2's expression, whose newline runs give their last character away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from phaseguard.tokens.base import Ids, Offsets, Tokenizer

_CUT = re.compile(r"\n(?=[^\s/])")


def cut_points(text: str) -> Offsets:
    r"""Offsets at which ``text`` may be cut, ascending, neither 0 nor the end.

    They hold for every tokenizer of which :func:`composes` is true.

    Returns:
        shape ``[n]``, int64: behind a newline run, before a character that is neither blank nor a slash.

    >>> cut_points("a\n\nb\n/c\n d\ne").tolist()
    [3, 11]
    """
    return np.fromiter((match.end() for match in _CUT.finditer(text)), np.int64)


def pieces(text: str, size: int) -> list[str]:
    r"""``text`` cut into pieces of at least ``size`` characters, where there are cut points enough.

    >>> pieces("ab\ncd\nef\n", 4)
    ['ab\ncd\n', 'ef\n']
    """
    out, at = [], 0
    while (match := _CUT.search(text, at + size - 1)) is not None:
        out.append(text[at : match.end()])
        at = match.end()
    return [*out, text[at:]]


def composition_sample() -> str:
    """A text that joins every kind of character with every kind of newline run and every kind of follower."""
    kinds = [
        *"aZ0 \t_é中あ가עشकα\u0301\u200b\u00a0\u3000\x00\x1b\x7f€²Ⅷ🎈\u200d'",
        "it's",
        "x1",
        "  ",
        "...",
        "</",
        "==",
    ]
    before = [*kinds, *map(chr, range(33, 48)), *map(chr, range(58, 65)), *"[\\]^`{|}~"]
    runs = [
        "\n",
        "\n\n",
        "\r\n",
        "\r\n\r\n",
        "\n \n",
        " \n",
        "\t\n\n\n",
        "\r\n \t\r\n",
        "\n/\n",
        "\n\u3000\n",
    ]
    after = [kind for kind in before if not kind[0].isspace() and kind != "/"]
    joints = [
        f"{left}{run}{after[(i * 7 + j) % len(after)]}"
        for i, left in enumerate(before)
        for j, run in enumerate(runs)
    ]
    return "".join(joints) + "".join(f"x{run}{right}. " for run in runs[:3] for right in after)


def check_composition(encode_ids: Callable[[Sequence[str]], list[Ids]]) -> bool:
    """Whether cutting a telling sample at every cut point changes none of its tokens."""
    text = composition_sample()
    cuts = [0, *cut_points(text).tolist(), len(text)]
    whole, *parts = encode_ids([text, *(text[start:stop] for start, stop in pairwise(cuts))])
    return np.array_equal(np.concatenate(parts), whole)


def composes(tokenizer: Tokenizer) -> bool:
    """Whether text may be cut at :func:`cut_points` and encoded piece by piece with ``tokenizer``.

    The first answer takes some 10 ms, the next ones nothing.
    """
    own = getattr(tokenizer, "composes", None)
    if isinstance(own, bool):
        return own
    if isinstance(tokenizer, Hashable):
        return _checked(tokenizer)
    return check_composition(tokenizer.encode_ids)


@lru_cache(maxsize=32)
def _checked(tokenizer: Tokenizer) -> bool:
    return check_composition(tokenizer.encode_ids)
