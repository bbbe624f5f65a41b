r"""The on-device models' words as text, and the tokenizer that reads them, so that ``align`` can work on it.

Every word is a paragraph of its own, so that pads may stand between any two, as they do between the
paragraphs of a real prompt. Words are of two syllables: keys begin with b or d, values with k or l,
filler and form with m.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from phaseguard.errors import TokenizerError
from phaseguard.lab.tasks import PAD, VOCABULARY
from phaseguard.tokens import Encoding, Ids
from phaseguard.tokens.base import Offsets

END = "\n\n"  # what ends a word's paragraph; it belongs to the word's token
_FIRST = (
    "ba",
    "be",
    "bi",
    "bo",
    "bu",
    "da",
    "de",
    "di",
    "ka",
    "ke",
    "ki",
    "ko",
    "ku",
    "la",
    "le",
    "li",
    "ma",
    "me",
)
_SECOND = tuple(consonant + vowel for consonant in "nrst" for vowel in "aeio")
_WORDS = tuple(first + second for first in _FIRST for second in _SECOND)
_IDS = {word: i for i, word in enumerate(_WORDS)}
# whatever is no word is a pad: a blank with the line end behind it, or one character
_TOKEN = re.compile(rf"(?P<word>{'|'.join(_WORDS)})\n{{0,2}}|[ \t]\n?|.", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class WordTokenizer:
    r"""Reads the on-device models' texts; a :class:`phaseguard.tokens.Tokenizer`.

    >>> WordTokenizer().encode("bena\n\n \nkosi").ids.tolist()
    [16, 288, 186]
    """

    name = "phaseguard-lab"
    digest = sha256("|".join(_WORDS).encode()).hexdigest()[:16]
    reader = "phaseguard"

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets; every character outside the vocabulary is a pad.

        Raises:
            TokenizerError: when ``text`` holds a lone surrogate, as for every tokenizer.
        """
        if _SURROGATE.search(text):
            raise TokenizerError("The text holds a lone surrogate: decode it properly before.")
        found = list(_TOKEN.finditer(text))
        ids = np.array([_IDS.get(match["word"], PAD) for match in found], np.uint32)
        starts: Offsets = np.array([match.start() for match in found], np.int64)
        return Encoding(ids, starts, np.array([match.end() for match in found], np.int64))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The same for many texts."""
        return [self.encode(text) for text in texts]

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids alone."""
        return [np.array([_IDS.get(m["word"], PAD) for m in _TOKEN.finditer(t)], np.uint32) for t in texts]

    def special_id(self, spelling: str) -> int | None:  # noqa: ARG002 - part of the protocol
        """None: these models have no special tokens."""
        return None

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """The text of ``ids``: :func:`write`."""
        return write(ids)


def write(ids: Ids | Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    r"""Text whose tokens are ``ids``; a pad is a blank on a line of its own.

    Raises:
        TokenizerError: for ids out of range.

    >>> write([16, 288, 186])
    'bena\n\n \nkosi\n\n'
    """
    known = np.asarray(ids, np.int64)
    if known.size and not 0 <= known.min() <= known.max() < VOCABULARY:
        raise TokenizerError(f"Token ids must be 0 to {VOCABULARY - 1}.")
    return "".join(" \n" if i == PAD else _WORDS[i] + END for i in known.tolist())
