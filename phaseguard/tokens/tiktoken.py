"""Tokenizers of the ``tiktoken`` library: ids from it, offsets from numpy."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from phaseguard.errors import TokenizerError, did_you_mean
from phaseguard.tokens.base import Encoding, Ids, Tokenizer, empty_encoding
from phaseguard.tokens.hashing import short_hash
from phaseguard.tokens.offsets import UNKNOWN, Lengths, char_spans, unusable_text
from phaseguard.tokens.registry import share
from phaseguard.tokens.segments import check_composition

CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_environment = threading.Lock()


@dataclass(frozen=True)
class NamedEncoding:
    """An encoding that tiktoken, or a plugin of it, knows by name."""

    name: str

    def load(self) -> Any:
        """Load it from tiktoken's cache, from llama-index-core's, or from the network, in this order."""
        import tiktoken  # noqa: PLC0415 - not needed by most processes

        try:
            with _offline_cache():
                return tiktoken.get_encoding(self.name)
        except Exception as error:
            known = tiktoken.list_encoding_names()
            if self.name not in known:
                raise TokenizerError(
                    f"Unknown tiktoken encoding {self.name!r}. {did_you_mean(self.name, known)}"
                ) from error
            raise TokenizerError(
                f"The vocabulary of {self.name!r} is not on this machine and could not be downloaded "
                f"({type(error).__name__}). Set TIKTOKEN_CACHE_DIR to a folder that tiktoken filled "
                "on a machine with network, or pip install llama-index-core, which carries cl100k_base and "
                "o200k_base."
            ) from error


@dataclass(frozen=True, eq=False)
class EncodingObject:
    """A ``tiktoken.Encoding`` that is in memory."""

    encoding: Any

    @property
    def name(self) -> str:
        """The encoding's own name."""
        return str(self.encoding.name)

    def load(self) -> Any:
        """The object itself."""
        return self.encoding


@contextmanager
def _offline_cache() -> Iterator[None]:
    """Point tiktoken to the vocabularies that llama-index-core carries, unless a cache is set."""
    folder = _bundled_cache()
    if folder is None or any(name in os.environ for name in CACHE_VARIABLES):
        yield
        return
    with _environment:
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            yield
        finally:
            os.environ.pop("TIKTOKEN_CACHE_DIR", None)


def _bundled_cache() -> Path | None:
    # "llama_index.core" would import the parent package, so the namespace is searched by hand.
    spec = importlib.util.find_spec("llama_index")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        cache = Path(folder) / "core" / "_static" / "tiktoken_cache"
        if cache.is_dir():
            return cache
    return None


@dataclass(frozen=True, eq=False)
class _Loaded:
    encoding: Any
    lengths: Lengths
    special: dict[str, int]


class TiktokenTokenizer:
    """A tiktoken encoding behind phaseguard's protocol.

    Safe to use from several threads. Pickles as its source, and loads again where it is first used.
    """

    def __init__(self, source: NamedEncoding | EncodingObject) -> None:
        self.source = source
        self._lock = threading.RLock()
        self._state: _Loaded | None = None

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self.name!r})"

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[NamedEncoding | EncodingObject]]:
        return _restore, (self.source,)

    @property
    def name(self) -> str:
        """The name under which ``load_tokenizer`` finds it again."""
        return self.source.name

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that change with the vocabulary or its configuration."""
        loaded = self._loaded
        lengths = loaded.lengths.tobytes()
        return short_hash(self.name, loaded.encoding._pat_str, repr(sorted(loaded.special.items())), lengths)

    @property
    def reader(self) -> str:
        """The library that reads text: always ``tiktoken``."""
        return "tiktoken"

    @cached_property
    def composes(self) -> bool:
        """Whether text may be cut at :func:`phaseguard.tokens.cut_points`."""
        return check_composition(self.encode_ids)

    def warm_up(self) -> str:
        """Load the vocabulary now; returns the name of the reader."""
        return self.reader if self._loaded else ""

    @property
    def _loaded(self) -> _Loaded:
        if self._state is None:
            with self._lock:
                if self._state is None:
                    self._state = _load(self.source.load())
        return self._state

    def encode(self, text: str) -> Encoding:
        """Ids and character offsets of ``text``; see :meth:`phaseguard.tokens.Tokenizer.encode`."""
        return self._locate(text, self.encode_ids([text])[0])

    def _locate(self, text: str, ids: Ids) -> Encoding:
        if not len(ids):
            return empty_encoding()
        stops = self._loaded.lengths[ids].cumsum()
        if stops[-1] != len(text) and stops[-1] != len(text.encode()):
            raise TokenizerError(f"The tokens of {self.name!r} do not spell the text they were made from.")
        return Encoding(ids, *char_spans(stops, text))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """The same for many texts."""
        return [self._locate(text, ids) for text, ids in zip(texts, self.encode_ids(texts), strict=True)]

    def encode_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids alone, for many short texts."""
        read = self._loaded.encoding.encode_to_numpy
        try:
            return [read(text, disallowed_special=()) for text in texts]
        except (UnicodeEncodeError, TypeError) as error:
            raise unusable_text(texts, error) from error
        except ValueError as error:
            longest = max(map(len, texts))
            raise TokenizerError(
                f"tiktoken gave up on a text of up to {longest:,} characters ({error}): it has a run of one "
                "kind of character that is too long for its regular expression. Shorten that run."
            ) from error

    def special_id(self, spelling: str) -> int | None:
        """Id of a special token by its spelling, or None when it is not one."""
        return self._loaded.special.get(spelling)

    def decode(self, ids: Ids | Sequence[int]) -> str:
        """Text of ``ids``, special tokens included; incomplete characters become U+FFFD."""
        return str(self._loaded.encoding.decode([int(at) for at in ids], errors="replace"))


def _load(encoding: Any) -> _Loaded:
    special = {spelling: encoding.encode_single_token(spelling) for spelling in encoding.special_tokens_set}
    lengths = np.full(encoding.n_vocab, UNKNOWN, np.int64)
    for at in range(encoding.n_vocab):
        try:
            lengths[at] = len(encoding.decode_single_token_bytes(at))
        except KeyError:
            continue
    lengths[list(special.values())] = UNKNOWN
    return _Loaded(encoding, lengths, special)


def _restore(source: NamedEncoding | EncodingObject) -> Tokenizer:
    """What unpickling gives: this process's tokenizer of that name, else one that loads at its first use."""
    if isinstance(source, EncodingObject):
        return TiktokenTokenizer(source)
    return share(source.name, "auto", lambda: TiktokenTokenizer(source))
