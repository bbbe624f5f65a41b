"""A tokenizer of a few lines: one token a word, a mark, a blank or a line end."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from phaseguard.tokens import Encoding, Ids


class WordTokenizer:
    """Nothing merges, so every token can be counted by eye; the id of a token is a hash of its text."""

    reader = "re"

    def __init__(self, *, joined: bool = False) -> None:
        """With ``joined`` a blank line belongs to the word in front of it, as in many vocabularies."""
        self.name = "joined-words" if joined else "words"
        self.digest = f"{zlib.crc32(self.name.encode()):016x}"
        self._token = re.compile(r"\w+(?:\n\n)?|\W" if joined else r"\w+|\W")

    def encode(self, text: str) -> Encoding:
        found = list(self._token.finditer(text))
        ids = [zlib.crc32(match.group().encode()) for match in found]
        starts = [match.start() for match in found]
        ends = [match.end() for match in found]
        return Encoding(np.array(ids, np.uint32), np.array(starts, np.int64), np.array(ends, np.int64))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        return [encoding.ids for encoding in self.encode_batch(texts)]

    def special_id(self, spelling: str) -> int | None:
        return None

    def decode(self, ids: Ids | Sequence[int]) -> str:
        raise NotImplementedError("align never decodes")
