"""Where a Hugging Face vocabulary comes from: a file, an object, or a name on the hub."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer as RawTokenizer

from phaseguard.errors import MissingExtraError, TokenizerError
from phaseguard.tokens.hashing import short_hash


class Source(Protocol):
    """Where a vocabulary comes from; pickles, and loads again in another process."""

    @property
    def name(self) -> str:
        """The name under which ``load_tokenizer`` finds it again."""

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that change with the vocabulary, or nothing when only loading can tell."""

    def load(self) -> RawTokenizer:
        """The whole tokenizer, added vocabulary included."""


@dataclass(frozen=True)
class FileSource:
    """A ``tokenizer.json`` on this machine."""

    name: str
    path: Path

    @cached_property
    def digest(self) -> str:
        """Hash of the file's bytes."""
        return short_hash(self.path.read_bytes())

    def load(self) -> RawTokenizer:
        """Read the file."""
        try:
            return RawTokenizer.from_file(str(self.path))
        except Exception as error:
            raise TokenizerError(
                f"{self.path} is not a tokenizer.json that the tokenizers library reads ({error}). Give the "
                "path of a tokenizer.json, or of a folder that holds one."
            ) from error


@dataclass(frozen=True, eq=False)
class ObjectSource:
    """A ``tokenizers.Tokenizer`` that is in memory."""

    tokenizer: RawTokenizer
    label: str = ""

    @property
    def name(self) -> str:
        """Its label, or a name made from its digest."""
        return self.label or f"object:{self.digest}"

    @cached_property
    def digest(self) -> str:
        """Hash of the tokenizer's JSON."""
        return short_hash(self.tokenizer.to_str())

    def load(self) -> RawTokenizer:
        """The object itself."""
        return self.tokenizer


@dataclass(frozen=True)
class HubSource:
    """A tokenizer that transformers finds: a name on the Hugging Face hub, or a local folder."""

    name: str

    @property
    def digest(self) -> str:
        """Nothing: only loading can tell."""
        return ""

    def load(self) -> RawTokenizer:
        """Load it with transformers, from the local cache when it is there."""
        return _load_hub(self.name.removeprefix("hub:"))


def _load_hub(name: str) -> RawTokenizer:
    if importlib.util.find_spec("transformers") is None:
        raise MissingExtraError(
            f"Loading the tokenizer {name!r} needs transformers: pip install phaseguard[transformers], or "
            "give the path of a tokenizer.json."
        )
    from transformers import AutoTokenizer  # noqa: PLC0415 - seconds of loading

    try:
        loaded = AutoTokenizer.from_pretrained(name)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise TokenizerError(
            f"transformers cannot load the tokenizer {name!r} ({type(error).__name__}: {reason}). Check the "
            "name and the network, or download its tokenizer.json and give that path."
        ) from error
    return backend_of(loaded, name)


def backend_of(tokenizer: Any, name: str) -> RawTokenizer:
    """The ``tokenizers`` object inside a transformers tokenizer.

    Raises:
        TokenizerError: when there is none, as in tokenizers written in Python.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, RawTokenizer):
        raise TokenizerError(
            f"The tokenizer {name!r} ({type(tokenizer).__name__}) has no fast backend, so it has no "
            "character offsets: load it with use_fast=True, or give the path of a tokenizer.json."
        )
    return backend
