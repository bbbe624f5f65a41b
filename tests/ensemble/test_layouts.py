"""Layouts: each phase at most once, the same content, proven, undone, with a long leading text in common."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaseguard import align_prompt
from phaseguard.ensemble import LayoutSet, make_layouts
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.text import apply_edits, invert_edits
from tests.align.helpers import PARAGRAPHS, decoded_at, official_ids, profile, with_strengths
from tests.align.test_contracts import conversations, documents, keys_in

SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEY = "The access code of the vault is PROVOCATIVE-8417."
RAG = "\n\n".join([*PARAGRAPHS[:6], KEY, *PARAGRAPHS[6:12], "What is the access code of the vault?"])
STRENGTHS = with_strengths(4, {"1": [0.9, 0.5, 0.7, 0.6], "3": [0.4, 0.9, 0.5, 0.8]})


def spans(layout: Any) -> list[Any]:
    return [span for passage in layout.aligned.report.passages for span in passage.spans]


def texts(prompt: Any) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    return [message["content"] for message in prompt]


def without_pads(layout: Any) -> list[str]:
    """Its texts, the pads undone: what normalizing left."""
    out = texts(layout.prompt)
    for key, (_, pads) in layout.aligned.edits.items():
        assert all(not edit.replacement.replace(".", "").replace("…", "").strip(" \t\n·") for edit in pads)
        out[key.message] = apply_edits(out[key.message], invert_edits(pads))
    return out


def leading(several: Sequence[Sequence[Any]]) -> int:
    """How many items at their start are the same in all."""
    return sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(*several, strict=False)))


def check(made: LayoutSet, prompt: Any) -> None:
    """Raise AssertionError when the layouts are not what they say."""
    assert [layout.number for layout in made.layouts] == list(range(len(made)))
    assert len(made) <= made.period
    assert len({str(layout.prompt) for layout in made.layouts}) == len(made)
    contents = [without_pads(layout) for layout in made.layouts]
    assert all(content == contents[0] for content in contents)
    requests = [official_ids(layout.prompt) for layout in made.layouts]
    assert made.shared == leading(requests)
    for layout, ids in zip(made.layouts, requests, strict=True):
        assert layout.aligned.report.verified
        assert layout.restore() == prompt
        assert layout.tokens == len(ids)
        for span in spans(layout):
            if span.index_after is not None:
                assert span.text in decoded_at(ids, span.index_after, span.tokens)
    _check_phases(made)


def _check_phases(made: LayoutSet) -> None:
    """A span in the shared text stands at one index in all layouts; any other never twice at one phase."""
    for same in zip(*(spans(layout) for layout in made.layouts), strict=True):
        indices = [span.index_after for span in same]
        if indices[0] is None or max(indices) < made.shared:
            assert len(set(indices)) == 1
            continue
        phases = [span.phase_after for span in same]
        assert len(set(phases)) == len(phases)


evidences = st.sampled_from(
    [
        {},
        {"strong": {3}},
        {"strong": {0, 1}},
        {"strong": {2, 3}, "isolate": True},
        {"profile": STRENGTHS},
        {"profile": STRENGTHS, "isolate": True},
    ]
)


@given(documents(), evidences, st.sampled_from(["off", "safe", "full"]), st.sampled_from(["auto", "visible"]))
@SETTINGS
def test_documents(text: str, evidence: dict[str, Any], level: str, pads: str) -> None:
    keys = keys_in(text)
    options = {"key_passages": keys, "level": level, "pads": pads, **evidence}
    made = make_layouts(text, **options)
    check(made, text)
    assert made == make_layouts(text, **options)
    first = align_prompt(text, **options)
    assert made.layouts[0].aligned == first


@given(conversations(), evidences, st.integers(0, 2))
@SETTINGS
def test_conversations(messages: list[dict[str, Any]], evidence: dict[str, Any], frozen: int) -> None:
    kept = copy.deepcopy(messages)
    made = make_layouts(messages, key_passages=keys_in(messages), frozen=frozen, **evidence)
    assert messages == kept
    check(made, messages)
    for layout in made.layouts:
        for number, (before, after) in enumerate(zip(messages, layout.prompt, strict=True)):
            if before["role"] == "assistant" or number < frozen:
                assert after == before


@given(documents(), st.sampled_from(["cl100k_base", "o200k_base"]), st.sampled_from([2, 4, 8]))
@SETTINGS
def test_other_tokenizers_and_periods(text: str, name: str, period: int) -> None:
    chosen = profile(name, "plain", period, prefix_offset=1)
    made = make_layouts(text, key_passages=keys_in(text), profile=chosen, most=8)
    for layout in made.layouts:
        assert layout.aligned.report.verified
        assert layout.restore() == text
        for span in spans(layout):
            assert span.index_after % period == span.phase_after
    for same in zip(*(spans(layout) for layout in made.layouts), strict=True):
        phases = [span.phase_after for span in same]
        assert len(set(phases)) in (1, len(phases))


@pytest.mark.parametrize("pads", ["auto", "invisible", "visible"])
@pytest.mark.parametrize("evidence", [{}, {"strong": {1}}, {"profile": STRENGTHS}])
@pytest.mark.parametrize("lead", range(4))
def test_every_phase_is_visited_and_all_in_front_of_the_record_is_shared(
    lead: int, evidence: dict[str, Any], pads: str
) -> None:
    prompt = " so" * lead + RAG
    made = make_layouts(prompt, key_passages=[KEY], pads=pads, **evidence)
    check(made, prompt)
    assert {layout.phase for layout in made.layouts} == {0, 1, 2, 3}
    front = prompt[: prompt.index(KEY)].rstrip()
    assert leading([layout.prompt for layout in made.layouts]) >= len(front)
    for layout in made.layouts:
        assert layout.prompt[len(front) :].lstrip(" \t\n.…·").startswith(KEY)


def test_the_strongest_come_first() -> None:
    made = make_layouts(RAG, key_passages=[KEY], answer="vault", profile=STRENGTHS)
    assert [layout.phase for layout in made.layouts] == [0, 2, 3, 1]
    assert [round(layout.strength, 6) for layout in made.layouts] == [0.9, 0.7, 0.6, 0.5]
    assert made.strong == {0}
    assert [spans(layout)[0].strength_after for layout in made.layouts] == [0.9, 0.7, 0.6, 0.5]
    longer = make_layouts(RAG, key_passages=[KEY], answer="PROVOCATIVE-8417", profile=STRENGTHS)
    assert [layout.phase for layout in longer.layouts] == [1, 3, 2, 0]
    stated = make_layouts(RAG, key_passages=[KEY], strong={0, 3})
    assert {layout.phase for layout in stated.layouts[:2]} == stated.strong == {0, 3}
    assert {layout.strength for layout in stated.layouts} == {None}


def test_fewer_layouts_are_the_strongest_ones() -> None:
    every = make_layouts(RAG, key_passages=[KEY], profile=STRENGTHS)
    for most in (1, 2, 3):
        some = make_layouts(RAG, key_passages=[KEY], profile=STRENGTHS, most=most)
        assert some.layouts == every.layouts[:most]
    assert len(make_layouts(RAG, key_passages=[KEY], profile="deepseek-v4.1-flash")) == 2


def test_without_strengths_the_first_is_isolated_and_nothing_is_claimed() -> None:
    short = "\n\n".join([*PARAGRAPHS[:3], "Code: A-17.", *PARAGRAPHS[3:6], "Which code?"])
    made = make_layouts(short, key_passages=["Code: A-17."])
    first = made.layouts[0]
    assert spans(first)[0].strangers_after == 0
    assert spans(first)[0].strangers_before > 0
    assert made.strong == frozenset()
    assert {layout.strength for layout in made.layouts} == {None}
    assert {layout.aligned.report.provenance.kind for layout in made.layouts} == {"none"}
    assert {layout.phase for layout in made.layouts} == {0, 1, 2, 3}


def test_several_spans_move_together() -> None:
    two = "\n\n".join([*PARAGRAPHS[:3], KEY, *PARAGRAPHS[3:6], "The spare code is QX-90210.", "Which?"])
    made = make_layouts(two, key_passages=[KEY, "QX-90210"], strong={2})
    check(made, two)
    assert len(made) == 4
    assert all(span.phase_after == 2 for span in spans(made.layouts[0]))


@pytest.mark.parametrize("keys", [[], None])
def test_without_key_passages_everything_behind_the_first_site_is_shifted(keys: Any) -> None:
    text = "\n\n".join(PARAGRAPHS[:4])
    made = make_layouts(text, key_passages=keys, query=None)
    check(made, text)
    assert [layout.shift for layout in made.layouts] == [0, 1, 2, 3]
    assert [layout.tokens - made.layouts[0].tokens for layout in made.layouts] == [0, 1, 2, 3]
    assert {layout.phase for layout in made.layouts} == {None}
    assert all(layout.prompt.endswith(text) for layout in made.layouts)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    later = make_layouts(messages, key_passages=keys, frozen=1)
    check(later, messages)
    assert len(later) == 4
    assert all(layout.prompt[0] is messages[0] for layout in later.layouts)


def test_payloads_keep_their_type() -> None:
    payload = {"model": "m", "messages": [{"role": "user", "content": RAG}], "temperature": 0}
    made = make_layouts(payload, key_passages=[KEY], strong={1})
    assert [set(layout.prompt) for layout in made.layouts] == [set(payload)] * 4
    assert all(layout.restore() == payload for layout in made.layouts)


@pytest.mark.parametrize("name", ["llama-3", "deepseek-v3"])
def test_a_model_without_phase_has_one_layout(name: str) -> None:
    made = make_layouts(RAG, key_passages=[KEY], profile=name)
    assert (len(made), made.shared, made.layouts[0].prompt) == (1, None, RAG)


def test_what_cannot_be_moved_has_one_layout() -> None:
    messages = [{"role": "user", "content": RAG}, {"role": "assistant", "content": "It is 5."}]
    made = make_layouts(messages, key_passages=[KEY], frozen=1)
    assert (len(made), made.layouts[0].prompt) == (1, messages)
    moved = make_layouts(messages, key_passages=["It is 5."])
    check(moved, messages)
    assert len(moved) == 4
    assert all(layout.prompt[1] == messages[1] for layout in moved.layouts)


@pytest.mark.parametrize("strong", [None, {1, 2}])
def test_every_layout_repeats_the_passage_in_the_raw_window(strong: set[int] | None) -> None:
    made = make_layouts(RAG, key_passages=[KEY], strong=strong, repeat=True)
    assert len(made) == 4
    question = RAG.rpartition("\n\n")[2]
    for layout in made.layouts:
        assert layout.prompt.endswith(f"\n\n{KEY}\n\n{question}")
        assert [one.outcome for one in layout.aligned.report.repeated] == ["repeated"]
        ids = official_ids(layout.prompt)
        assert KEY in decoded_at(ids, len(ids) - 128, 128)
        assert (layout.restore(), layout.aligned.report.verified, layout.tokens) == (RAG, True, len(ids))
    assert len({layout.phase for layout in made.layouts}) == 4
    assert made.layouts[0].prompt == align_prompt(RAG, key_passages=[KEY], strong=strong, repeat=True).prompt
    assert made.shared == leading([official_ids(layout.prompt) for layout in made.layouts])


def test_a_shift_that_pushes_a_passage_out_of_the_window_is_left_out() -> None:
    other = "The gate opens with ALPHA-90210."
    lengths = []
    for words in range(88, 99):  # the frozen passage comes to stand at the very start of the window
        asked = "\n\n".join(["Hello.", other, "river " * words + "what?"])
        messages = [{"role": "user", "content": KEY}, {"role": "user", "content": asked}]
        made = make_layouts(messages, key_passages=[KEY, other], frozen=1, repeat=True)
        lengths.append(len(made))
        for layout in made.layouts:
            ids = official_ids(layout.prompt)
            outside = max(0, len(ids) - 128)
            assert KEY in decoded_at(ids, outside, len(ids) - outside)
    assert max(lengths) == 4
    assert min(lengths) < 4, "no shift pushed it out"


def test_what_cannot_be_used_is_refused() -> None:
    for most in (0, -1, True, "4", 2.0):
        with pytest.raises(InputError, match="number of layouts"):
            make_layouts(RAG, most=most)
    with pytest.raises(PassageNotFoundError):
        make_layouts(RAG, key_passages=["not there"])


def test_the_check_can_fail() -> None:
    made = make_layouts(RAG, key_passages=[KEY])
    check(made, RAG)
    twice = LayoutSet((made.layouts[0], made.layouts[0]), made.period, made.strong, made.shared)
    less = LayoutSet(made.layouts, made.period, made.strong, made.shared - 1)
    for wrong, prompt in ((twice, RAG), (less, RAG), (made, RAG + " ")):
        with pytest.raises(AssertionError):
            check(wrong, prompt)
    with pytest.raises(AssertionError):
        _check_phases(LayoutSet((made.layouts[0],) * 2, 4, made.strong, 3))
