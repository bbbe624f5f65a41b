"""Every way of reading gives the ids and offsets of whole-text encoding, for every kind of tokenizer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaseguard.tokens import Encoding, load_tokenizer
from phaseguard.tokens.fast import SAMPLES
from phaseguard.tokens.huggingface import load_fast_reader
from phaseguard.tokens.plain import PlainReader

FRAGMENTS = [
    *(
        "The access code is ",
        "PROVOCATIVE-8417",
        ".  ",
        "they'll",
        "'S",
        " the",
        "DON'T",
        "\n\n",
        "\n",
        "\r\n",
    ),
    *(
        "def f(x):\n",
        "\t",
        "    ",
        "  ",
        " = =",
        "==" * 9,
        "...",
        "-\n",
        "\n/",
        "!\n/x",
        "//",
        "# ",
        "0x1F",
        "2024-12",
    ),
    *(
        '{"a": [1, 2.5e-7, null]}',
        '\\u00e9\\n"',
        "},\n",
        "漢字",
        "かな。",
        "中文，",
        "한국어",
        "　",
        "１２３",
        "々",
    ),
    *("🎈", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "❤️", "𒀀", "é", "e\u0301", "a\u0315\u0300", "\u0301", "क्षि", "กำ", "עִברית"),
    *("\x00", "\x1b[0m", "\x7f", "\x85", "\u200b", "\ufeff", "\u2028", "\u180e", "\u00ad", "\x1c", "\ufffd"),
    *(
        "<think>",
        "</think>",
        "<｜User｜>",
        "<|im_end|>",
        "<s>",
        "<unk>",
        "<0x41>",
        "▁",
        "Ġ",
        "\u2126",
        "ﬁ",
        "İ",
        "ß",
    ),
    *(" " * 60, "\n" * 5, "\n \n", " \n\t\n", "\u3000\n", "a" * 70, "9" * 10),
]
TEXT = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=30).map("".join)
SETTINGS = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)


def same(got: Encoding | None, want: Encoding) -> bool:
    return (
        got is not None
        and np.array_equal(got.ids, want.ids)
        and np.array_equal(got.starts, want.starts)
        and np.array_equal(got.ends, want.ends)
    )


@given(text=TEXT)
@SETTINGS
def test_slow_reader(case, text):
    assert same(case.tokenizer.slow.encode(text), case.expected(text))


@given(text=TEXT)
@SETTINGS
def test_pieces(case, text):
    cutting = PlainReader(case.tokenizer.slow.full, cut_from=1, piece_chars=1)
    cutting.__dict__["composes"] = case.tokenizer.composes
    assert same(cutting.encode(text), case.expected(text))


@pytest.fixture(scope="module")
def fast(byte_level):
    reader = load_fast_reader(byte_level.tokenizer.slow)
    assert reader is not None
    return reader


@given(texts=st.lists(TEXT, min_size=1, max_size=4))
@SETTINGS
def test_fast_reader(byte_level, fast, texts):
    want = [byte_level.expected(text) for text in texts]
    for got, ids, expected, text in zip(
        fast.encode_batch(texts), fast.encode_ids(texts), want, texts, strict=True
    ):
        if got is None:
            # Only where a normalizer changes the text may the reader give up.
            assert byte_level.oracle.normalizer.normalize_str(text) != text
            continue
        assert same(got, expected), text
        assert np.array_equal(ids, expected.ids)


@given(text=TEXT)
@SETTINGS
def test_tokens_partition_the_text(case, text):
    encoding = case.tokenizer.encode(text)
    assert encoding.ids.dtype == np.uint32
    assert encoding.starts.dtype == encoding.ends.dtype == np.int64
    if len(encoding):
        assert encoding.starts[0] == 0
        assert encoding.ends.max() == len(text)
        reach = np.maximum.accumulate(encoding.ends)
        assert (encoding.starts[1:] <= reach[:-1]).all()


@pytest.mark.parametrize("text", SAMPLES)
def test_sample_texts(case, text):
    assert same(case.tokenizer.encode(text), case.expected(text))


@given(texts=st.lists(TEXT, max_size=4))
@SETTINGS
def test_batches(case, texts):
    many = case.tokenizer.encode_batch(texts)
    ids = case.tokenizer.encode_ids(texts)
    assert len(many) == len(ids) == len(texts)
    for text, one, only_ids in zip(texts, many, ids, strict=True):
        assert same(one, case.expected(text))
        assert np.array_equal(only_ids, one.ids)
        assert only_ids.dtype == np.uint32


def test_long_text_in_pieces(case_of):
    found = case_of("deepseek-v4")
    text = "\n\n".join(SAMPLES) * 20
    assert len(text) > 65_536
    assert found.tokenizer.slow.composes
    assert same(found.tokenizer.slow.encode(text), found.expected(text))


def test_comparison_is_seen_to_fail(case_of):
    want = case_of("deepseek-v4").expected("one two")
    wrong = Encoding(want.ids, want.starts, want.ends + np.array([0, 1]))
    assert not same(wrong, want)
    assert not same(None, want)


class Tiktoken:
    """Offsets from token bytes in pure Python, ids from the list interface."""

    def __init__(self, name: str) -> None:
        import tiktoken

        self.tokenizer = load_tokenizer(name)
        self.raw = tiktoken.get_encoding(name)

    def expected(self, text: str) -> Encoding:
        ids = self.raw.encode_ordinary(text)
        owner = [at for at, char in enumerate(text) for _ in char.encode()]
        starts, ends, byte = [], [], 0
        for token in ids:
            size = len(self.raw.decode_single_token_bytes(token))
            starts.append(owner[byte])
            ends.append(owner[byte + size - 1] + 1)
            byte += size
        return Encoding(np.array(ids, np.uint32), np.array(starts, np.int64), np.array(ends, np.int64))


@pytest.fixture(scope="module", params=["cl100k_base", "o200k_base", "o200k_harmony"])
def encoding(request):
    return Tiktoken(request.param)


@given(texts=st.lists(TEXT, max_size=3))
@SETTINGS
def test_tiktoken(encoding, texts):
    for text, got, ids in zip(
        texts, encoding.tokenizer.encode_batch(texts), encoding.tokenizer.encode_ids(texts), strict=True
    ):
        assert same(got, encoding.expected(text))
        assert same(encoding.tokenizer.encode(text), encoding.expected(text))
        assert np.array_equal(ids, got.ids)
