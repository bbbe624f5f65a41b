"""Tokenizers that the ``tokenizers`` library reads, with a fast reader beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

from tokenizers import Tokenizer as RawTokenizer

from phaseguard.tokens.base import Encoding, Fast, Ids, Tokenizer
from phaseguard.tokens.fast import SAMPLES, FastReader, load_fast_backend
from phaseguard.tokens.hashing import short_hash
from phaseguard.tokens.offsets import byte_alphabet, unusable_text
from phaseguard.tokens.plain import PlainReader
from phaseguard.tokens.registry import share
from phaseguard.tokens.sources import ObjectSource, Source

Read = TypeVar("Read", Encoding, Ids)

# Characters to read with ``tokenizers`` before loading the fast reader pays: both then took about a second.
FAST_AFTER_CHARS = 2_000_000
# DeepSeek's file has a sequence of no normalizers.
NO_NORMALIZER = {"None", "Sequence(normalizers=[])"}
NORMAL_FORMS = {"NFC()", "NFD()", "NFKC()", "NFKD()", "Sequence(normalizers=[NFC()])"}


def load_fast_reader(slow: PlainReader) -> FastReader | None:
    """A fast reader that agrees with ``slow`` on the built-in sample, or None.

    Only byte-level vocabularies have tokens whose lengths add up to the text's, so no other is tried; nor
    is a normalizer that changes ASCII: it could move characters and keep their number.
    """
    vocabulary = slow.plain.get_vocab(with_added_tokens=False)
    normalizer = repr(slow.plain.normalizer)
    if not byte_alphabet().keys() <= vocabulary.keys() or not _is_byte_level(slow.plain):
        return None
    if normalizer not in NO_NORMALIZER | NORMAL_FORMS:
        return None
    backend = load_fast_backend(slow.plain.to_str())
    if backend is None:
        return None
    reader = FastReader(backend, vocabulary, normalizes=normalizer in NORMAL_FORMS)
    return reader if reader.agrees_with([slow.encode_whole(text) for text in SAMPLES]) else None


def _is_byte_level(plain: RawTokenizer) -> bool:
    probe = "é \n"
    pre_tokenizer = plain.pre_tokenizer
    if pre_tokenizer is None:
        return False
    return "".join(piece for piece, _ in pre_tokenizer.pre_tokenize_str(probe)) == "Ã©ĠĊ"


class HuggingFaceTokenizer:
    """A tokenizer.json, or a tokenizer object, behind phaseguard's protocol.

    Safe to use from several threads. Pickles as its source, and loads again where it is first used.

    Args:
        source: where the vocabulary comes from.
        fast: ``"auto"`` loads the fast reader when about 2 million characters were read without it, ``True``
            at the first use, ``False`` never.
    """

    def __init__(self, source: Source, *, fast: Fast = "auto") -> None:
        self.source = source
        self._policy: Fast = fast
        self._lock = threading.RLock()
        self._slow: PlainReader | None = None
        self._fast: FastReader | None = None
        self._settled = fast is False
        self._read_chars = 0

    def __repr__(self) -> str:
        return f"HuggingFaceTokenizer({self.name!r}, reader={self.reader!r})"

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[Source, Fast]]:
        return _restore, (self.source, self._policy)

    @property
    def name(self) -> str:
        """The name under which ``load_tokenizer`` finds it again."""
        return self.source.name

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that change with the vocabulary or its configuration."""
        return self.source.digest or short_hash(self.slow.full.to_str())

    @property
    def reader(self) -> str:
        """The library that reads text at the moment: ``fastokens`` or ``tokenizers``."""
        return "tokenizers" if self._fast is None else "fastokens"

    @property
    def composes(self) -> bool:
        """Whether text may be cut at :func:`phaseguard.tokens.cut_points`."""
        return self.slow.composes

    @property
    def slow(self) -> PlainReader:
        """The reader that uses ``tokenizers``; loads it when that has not happened yet."""
        if self._slow is None:
            with self._lock:
                if self._slow is None:
                    self._slow = PlainReader(self.source.load())
        return self._slow

    def warm_up(self) -> str:
        """Load the fast reader now, unless the policy forbids it; returns the name of the reader in use."""
        with self._lock:
            if not self._settled:
                self._fast = load_fast_reader(self.slow)
                self._settled = True
        return self.reader

    def _reader_for(self, chars: int) -> FastReader | None:
        """The fast reader if it is there, or if the characters read so far make it worth its loading time."""
        if self._settled:
            return self._fast
        with self._lock:
            self._read_chars += chars
            if self._policy is True or self._read_chars > FAST_AFTER_CHARS:
                self.warm_up()
        return self._fast

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets of ``text``; see :meth:`phaseguard.tokens.Tokenizer.encode`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The same for many texts."""
        return self._read(texts, FastReader.encode_batch, PlainReader.encode_batch)

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids alone, for many short texts: the cheap way to count tokens."""
        return self._read(texts, FastReader.encode_ids, PlainReader.encode_ids)

    def _read(
        self,
        texts: Sequence[str],
        fast: Callable[[FastReader, Sequence[str]], list[Read | None]],
        slow: Callable[[PlainReader, Sequence[str]], list[Read]],
    ) -> list[Read]:
        """What the fast reader answers, and the slow one for each text on which the fast one does not."""
        if not texts:
            return []
        try:
            reader = self._reader_for(sum(map(len, texts)))
            read = fast(reader, texts) if reader else [None] * len(texts)
            missing = [text for text, one in zip(texts, read, strict=True) if one is None]
            rest = iter(slow(self.slow, missing) if missing else ())
            return [next(rest) if one is None else one for one in read]
        except (UnicodeEncodeError, TypeError) as error:
            raise unusable_text(texts, error) from error

    def special_id(self, spelling: str) -> int | None:
        """Id of a special or added token by its spelling, or None when it is not one."""
        return self._special_ids.get(spelling)

    @cached_property
    def _special_ids(self) -> dict[str, int]:
        return {token.content: at for at, token in self.slow.full.get_added_tokens_decoder().items()}

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """Text of ``ids``, special tokens included; incomplete characters become U+FFFD."""
        return self.slow.full.decode([int(at) for at in ids], skip_special_tokens=False)


def _restore(source: Source, fast: Fast) -> Tokenizer:
    """What unpickling gives: this process's tokenizer of that name, else one that loads at its first use."""
    if isinstance(source, ObjectSource):
        return HuggingFaceTokenizer(source, fast=fast)
    return share(source.name, fast, lambda: HuggingFaceTokenizer(source, fast=fast))
