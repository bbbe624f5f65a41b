"""The fast reader: ``fastokens`` gives ids alone, numpy rebuilds the offsets, and every answer is checked.

fastokens (Apache-2.0) reads the same tokenizer.json some fifty times faster than ``tokenizers``. It is used
where it was seen to agree: on a sample when it is loaded, and by its tokens' byte lengths on every text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phaseguard.tokens.base import Encoding, Ids, Offsets
from phaseguard.tokens.offsets import ByteTable, split_encoding
from phaseguard.tokens.segments import composition_sample

SAMPLES = (
    "The access code is PROVOCATIVE-8417.  It opens  door 3,   and that's all they'll say.\n\n \n\n'Tis\n",
    "def f(x: int) -> str:\n\tif x != 0x1F:  # a\n        return f'{x!r:>10}' * 2\r\n\r\n    '''= = = ='''\n",
    '{"id": 1234567890, "ok": true, "list": [1.5e-7, null], "s": "a\\u00e9\\n\\\\"}\n[[],[{}]]//\n#!/bin/sh',
    "漢字とかな、カタカナ。中文：你好，世界！　한국어 문장입니다. ｱｲｳ １２３ 々〆 龥龦",
    "🎈👩‍👩‍👧‍👦🏳️‍🌈 👍🏽 ❤️☺ 🇩🇪🇫🇷 \U0001f9ff𒀀𝒳",
    "<think> </think><｜User｜>hi<｜Assistant｜><｜begin▁of▁sentence｜><|im_end|><s>[INST]<unk><0x41>",
    "\x00\x01\x07\x1b[0m\x1c\x1f\x7f\x85\u200b\ufeff\u2028\u2029\u180e\ufffd\u00ad",
    "\u0301a\u0301e\u0301\u0327 \u0308 n\u0303o\u0323\u0302 क्षि กำ ไทย עִבְרִית العَرَبِيَّة",
    "Ω\u2126 \u212b ﬁ Ǆ ſ İı ẞß",
    " " * 70 + "\n" * 9 + "\t" * 5 + "=" * 90 + "." * 33 + "-" * 17 + "\u00a0" * 3 + "a" * 300 + "9" * 40,
    "ABCdef ghiJKL iPhone McDONALD'S x_y-z/w\\v a.b,c;d:e?f !important --flag=1 @user #tag $5 50% ^&*()~`|",
    composition_sample(),
)


class FlatEncoder(Protocol):
    """What the fast reader needs of a library."""

    def encode_batch_flat(self, inputs: list[str]) -> tuple[bytes, bytes]:
        """Ids of all inputs as uint32 bytes, and ``len(inputs) + 1`` uint64 bytes: each's first token."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatIds:
    """Ids of many texts in one array.

    Attributes:
        ids: shape ``[n]``, uint32.
        cuts: shape ``[texts + 1]``, int64, index of each text's first token.
        stops: shape ``[n]``, int64, the byte each token ends at, counted through all texts.
        agrees: shape ``[texts]``, whether the tokens of a text have as many bytes as the text.
    """

    ids: Ids
    cuts: Offsets
    stops: Offsets
    agrees: NDArray[np.bool_]


class FastReader:
    """Encodes with an ids-only library, and says so where it cannot be trusted.

    Args:
        backend: the library's tokenizer, without added vocabulary.
        vocabulary: spelling in the byte alphabet -> id.
        normalizes: whether it changes text that is not ASCII: equal byte counts then prove little.
    """

    def __init__(self, backend: FlatEncoder, vocabulary: Mapping[str, int], *, normalizes: bool) -> None:
        self._backend = backend
        self._table = ByteTable(vocabulary)
        self._normalizes = normalizes

    def read(self, texts: Sequence[str]) -> FlatIds:
        """Ids of all texts, each checked by its number of bytes.

        Raises:
            UnicodeEncodeError: when a text holds a lone surrogate.
        """
        try:
            raw, bounds = self._backend.encode_batch_flat(list(texts))
        except UnicodeEncodeError:
            raise
        except (ValueError, RuntimeError):
            # The library's limits on backtracking; the slow reader has none.
            raw, bounds = b"", bytes(8 * len(texts) + 8)
        ids = np.frombuffer(raw, np.uint32)
        cuts = np.frombuffer(bounds, np.uint64).astype(np.int64)
        stops = self._table.lengths.take(ids, mode="clip").cumsum()
        sizes = np.fromiter((len(t) if t.isascii() else len(t.encode()) for t in texts), np.int64, len(texts))
        reached = np.concatenate(([0], stops))[cuts]
        agrees = np.diff(reached) == sizes
        if self._normalizes:
            # A Unicode normal form leaves ASCII alone, but may reorder marks and keep their number.
            for at in np.flatnonzero(agrees).tolist():
                if not texts[at].isascii():
                    agrees[at] = self._table.spell(ids[cuts[at] : cuts[at + 1]]) == texts[at].encode()
        return FlatIds(ids, cuts, stops, agrees)

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding | None]:
        """Encodings, None for each text on which the byte lengths do not add up."""
        flat = self.read(texts)
        if flat.agrees.all():
            return list(split_encoding(flat.ids, flat.stops, flat.cuts, texts))
        if len(texts) == 1:
            return [None]
        return [self.encode_batch([text])[0] for text in texts]

    def encode_ids(self, texts: Sequence[str]) -> list[Ids | None]:
        """Ids alone, None for each text on which the byte lengths do not add up."""
        flat = self.read(texts)
        bounds = flat.cuts.tolist()
        return [
            flat.ids[low:high] if fits else None
            for low, high, fits in zip(bounds, bounds[1:], flat.agrees.tolist(), strict=False)
        ]

    def agrees_with(self, expected: Sequence[Encoding], texts: Sequence[str] = SAMPLES) -> bool:
        """Whether the reader gives the ids and offsets of ``expected``, or withholds its answer."""
        return all(
            mine is None
            or (
                np.array_equal(mine.ids, truth.ids)
                and np.array_equal(mine.starts, truth.starts)
                and np.array_equal(mine.ends, truth.ends)
            )
            for mine, truth in zip(self.encode_batch(texts), expected, strict=True)
        )


def load_fast_backend(tokenizer_json: str) -> FlatEncoder | None:
    """The library's tokenizer for a tokenizer.json without added vocabulary, or None without the library."""
    try:
        import fastokens  # noqa: PLC0415 - a second of loading that short texts must not pay

        backend: FlatEncoder = fastokens.Tokenizer.from_json_str(tokenizer_json)
    except (ImportError, ValueError, RuntimeError, OSError):
        return None
    return backend
