"""A tokenizer given as an object reads the request in place of the one that the profile names."""

from __future__ import annotations

import pytest

from phaseguard import align_prompt, inspect_prompt, load_tokenizer
from phaseguard.errors import TokenizerError
from tests.align.helpers import profile
from tests.align.words import WordTokenizer

TEXT = "First things first.\n\nThe code is A17.\n\nSecond things.\n\nWhich code?"


@pytest.mark.parametrize("strong", range(4))
def test_a_tokenizer_object_reads_the_request(strong: int) -> None:
    chosen = profile("no such tokenizer", "plain")
    out = align_prompt(TEXT, key_passages=["A17"], profile=chosen, strong={strong}, tokenizer=WordTokenizer())
    (span,) = out.report.passages[0].spans
    assert out.report.verified
    assert out.report.tokenizer == "words"
    assert (span.tokens, span.index_before, span.phase_after) == (1, 14, strong)
    tokens = WordTokenizer().encode(out.prompt)
    assert out.prompt[tokens.starts[span.index_after] : tokens.ends[span.index_after]] == "A17"
    assert len(tokens) == out.report.tokens_after
    seen = inspect_prompt(TEXT, key_passages=["A17"], profile=chosen, tokenizer=WordTokenizer())
    assert (seen.report.tokenizer, seen.request.tokens) == ("words", len(WordTokenizer().encode(TEXT)))


def test_a_tokenizer_by_name_or_as_an_object_is_one() -> None:
    chosen = profile("deepseek-v4", "plain")
    by_name = align_prompt(TEXT, key_passages=["A17"], profile=chosen, strong={1}, tokenizer="o200k_base")
    loaded = load_tokenizer("o200k_base")
    by_object = align_prompt(TEXT, key_passages=["A17"], profile=chosen, strong={1}, tokenizer=loaded)
    assert by_name == by_object
    assert by_name.report.tokenizer == "o200k_base"


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(TokenizerError, match="not a tokenizer"):
        align_prompt(TEXT, key_passages=["A17"], strong={1}, tokenizer=object())
