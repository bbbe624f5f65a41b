"""What a tokenizer must offer: ids with character offsets, of plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """Token ids and the characters each token covers.

    Attributes:
        ids: shape ``[n]``, uint32.
        starts: shape ``[n]``, int64, first character of each token.
        ends: shape ``[n]``, int64, one past the last character. A token that holds a part of a
            character covers that whole character, so neighbours may overlap.
    """

    ids: Ids
    starts: Offsets
    ends: Offsets

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class Tokenizer(Protocol):
    """Encodes plain text: spellings of special tokens inside it stay plain text."""

    @property
    def name(self) -> str:
        """The name under which :func:`phaseguard.tokens.load_tokenizer` finds it again."""

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets of ``text``, without any special or added token."""

    def encode_batch(self, texts: list[str]) -> list[Encoding]:
        """The same for many texts."""

    def encode_ids(self, texts: list[str]) -> list[Ids]:
        """Ids alone, for many short texts: the cheap way to count tokens."""

    def special_id(self, spelling: str) -> int | None:
        """Id of a special or added token by its spelling, or None when it is not one."""

    def decode(self, ids: Ids) -> str:
        """Text of ``ids``; incomplete characters become U+FFFD."""
