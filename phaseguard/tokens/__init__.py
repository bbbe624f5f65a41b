"""Tokenizers: plain text to ids with exact character offsets, fast where a fast reader agrees."""

from phaseguard.tokens.base import Encoding, Ids, Offsets, Tokenizer
from phaseguard.tokens.registry import TokenizerLike, load_tokenizer
from phaseguard.tokens.segments import composes, cut_points

__all__ = [
    "Encoding",
    "Ids",
    "Offsets",
    "Tokenizer",
    "TokenizerLike",
    "composes",
    "cut_points",
    "load_tokenizer",
]
