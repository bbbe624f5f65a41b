"""The numpy offsets against the same in pure Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import TokenizerError
from phaseguard.tokens.offsets import (
    UNKNOWN,
    ByteTable,
    byte_alphabet,
    char_spans,
    fill_gaps,
    split_encoding,
    unusable_text,
)


@given(st.text(max_size=30), st.data())
def test_char_spans(text, data):
    size = len(text.encode())
    cuts = data.draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()
    stops = sorted(cuts | ({size} if size else set()))
    owner = [at for at, char in enumerate(text) for _ in char.encode()]
    begins = [0, *stops][: len(stops)]
    starts, ends = char_spans(np.array(stops, np.int64), text)
    assert starts.dtype == ends.dtype == np.int64
    assert starts.tolist() == [owner[begin] for begin in begins]
    assert ends.tolist() == [owner[stop - 1] + 1 for stop in stops]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.integers(0, 3))
def test_fill_gaps_leaves_no_character_out(steps, tail):
    starts, ends, at = [], [], 0
    for gap, size in steps:
        starts.append(at + gap)
        ends.append(at + gap + size)
        at += gap + size
    total = at + tail
    first, last = np.array(starts, np.int64), np.array(ends, np.int64)
    filled = fill_gaps(first, last, total)
    assert (filled >= last).all()
    covered = {char for a, b in zip(first.tolist(), filled.tolist(), strict=True) for char in range(a, b)}
    assert covered == (set(range(total)) if steps else set())


def test_byte_alphabet_is_a_bijection():
    assert sorted(byte_alphabet().values()) == list(range(256))


def test_byte_table():
    table = ByteTable({"Ġa": 1, "<s>": 0, "▁x": 3, "Ã©": 6})
    assert table.lengths.tolist() == [3, 2, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 2, UNKNOWN]
    assert table.spell(np.array([6, 1, 0])) == "é a<s>".encode()
    assert table.spell(np.array([], np.int64)) == b""
    assert ByteTable({}).lengths.tolist() == [UNKNOWN, UNKNOWN]


def test_split_encoding_counts_from_each_text():
    parts = split_encoding(
        np.array([5, 6, 7], np.uint32), np.array([2, 3, 5]), np.array([0, 1, 1, 3]), ["é", "", "xé"]
    )
    assert [part.starts.tolist() for part in parts] == [[0], [], [0, 1]]
    assert [part.ends.tolist() for part in parts] == [[1], [], [1, 2]]


def test_unusable_text():
    error = unusable_text(["fine", "ab\udfff"], UnicodeError())
    assert isinstance(error, TokenizerError)
    assert "Text 1 has a lone surrogate U+DFFF at character 2" in str(error)
    assert 'errors="replace"' in str(error)
    assert "bytes, not str" in str(unusable_text([b"x"], TypeError()))
    other = TypeError("something else")
    assert unusable_text(["fine"], other) is other


def test_advice_for_surrogates_works():
    assert "a\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "a😀"
    with pytest.raises(UnicodeEncodeError):
        "a\ud83d".encode()
    assert "a\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "a\ufffd"
