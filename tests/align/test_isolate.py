"""Isolating: nothing else shares an answer's chunks, where a pad can see to that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaseguard import align_prompt
from phaseguard.errors import InputError
from tests.align.helpers import PARAGRAPHS, V4, V41, official_ids, profile, with_strengths
from tests.align.test_contracts import CODES, conversations, documents, keys_in
from tests.align.words import WordTokenizer

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEY = "Unit 7 opens with PROVOCATIVE-8417."
RAG = "\n\n".join([*PARAGRAPHS[:3], KEY, *PARAGRAPHS[3:6], "What opens unit 7?"])


def spans(out: Any) -> list[Any]:
    return [span for passage in out.report.passages for span in passage.spans]


def window_words(text: str, answer: str, stride: int, *, overlap: bool) -> list[str]:
    """The tokens in an answer's window, counted from the text alone."""
    encoding = WordTokenizer().encode(text)
    tokens = [text[a:b] for a, b in zip(encoding.starts, encoding.ends, strict=True)]
    at = tokens.index(answer)
    first = (at // stride - overlap) * stride
    return tokens[max(0, first) : (at // stride + 1) * stride]


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("stride", [2, 4, 8])
def test_no_other_word_shares_the_window(stride: int, overlap: bool) -> None:
    chosen = profile("words", "plain", stride, overlap=overlap)
    for lead in range(stride):
        text = f"{'so ' * lead}one two three four\n\ncode A17\n\nfive six\n\nseven eight nine ten"
        out = align_prompt(
            text, key_passages=["code A17"], answer="A17", profile=chosen, tokenizer=WordTokenizer()
        )
        (span,) = spans(out)
        found = {word for word in window_words(out.prompt, "A17", stride, overlap=overlap) if word.isalnum()}
        assert found <= {"code", "A17"}
        assert span.strangers_after == 0
        given = window_words(text, "A17", stride, overlap=overlap)
        assert span.strangers_before == sum(word.isalnum() for word in given) - (1 + ("code" in given))
        assert out.report.tokens_added <= 2 * stride + 1
        assert out.restore() == text


def test_at_a_long_stride_one_stranger_is_not_worth_a_chunk_of_pads() -> None:
    chosen = profile("words", "plain", 16, overlap=False)
    for lead in range(16):
        text = f"{'so ' * lead}one two three four\n\ncode A17\n\nfive six\n\nseven eight nine ten"
        out = align_prompt(
            text, key_passages=["code A17"], answer="A17", profile=chosen, tokenizer=WordTokenizer()
        )
        (span,) = spans(out)
        assert span.strangers_after <= 1
        assert out.report.tokens_added <= 15 * (span.strangers_before - span.strangers_after)


@pytest.mark.parametrize("lead", range(4))
def test_a_short_passage_is_isolated_on_real_text(lead: int) -> None:
    out = align_prompt(" so" * lead + RAG, key_passages=["PROVOCATIVE-8417"])
    (span,) = spans(out)
    assert out.report.verified
    assert span.strangers_after == 0
    assert out.report.tokens_added <= 8
    assert out.report.isolation is not None
    assert (out.report.isolation.kind, out.report.provenance.kind) == ("on-device", "none")
    assert len(official_ids(out.prompt)) == out.report.tokens_after
    assert out.restore() == " so" * lead + RAG


def test_of_equally_cheap_ways_the_last_slot_is_taken() -> None:
    chosen = profile("words", "plain", 4, overlap=True)
    ties = 0
    for lead in range(4):
        text = "\n\n".join(["so"] * lead + ["one", "two", "three", "four", "code", "A17", "five", "six"])
        given: dict[str, Any] = {"key_passages": ["code\n\nA17"], "answer": "A17", "profile": chosen}
        given |= {"tokenizer": WordTokenizer(joined=True), "pads": ["pad\n\n"]}
        out = align_prompt(text, **given)
        phases = [align_prompt(text, strong={phase}, isolate=True, **given) for phase in range(4)]
        assert all(spans(other)[0].strangers_after == 0 for other in phases)
        assert [spans(other)[0].phase_after for other in phases] == [0, 1, 2, 3]
        tokens = [other.report.tokens_added for other in phases]
        assert out.report.tokens_added == min(tokens)
        if tokens[3] == min(tokens):
            assert spans(out)[0].phase_after == 3
            ties += tokens.count(tokens[3]) > 1
    assert ties


def test_a_record_that_fills_its_window_needs_nothing() -> None:
    long = (
        "The access code of the main vault in the north wing is PROVOCATIVE-8417 until the end of the year."
    )
    text = f"Something.\n\n{long}\n\nSomething else.\n\nWhat is the code?"
    out = align_prompt(text, key_passages=[long], answer="PROVOCATIVE-8417")
    assert out.prompt == text
    assert spans(out)[0].strangers_after == 0


def test_strangers_that_no_pad_can_move_are_counted() -> None:
    row = "| name | code |\n|---|---|\n| door | A-1 |\n| vault | PROVOCATIVE-8417 |\n| safe | B-2 |"
    messages = [{"role": "user", "content": "\n\n".join([PARAGRAPHS[0], row, *PARAGRAPHS[1:9]])}]
    for frozen in (0, 1):
        out = align_prompt(messages, key_passages=["PROVOCATIVE-8417"], frozen=frozen)
        (span,) = spans(out)
        assert span.strangers_after > 0
        assert any("share their chunks" in note for note in out.report.notes)
        assert row in out.prompt[0]["content"]
    assert out.prompt == messages


def test_phase_and_isolation_are_weighed_together() -> None:
    weak, strong = [0.90, 0.90, 0.90, 0.91], [0.2, 0.9, 0.9, 0.9]
    for means in (weak, strong):
        chosen = with_strengths(4, {"1": means}, overlap=True)
        for lead in range(4):
            text = " so" * lead + RAG
            alone = align_prompt(text, key_passages=[KEY], answer="PROVOCATIVE-8417", profile=chosen)
            both = align_prompt(
                text, key_passages=[KEY], answer="PROVOCATIVE-8417", profile=chosen, isolate=True
            )
            assert alone.report.isolation is None
            assert spans(alone)[0].strangers_after is None
            assert spans(both)[0].strangers_after == 0
            assert spans(both)[0].strength_after > 0.2
            assert both.report.provenance.kind == "stated"


def test_auto_isolates_only_where_no_phase_is_known() -> None:
    assert align_prompt(RAG, key_passages=[KEY]).report.isolation is not None
    assert align_prompt(RAG, key_passages=[KEY], strong={3}).report.isolation is None
    assert align_prompt(RAG, key_passages=[KEY], profile=V41).report.isolation is None
    assert align_prompt(RAG, key_passages=[KEY], isolate=False).prompt == RAG
    long = align_prompt(RAG, key_passages=[KEY], profile=profile(period=128))
    assert (long.report.isolation, long.prompt) == (None, RAG)
    assert any("too long to isolate" in note for note in long.report.notes)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"isolate": "yes"}, "True, False or 'auto'"),
        ({"isolate": 1}, "True, False or 'auto'"),
        ({"isolate": True, "profile": "llama-3"}, "no phase"),
        ({"isolate": True, "profile": profile(period=128)}, "strides up to 16"),
    ],
)
def test_what_cannot_be_isolated_is_refused(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        align_prompt(RAG, key_passages=[KEY], **arguments)


def test_an_unknown_kernel_counts_as_overlapping_and_the_report_says_so() -> None:
    known = align_prompt(RAG, key_passages=[KEY], profile=profile(overlap=True))
    unknown = align_prompt(RAG, key_passages=[KEY], profile=profile())
    assert known.prompt == unknown.prompt
    assert unknown.report.isolation is not None
    assert unknown.report.isolation.overlap
    assert "does not say" in unknown.report.isolation.detail


kernels = st.sampled_from([(2, True), (2, False), (4, True), (4, False), (8, True)])
strongs = st.none() | st.sets(st.integers(0, 1), min_size=1)


@given(
    documents(),
    kernels,
    strongs,
    st.sampled_from(["off", "safe"]),
    st.sampled_from(["auto", "visible", "invisible"]),
    st.booleans(),
    st.sampled_from(["deepseek-v4", "cl100k_base", "o200k_base"]),
)
@SETTINGS
def test_documents_are_proven_undone_and_stable(
    text: str, kernel: tuple[int, bool], strong: Any, level: str, pads: str, inside: bool, name: str
) -> None:
    keys = keys_in(text)
    if not keys:
        return
    chat = "plain" if name != "deepseek-v4" else "deepseek-v4"
    chosen = profile(name, chat, kernel[0], overlap=kernel[1], prefix_offset=1)
    options = {
        "key_passages": keys,
        "profile": chosen,
        "strong": strong,
        "level": level,
        "pads": pads,
        "inside": inside,
        "isolate": True,
    }
    out = align_prompt(text, **options)
    assert out.report.verified
    assert out.restore() == text
    assert align_prompt(text, **options) == out
    again = align_prompt(out.prompt, **options)
    assert again.prompt == out.prompt
    assert [s.strangers_after for s in spans(again)] == [s.strangers_after for s in spans(out)]


@given(documents(), st.sampled_from([(2, False), (4, True)]), st.integers(0, 12))
@SETTINGS
def test_a_budget_stays_idempotent(text: str, kernel: tuple[int, bool], budget: int) -> None:
    keys = keys_in(text)
    if not keys:
        return
    for pads in ("auto", "visible"):
        chosen = profile("deepseek-v4", "plain", kernel[0], overlap=kernel[1])
        options = {"key_passages": keys, "profile": chosen, "max_added_tokens": budget, "pads": pads}
        out = align_prompt(text, **options)
        assert out.report.tokens_added <= budget
        assert align_prompt(out.prompt, **options).prompt == out.prompt


@given(conversations(), st.sampled_from([None, {3}]), st.booleans())
@SETTINGS
def test_earlier_messages_stay_byte_identical(
    messages: list[dict[str, Any]], strong: set[int] | None, by_query: bool
) -> None:
    keys = None if by_query else keys_in(messages[:1] + [m for m in messages if m["role"] == "user"][:1])
    if keys == []:
        return

    def align(part: list[dict[str, Any]]) -> Any:
        return align_prompt(part, key_passages=keys, profile=V4, strong=strong, isolate=True)

    whole = align(messages)
    assert whole.report.verified
    assert whole.restore() == messages
    for before, after in zip(messages, whole.prompt, strict=True):
        if before["role"] == "assistant":
            assert after == before
    for end in [i for i, m in enumerate(messages) if m["role"] in ("user", "tool")]:
        assert align(messages[: end + 1]).prompt == whole.prompt[: end + 1]
    assert align(whole.prompt).prompt == whole.prompt


def test_the_property_tests_can_fail() -> None:
    """One more word in front puts a stranger into the window, and the count above would see it."""
    out = align_prompt(RAG, key_passages=[KEY], profile=profile(overlap=True))
    counts = [
        spans(align_prompt(" so" * lead + out.prompt, key_passages=[KEY], max_added_tokens=0))[0]
        for lead in range(4)
    ]
    assert {span.strangers_after for span in counts} != {0}
    assert CODES


def test_a_site_that_opens_the_next_message_is_out_of_sight() -> None:
    messages = [
        {"role": "user", "content": "The code is Kx-17."},
        {"role": "assistant", "content": "Kx-17"},
        {"role": "user", "content": "The code is Kx-17.\n\nIs it?"},
    ]
    out = align_prompt(messages, key_passages=["Kx-17"])
    assert out.report.verified
    assert out.prompt[1] == messages[1]
    assert out.restore() == messages


@pytest.mark.parametrize("lead", range(4))
def test_pads_that_open_a_message_are_no_strangers(lead: int) -> None:
    """A special token stands in front of them on the same line."""
    text = f"Unit 7 opens with PROVOCATIVE-8417 {'so ' * lead}.\n\n{PARAGRAPHS[1]}"
    given: dict[str, Any] = {"key_passages": ["Unit 7 opens"], "answer": "7", "pads": "visible"}
    out = align_prompt(text, **given)
    assert out.report.pads
    assert spans(out)[0].strangers_after == 0
    assert align_prompt(out.prompt, **given).prompt == out.prompt
