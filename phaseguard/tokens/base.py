"""What a tokenizer must offer: ids with character offsets, of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]
Offsets = NDArray[np.int64]
Fast = bool | Literal["auto"]


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """Token ids and the characters each token covers.

    Neighbours partition the text, but for tokens that hold a part of a character: each of them covers
    that whole character, so they overlap. Arrays may be read-only views.

    Attributes:
        ids: shape ``[n]``, uint32.
        starts: shape ``[n]``, int64, first character of each token.
        ends: shape ``[n]``, int64, one past the last character.
    """

    ids: Ids
    starts: Offsets
    ends: Offsets

    def __len__(self) -> int:
        return len(self.ids)


def empty_encoding() -> Encoding:
    """The encoding of the empty string.

    >>> len(empty_encoding()), empty_encoding().ids.dtype, empty_encoding().starts.dtype
    (0, dtype('uint32'), dtype('int64'))
    """
    return Encoding(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int64))


@runtime_checkable
class Tokenizer(Protocol):
    """Encodes plain text: spellings of special tokens inside it stay plain text.

    Anything with these members is accepted wherever phaseguard takes a tokenizer.
    """

    @property
    def name(self) -> str:
        """The name under which :func:`phaseguard.tokens.load_tokenizer` finds it again."""

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that change with the vocabulary or its configuration."""

    @property
    def reader(self) -> str:
        """The library that reads text at the moment: ``fastokens``, ``tokenizers`` or ``tiktoken``."""

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets of ``text``, without any special or added token.

        Raises:
            TokenizerError: when ``text`` holds a lone surrogate, which no byte-level vocabulary can encode.
        """

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The same for many texts."""

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids alone, for many short texts: the cheap way to count tokens."""

    def special_id(self, spelling: str) -> int | None:
        """Id of a special or added token by its spelling, or None when it is not one."""

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """Text of ``ids``; incomplete characters become U+FFFD."""
