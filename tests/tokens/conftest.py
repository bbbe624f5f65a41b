"""Tokenizers of every kind that people load, and oracles that derive the answer in another way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from phaseguard.tokens import load_tokenizer
from phaseguard.tokens.base import Encoding
from phaseguard.tokens.huggingface import HuggingFaceTokenizer

SPECIALS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = LLAMA_3.replace(r"[\r\n]*|", r"[\r\n/]*|")


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _byte_level(pre_tokenizer: Any, normalizer: Any = None, **model: Any) -> Tokenizer:
    made = Tokenizer(models.BPE(**model))
    if normalizer is not None:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    return _train(made, pre_tokenizers.ByteLevel.alphabet(), SPECIALS)


def _train(made: Tokenizer, alphabet: list[str], specials: list[str]) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=1500, show_progress=False, initial_alphabet=alphabet, special_tokens=specials
    )
    made.train_from_iterator(list(topics.values())[:40], trainer)
    return made


def _metaspace() -> Tokenizer:
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return _train(made, [], ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))])


def _wordpiece() -> Tokenizer:
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=1500, show_progress=False, special_tokens=["[UNK]", "[CLS]"]
    )
    made.train_from_iterator(list(topics.values())[:40], trainer)
    return made


MADE: dict[str, Callable[[], Tokenizer]] = {
    "gpt2-like": lambda: _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "gpt2-prefix": lambda: _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "llama3-like": lambda: _byte_level(_split(LLAMA_3), ignore_merges=True),
    "qwen-like": lambda: _byte_level(_split(QWEN), normalizers.NFC()),
    "o200k-like": lambda: _byte_level(_split(O200K)),
    "lowercase": lambda: _byte_level(_split(QWEN), normalizers.Lowercase()),
    "nfkc": lambda: _byte_level(_split(QWEN), normalizers.NFKC()),
    "metaspace": _metaspace,
    "wordpiece": _wordpiece,
}
BYTE_LEVEL = ["deepseek-v4", "gpt2-like", "llama3-like", "qwen-like", "o200k-like"]


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Path of the tokenizer.json of each tokenizer made here."""
    folder = tmp_path_factory.mktemp("vocabularies")
    paths = {}
    for name, make in MADE.items():
        paths[name] = folder / name / "tokenizer.json"
        paths[name].parent.mkdir()
        make().save(str(paths[name]))
    return paths


@dataclass
class Case:
    """A tokenizer, and the oracle that reads the same vocabulary."""

    tokenizer: HuggingFaceTokenizer
    oracle: Tokenizer

    def expected(self, text: str) -> Encoding:
        """What plain ``tokenizers`` gives for the whole text, gaps filled in pure Python."""
        raw = self.oracle.encode(text, add_special_tokens=False)
        return fill(raw.ids, raw.offsets, len(text))


def fill(ids: list[int], spans: list[tuple[int, int]], size: int) -> Encoding:
    """Give characters that no token covers to the tokens that end where they begin."""
    import numpy as np

    starts, ends = [a for a, _ in spans], [b for _, b in spans]
    covered = {char for a, b in spans for char in range(a, b)}
    if spans:
        starts = [0 if a == starts[0] else a for a in starts]
        missing = [char for char in range(min(b for _, b in spans), size) if char not in covered]
        for char in missing:
            ends = [char + 1 if b == char else b for b in ends]
    return Encoding(np.array(ids, np.uint32), np.array(starts, np.int64), np.array(ends, np.int64))


@pytest.fixture(scope="session")
def case_of(vocabularies: dict[str, Path]) -> Callable[[str], Case]:
    """Loads a case by name, once."""
    made: dict[str, Case] = {}

    def get(name: str) -> Case:
        if name not in made:
            tokenizer = load_tokenizer(str(vocabularies.get(name, name)))
            assert isinstance(tokenizer, HuggingFaceTokenizer)
            # The oracle is stripped in JSON, not by the code under test.
            config = json.loads(tokenizer.source.load().to_str())
            config["added_tokens"], config["post_processor"] = [], None
            made[name] = Case(tokenizer, Tokenizer.from_str(json.dumps(config)))
        return made[name]

    return get


@pytest.fixture(scope="session", params=["deepseek-v4", *MADE])
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    """Every tokenizer that ``tokenizers`` reads."""
    return case_of(request.param)


@pytest.fixture(scope="session", params=BYTE_LEVEL)
def byte_level(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    """Those that a fast reader can read."""
    return case_of(request.param)
