"""The slow reader, and the oracle of the fast one: ``tokenizers`` without added vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np
from tokenizers import Encoding as RawEncoding
from tokenizers import Tokenizer as RawTokenizer

from phaseguard.tokens.base import Encoding, Ids
from phaseguard.tokens.offsets import fill_gaps
from phaseguard.tokens.segments import check_composition, composition_sample, cut_points, pieces

# Below this a text is not worth the check, some 10 ms, that it may be cut for the threads of ``tokenizers``.
CUT_FROM_CHARS = 65_536
PIECE_CHARS = 4_096


def plain_encoder(full: RawTokenizer) -> RawTokenizer:
    """The same tokenizer without added vocabulary, post-processor, truncation or padding."""
    plain = RawTokenizer(full.model)
    if full.normalizer is not None:
        plain.normalizer = full.normalizer
    if full.pre_tokenizer is not None:
        plain.pre_tokenizer = full.pre_tokenizer
    return plain


class PlainReader:
    """The slow reader, and the oracle of the fast one: ``tokenizers`` without added vocabulary.

    Args:
        full: the whole tokenizer.
        cut_from: characters from which a text is encoded in pieces, where its tokenizer allows it.
        piece_chars: least number of characters in a piece.
    """

    def __init__(
        self, full: RawTokenizer, *, cut_from: int = CUT_FROM_CHARS, piece_chars: int = PIECE_CHARS
    ) -> None:
        self.full = full
        self.plain = plain_encoder(full)
        self._cut_from = cut_from
        self._piece_chars = piece_chars

    @cached_property
    def composes(self) -> bool:
        """Whether text may be cut at its cut points: each is a border of pre-tokens, and no token changes."""
        pre_tokenizer, text = self.plain.pre_tokenizer, composition_sample()
        if pre_tokenizer is None:
            return False
        borders = {start for _, (start, _) in pre_tokenizer.pre_tokenize_str(text)}
        return borders.issuperset(cut_points(text).tolist()) and check_composition(self._read_ids)

    def encode_whole(self, text: str) -> Encoding:
        """Encode without cutting: the oracle."""
        return _join([self.plain.encode(text)], [text])

    def encode(self, text: str) -> Encoding:
        """Encode, in pieces and in parallel when the text is long and may be cut."""
        if len(text) < self._cut_from or not self.composes:
            return self.encode_whole(text)
        parts = pieces(text, self._piece_chars)
        return _join(self.plain.encode_batch(parts), parts)

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Encode many texts, in parallel."""
        if any(len(text) >= self._cut_from for text in texts):
            return [self.encode(text) for text in texts]
        raw = self.plain.encode_batch(list(texts))
        return [_join([one], [text]) for one, text in zip(raw, texts, strict=True)]

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of many texts, in parallel and without offsets."""
        if any(len(text) >= self._cut_from for text in texts):
            return [self.encode(text).ids for text in texts]
        return self._read_ids(texts)

    def _read_ids(self, texts: Sequence[str]) -> list[Ids]:
        return [np.array(one.ids, np.uint32) for one in self.plain.encode_batch_fast(list(texts))]


def _join(parts: Sequence[RawEncoding], texts: Sequence[str]) -> Encoding:
    """One encoding of texts that follow each other."""
    counts = [len(part) for part in parts]
    count, sizes = sum(counts), [len(text) for text in texts]
    ids = np.fromiter(chain.from_iterable(part.ids for part in parts), np.uint32, count)
    pairs = chain.from_iterable(chain.from_iterable(part.offsets for part in parts))
    spans = np.fromiter(pairs, np.int64, 2 * count).reshape(count, 2)
    spans += np.repeat(np.cumsum([0, *sizes[:-1]]), counts)[:, None]
    starts = spans[:, 0].copy()
    return Encoding(ids, starts, fill_gaps(starts, spans[:, 1].copy(), sum(sizes)))
