"""The on-device models' words as text: a tokenizer like any other, on which align works as on any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard import PhaseProfile, align_prompt
from phaseguard.errors import TokenizerError
from phaseguard.lab.tasks import PAD, VOCABULARY
from phaseguard.lab.words import WordTokenizer, write
from phaseguard.normalize import normalize
from phaseguard.tokens import Tokenizer

TOKENIZER = WordTokenizer()
PROFILE = PhaseProfile(
    name="lab", tokenizer="phaseguard-lab", period=4, provenance={"kind": "stated", "source": "a test"}
)


def test_it_is_a_tokenizer() -> None:
    assert isinstance(TOKENIZER, Tokenizer)
    assert TOKENIZER.special_id("<pad>") is None


@given(st.lists(st.integers(0, VOCABULARY - 1), max_size=60))
def test_ids_round_trip(ids: list[int]) -> None:
    text = write(ids)
    encoding = TOKENIZER.encode(text)
    assert encoding.ids.tolist() == ids
    assert TOKENIZER.encode_ids([text])[0].tolist() == ids
    assert TOKENIZER.encode(TOKENIZER.decode(encoding.ids)).ids.tolist() == ids


@given(st.text(max_size=40).filter(lambda text: text.isascii() or "\ud800" not in text))
def test_tokens_partition_any_text(text: str) -> None:
    encoding = TOKENIZER.encode(text)
    assert np.array_equal(encoding.starts[1:], encoding.ends[:-1])
    assert (encoding.starts[0], encoding.ends[-1]) == (0, len(text)) if text else len(encoding) == 0


@given(st.lists(st.integers(0, PAD - 1), min_size=3, max_size=40), st.integers(0, 7))
def test_blank_lines_in_front_are_tokens_that_normalizing_removes(ids: list[int], lines: int) -> None:
    text = write(ids)
    assert len(TOKENIZER.encode("\n" * lines + text)) == lines + len(ids)
    assert normalize("\n" * lines + text).text == text


@pytest.mark.parametrize("phase", range(4))
def test_align_brings_a_word_to_any_phase(phase: int) -> None:
    ids = list(range(0, 250, 5))
    out = align_prompt(
        write(ids), key_passages=[write([105]).strip()], profile=PROFILE, tokenizer=TOKENIZER, strong=[phase]
    )
    assert out.report.verified
    found = TOKENIZER.encode(out.prompt).ids.tolist()
    assert [i for i in found if i != PAD] == ids
    assert found.index(105) % 4 == phase


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TokenizerError, match="surrogate"):
        TOKENIZER.encode("\ud800")
    with pytest.raises(TokenizerError, match="0 to 288"):
        write([VOCABULARY])
