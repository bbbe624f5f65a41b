"""Cut points: certain where they are offered, refused where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.tokens import composes, cut_points, load_tokenizer
from phaseguard.tokens.plain import PlainReader
from phaseguard.tokens.segments import check_composition, composition_sample, pieces

CUTTABLE = {"deepseek-v4", "llama3-like", "qwen-like", "o200k-like", "nfkc", "wordpiece", "lowercase"}
TEXT = st.lists(
    st.sampled_from(["a", "B1", " ", "\n", "\r\n", "/", "\n\n", "é", "\u3000", "."]), max_size=40
).map("".join)


@given(TEXT)
def test_cut_points_stand_behind_newlines_and_before_visible_characters(text):
    want = [
        at
        for at in range(1, len(text))
        if text[at - 1] == "\n" and not text[at].isspace() and text[at] != "/"
    ]
    assert cut_points(text).tolist() == want
    assert cut_points(text).dtype == np.int64


@given(TEXT, st.integers(1, 20))
def test_pieces_join_to_the_text_and_end_at_cut_points(text, size):
    parts = pieces(text, size)
    assert "".join(parts) == text
    assert set(np.cumsum([len(part) for part in parts[:-1]]).tolist()) <= set(cut_points(text).tolist())
    assert all(len(part) >= size for part in parts[:-1])


def test_which_tokenizers_may_be_cut(case, vocabularies):
    name = next(
        (name for name, path in vocabularies.items() if str(path) == case.tokenizer.name), "deepseek-v4"
    )
    assert composes(case.tokenizer) is (name in CUTTABLE)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "o200k_harmony"])
def test_tiktoken_may_be_cut(name):
    assert composes(load_tokenizer(name))


def test_an_uncuttable_tokenizer_reads_the_whole_text(case_of):
    found = case_of("gpt2-like")
    text = "one\n\ntwo\n\nthree"
    cut = np.concatenate([found.oracle.encode(part).ids for part in pieces(text, 1)])
    assert not np.array_equal(cut, found.expected(text).ids)
    reader = PlainReader(found.tokenizer.slow.full, cut_from=1, piece_chars=1)
    assert np.array_equal(reader.encode(text).ids, found.expected(text).ids)


def test_slash_is_the_exception_of_o200k():
    tokenizer = load_tokenizer("o200k_base")
    whole, left, right = tokenizer.encode_ids(["a!\n/b", "a!\n", "/b"])
    assert not np.array_equal(np.concatenate([left, right]), whole)
    assert not len(cut_points("a!\n/b"))


def test_check_is_seen_to_fail(case_of):
    honest = case_of("deepseek-v4").tokenizer.encode_ids

    def wrong_in_one_piece(texts):
        ids = honest(texts)
        ids[len(ids) // 2] = ids[len(ids) // 2] + 1
        return ids

    assert check_composition(honest)
    assert not check_composition(wrong_in_one_piece)


def test_other_objects_are_checked_by_their_ids(case_of):
    class Mine:
        def __init__(self, inner):
            self.encode_ids = inner.encode_ids

    class Unhashable(Mine):
        __hash__ = None

    assert composes(Mine(case_of("deepseek-v4").tokenizer))
    assert composes(Unhashable(case_of("deepseek-v4").tokenizer))
    assert not composes(Mine(case_of("gpt2-like").tokenizer))


def test_sample_has_cuts_enough():
    assert len(cut_points(composition_sample())) > 500
