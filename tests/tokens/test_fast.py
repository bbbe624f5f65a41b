"""The fast reader is used when it pays, and never when it is wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.tokens import huggingface, load_tokenizer
from phaseguard.tokens.fast import SAMPLES, FastReader, load_fast_backend
from phaseguard.tokens.huggingface import HuggingFaceTokenizer


class Wrong:
    """A library that spoils the ids of the real one."""

    def __init__(self, backend, spoil):
        self.backend, self.spoil = backend, spoil

    def encode_batch_flat(self, inputs):
        raw, bounds = self.backend.encode_batch_flat(inputs)
        return self.spoil(np.frombuffer(raw, np.uint32).copy()).tobytes(), bounds


def swap_equal_lengths(ids):
    """Wrong ids whose byte lengths still add up: only comparing ids finds them."""
    for at in range(len(ids) - 1):
        if ids[at] != ids[at + 1]:
            ids[[at, at + 1]] = ids[[at + 1, at]]
            break
    return ids


def fresh(case, fast="auto"):
    return HuggingFaceTokenizer(case.tokenizer.source, fast=fast)


@pytest.fixture
def spoiled(monkeypatch):
    def install(spoil):
        monkeypatch.setattr(
            huggingface, "load_fast_backend", lambda text: Wrong(load_fast_backend(text), spoil)
        )

    return install


@pytest.mark.parametrize("name", ["deepseek-v4", "llama3-like"])
def test_right_reader_is_accepted(case_of, name):
    tokenizer = fresh(case_of(name))
    assert tokenizer.reader == "tokenizers"
    assert tokenizer.warm_up() == tokenizer.reader == "fastokens"


def test_wrong_ids_are_rejected_at_loading(case_of, spoiled):
    spoiled(swap_equal_lengths)
    tokenizer = fresh(case_of("llama3-like"))
    assert tokenizer.warm_up() == "tokenizers"
    text = "The access code is 8417.\n"
    assert np.array_equal(tokenizer.encode(text).ids, case_of("llama3-like").expected(text).ids)


def test_wrong_length_falls_back_for_that_text_alone(case_of):
    found = case_of("llama3-like")
    vocabulary = found.tokenizer.slow.plain.get_vocab(with_added_tokens=False)
    real = load_fast_backend(found.tokenizer.slow.plain.to_str())
    poison = found.oracle.encode("POISON").ids[0]

    def spoil(ids):
        ids[ids == poison] = vocabulary["a"] if vocabulary["a"] != poison else vocabulary["the"]
        return ids

    longer = next(at for spelling, at in vocabulary.items() if len(spelling) == 7 and spelling.isascii())

    def lengthen(ids):
        ids[ids == poison] = longer
        return ids

    reader = FastReader(Wrong(real, lengthen), vocabulary, normalizes=False)
    texts = ["fine", "POISON", "fine too"]
    assert [one is None for one in reader.encode_batch(texts)] == [False, True, False]
    assert [one is None for one in reader.encode_ids(texts)] == [False, True, False]
    tokenizer = fresh(found)
    tokenizer.warm_up()
    tokenizer._fast = reader
    for text, one, ids in zip(texts, tokenizer.encode_batch(texts), tokenizer.encode_ids(texts), strict=True):
        assert np.array_equal(one.ids, found.expected(text).ids)
        assert np.array_equal(ids, one.ids)


def test_unknown_id_is_no_answer(case_of):
    found = case_of("llama3-like")
    vocabulary = found.tokenizer.slow.plain.get_vocab(with_added_tokens=False)
    real = load_fast_backend(found.tokenizer.slow.plain.to_str())
    reader = FastReader(Wrong(real, lambda ids: ids + 10_000_000), vocabulary, normalizes=False)
    assert reader.encode_batch(["one"]) == [None]


def test_reader_that_gives_up_is_no_answer(case_of):
    class Limited:
        def encode_batch_flat(self, inputs):
            raise ValueError("match limit exceeded")

    found = case_of("llama3-like")
    vocabulary = found.tokenizer.slow.plain.get_vocab(with_added_tokens=False)
    reader = FastReader(Limited(), vocabulary, normalizes=False)
    assert reader.encode_batch(["one", ""]) == [None, None] or reader.encode_batch(["one"]) == [None]
    tokenizer = fresh(found)
    tokenizer.warm_up()
    tokenizer._fast = reader
    assert np.array_equal(tokenizer.encode("one two").ids, found.expected("one two").ids)


def test_reordered_marks_are_no_answer(case_of):
    # NFC reorders the marks, so that the bytes have another order but the same number.
    found = case_of("qwen-like")
    reader = huggingface.load_fast_reader(found.tokenizer.slow)
    text = "q\u0315\u0300q"
    assert len(found.oracle.normalizer.normalize_str(text).encode()) == len(text.encode())
    assert reader.encode_batch([text, "é"])[0] is None


def test_without_the_library(case_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastokens", None)
    tokenizer = fresh(case_of("llama3-like"), fast=True)
    assert tokenizer.warm_up() == "tokenizers"
    assert len(tokenizer.encode("one two"))


def test_loading_is_bought_when_reading_has_cost_as_much(case_of, monkeypatch):
    monkeypatch.setattr(huggingface, "FAST_AFTER_CHARS", 100)
    tokenizer = fresh(case_of("llama3-like"))
    tokenizer.encode("x" * 60)
    tokenizer.encode_ids(["y" * 20, "z" * 20])
    assert tokenizer.reader == "tokenizers"
    tokenizer.encode("x")
    assert tokenizer.reader == "fastokens"


def test_policies(case_of, monkeypatch):
    monkeypatch.setattr(huggingface, "FAST_AFTER_CHARS", 0)
    found = case_of("llama3-like")
    never = load_tokenizer(found.tokenizer.name, fast=False)
    never.encode("one two")
    assert never.warm_up() == "tokenizers"
    assert load_tokenizer(found.tokenizer.name, fast=False) is never
    at_once = load_tokenizer(found.tokenizer.name, fast=True)
    assert at_once.reader == "fastokens"
    assert load_tokenizer(found.tokenizer.name) is at_once
    with pytest.raises(InputError, match="'auto', True or False"):
        load_tokenizer("deepseek-v4", fast="yes")


def test_only_byte_level_vocabularies_are_tried(case_of, monkeypatch):
    monkeypatch.setattr(huggingface, "load_fast_backend", lambda text: pytest.fail("was tried"))
    for name in ("metaspace", "wordpiece", "gpt2-prefix", "lowercase"):
        assert fresh(case_of(name)).warm_up() == "tokenizers"


def test_broken_vocabulary_is_not_read():
    assert load_fast_backend("{}") is None


def test_sample_holds_what_it_should():
    everything = "".join(SAMPLES)
    for needed in ("<think>", "<｜User｜>", "  ", "\x00", "\u0301", "🎈", "漢", '{"', "\r\n", "\t"):
        assert needed in everything


def test_what_the_library_cannot_load_stays_with_tokenizers(case_of):
    # fastokens 0.3 has no NFKC.
    found = case_of("nfkc")
    tokenizer = fresh(found)
    assert tokenizer.warm_up() == "tokenizers"
    assert np.array_equal(tokenizer.encode("ﬁne").ids, found.expected("ﬁne").ids)
