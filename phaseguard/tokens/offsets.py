"""Character offsets from token ids: byte lengths, a cumulative sum, and the bytes that start a character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import TokenizerError
from phaseguard.tokens.base import Encoding, Ids, Offsets

# A token without known bytes: far from any real length, so that a sum that contains it never fits the text.
UNKNOWN = -(2**40)
Lengths = NDArray[np.int64]


@cache
def byte_alphabet() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for (GPT-2's printable alphabet).

    >>> byte_alphabet()["Ġ"], byte_alphabet()["a"]
    (32, 97)
    """
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    shown = {chr(byte): byte for byte in plain}
    hidden = (byte for byte in range(256) if byte not in set(plain))
    return shown | {chr(256 + at): byte for at, byte in enumerate(hidden)}


class ByteTable:
    """The bytes of each token of a byte-level vocabulary.

    Args:
        vocabulary: spelling in the byte alphabet -> id; a spelling outside the alphabet has no known bytes.

    Attributes:
        lengths: shape ``[max id + 2]``, int64; ids that are not there, and the last entry, hold ``UNKNOWN``.

    >>> table = ByteTable({"a": 0, "Ġthe": 2})
    >>> table.lengths.tolist() == [1, UNKNOWN, 4, UNKNOWN], table.spell(np.array([0, 2]))
    (True, b'a the')
    """

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        count = len(vocabulary)
        self.lengths: Lengths = np.full(max(vocabulary.values(), default=0) + 2, UNKNOWN, np.int64)
        ids = np.fromiter(vocabulary.values(), np.int64, count)
        sizes = np.fromiter(map(len, vocabulary), np.int64, count)
        self.lengths[ids] = sizes
        everything = "".join(vocabulary)
        strangers = set(everything) - byte_alphabet().keys()
        if strangers:
            unknown = [at for spelling, at in vocabulary.items() if not strangers.isdisjoint(spelling)]
            self.lengths[unknown] = UNKNOWN
        to_byte = {ord(char): byte for char, byte in byte_alphabet().items()} | {ord(c): 0 for c in strangers}
        self._blob = np.frombuffer(everything.translate(to_byte).encode("latin-1"), np.uint8)
        self._first = np.zeros_like(self.lengths)
        self._first[ids] = np.cumsum(sizes) - sizes

    def spell(self, ids: NDArray[np.integer[Any]]) -> bytes:
        """The bytes of known ids, one after the other."""
        sizes = self.lengths[ids]
        total = sizes.cumsum()
        shift = np.repeat(self._first[ids] - total + sizes, sizes)
        return self._blob[shift + np.arange(len(shift))].tobytes()


def char_spans(stops: Offsets, text: str) -> tuple[Offsets, Offsets]:
    """Characters of each token, from the bytes each token ends at.

    Args:
        stops: shape ``[n]``, ascending; the last one is the number of bytes of ``text`` in UTF-8.
        text: the whole text.

    Returns:
        first characters and ends, shape ``[n]`` each; a token with a part of a character covers all of it.

    >>> [a.tolist() for a in char_spans(np.array([1, 2, 3]), "xé")]
    [[0, 1, 1], [1, 2, 2]]
    """
    begins = np.empty_like(stops)
    begins[:1] = 0
    begins[1:] = stops[:-1]
    if text.isascii():
        return begins, stops
    data = np.frombuffer(text.encode(), np.int8)
    # Continuation bytes are 0x80..0xBF, that is -128..-65 as signed bytes.
    index = np.cumsum(data >= -64, dtype=np.int32)
    return index[begins].astype(np.int64) - 1, index[stops - 1].astype(np.int64)


def fill_gaps(starts: Offsets, ends: Offsets, size: int) -> Offsets:
    """Ends such that no character is left out: what a normalizer dropped belongs to the token before it.

    Args:
        starts: shape ``[n]``, ascending; ``starts[0]`` is set to 0 in place.
        ends: shape ``[n]``.
        size: characters of the text.

    >>> fill_gaps(np.array([0, 1, 1, 3]), np.array([1, 2, 2, 4]), 4).tolist()
    [1, 3, 3, 4]
    """
    if not len(starts):
        return ends
    starts[starts == starts[0]] = 0
    reach = np.maximum.accumulate(ends)
    following = np.append(starts[1:], size)
    gaps = np.flatnonzero(following > reach)
    if not len(gaps):
        return ends
    at = np.searchsorted(reach[gaps], ends).clip(max=len(gaps) - 1)
    return np.where(reach[gaps][at] == ends, following[gaps][at], ends)


def split_encoding(ids: Ids, stops: Offsets, cuts: Offsets, texts: Sequence[str]) -> list[Encoding]:
    """Encodings of texts that were read as one flat array.

    Args:
        ids: shape ``[n]``, the tokens of all texts.
        stops: shape ``[n]``, the byte each token ends at, counted through all texts.
        cuts: shape ``[len(texts) + 1]``, the index of each text's first token.
        texts: the texts.
    """
    starts, ends = char_spans(stops, texts[0] if len(texts) == 1 else "".join(texts))
    if len(texts) == 1:
        return [Encoding(ids, starts, ends)]
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    shift = np.repeat(sizes.cumsum() - sizes, np.diff(cuts))
    starts, ends = starts - shift, ends - shift
    return [
        Encoding(ids[low:high], starts[low:high], ends[low:high]) for low, high in pairwise(cuts.tolist())
    ]


def unusable_text(texts: Sequence[str], error: Exception) -> Exception:
    r"""The error to raise when a library refuses texts: says where, and what to do.

    >>> str(unusable_text(["a", "b\ud800"], TypeError())).partition(",")[0]
    'Text 1 has a lone surrogate U+D800 at character 1'
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            return TokenizerError(f"Text {number} is {type(text).__name__}, not str: decode it first.")
        try:
            text.encode()
        except UnicodeEncodeError as found:
            return TokenizerError(
                f"Text {number} has a lone surrogate U+{ord(text[found.start]):04X} at character "
                f'{found.start}, which cannot be encoded: read the text with errors="replace", or '
                'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").'
            )
    return error
