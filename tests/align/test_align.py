"""align_prompt on real prompts, checked against DeepSeek's own encoder."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from phaseguard import PassageSpan, Span, align_prompt, inspect_prompt
from phaseguard.errors import InputError, PassageNotFoundError, PhaseGuardError
from tests.align.helpers import PARAGRAPHS, V4, V41, decoded_at, official_ids, profile, with_strengths

KEY = "The access code of the vault is PROVOCATIVE-8417."
RAG = "\n\n".join([*PARAGRAPHS[:6], KEY, *PARAGRAPHS[6:12], "What is the access code of the vault?"])
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search the manual.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
    }
]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "vault"}'}}


def spans(out: Any) -> list[Any]:
    return [span for passage in out.report.passages for span in passage.spans]


@pytest.mark.parametrize("pads", ["auto", "invisible", "visible"])
@pytest.mark.parametrize("strong", [{0}, {1}, {2}, {3}, {2, 3}])
@pytest.mark.parametrize("lead", range(4))
def test_every_phase_is_reached_and_the_official_encoder_agrees(
    lead: int, strong: set[int], pads: str
) -> None:
    prompt = " so" * lead + RAG
    out = align_prompt(prompt, key_passages=[KEY], strong=strong, pads=pads)
    (span,) = spans(out)
    assert out.report.verified
    assert span.phase_after in strong
    assert span.index_after % 4 == span.phase_after
    ids = official_ids(out.prompt)
    assert len(ids) == out.report.tokens_after
    assert decoded_at(ids, span.index_after, span.tokens).strip() == "PROVOCATIVE-8417"
    before = official_ids(prompt)
    assert decoded_at(before, span.index_before, span.tokens).strip() == "PROVOCATIVE-8417"
    assert out.restore() == prompt
    if pads == "visible":
        assert all(pad.text.strip() for pad in out.report.pads)
    if pads == "invisible":
        assert not any(pad.text.strip() for pad in out.report.pads)


@pytest.mark.parametrize("pads", ["auto", "visible"])
def test_pads_stand_directly_in_front_of_the_record(pads: str) -> None:
    prompt = "\n\n".join([*PARAGRAPHS[:4], KEY, *PARAGRAPHS[4:6], KEY, "Which code?"])
    phase = spans(inspect_prompt(prompt, key_passages=[KEY]))[0].index_before % 4
    out = align_prompt(prompt, key_passages=[KEY], strong={(phase + 1) % 4}, pads=pads)
    assert out.report.pads
    assert all(span.strong_after for span in spans(out))
    for pad in out.report.pads:
        assert out.prompt[pad.offset + len(pad.text) :].startswith(KEY)


@pytest.mark.parametrize("reasoning", ["off", "low", "high", "max"])
@pytest.mark.parametrize("base", [V4, V41])
def test_every_reasoning_mode(base: Any, reasoning: str) -> None:
    chosen = base.with_(reasoning=reasoning)
    out = align_prompt(RAG, key_passages=[KEY], profile=chosen, strong={1})
    assert out.report.verified
    assert spans(out)[0].phase_after == 1


def test_without_strengths_nothing_is_aligned_and_the_report_says_so() -> None:
    out = align_prompt(RAG + "   \n\n\n\nThanks.", key_passages=[KEY], isolate=False)
    assert out.report.pads == ()
    assert out.report.provenance.kind == "none"
    assert out.report.normalize_edits > 0
    assert out.report.isolation is None
    assert any("no strengths" in note and "strong=" in note for note in out.report.notes)
    assert spans(out)[0].strong_after is None
    assert spans(out)[0].strength_after is None


@pytest.mark.parametrize("name", ["llama-3", "deepseek-v3"])
def test_models_without_phase_are_left_alone(name: str) -> None:
    out = align_prompt(RAG, key_passages=[KEY], profile=name)
    assert out.prompt == RAG
    assert any("no phase" in note for note in out.report.notes)
    with pytest.raises(InputError, match="no phase"):
        align_prompt(RAG, key_passages=[KEY], profile=name, strong={0})
    with pytest.raises(InputError, match="no phase"):
        inspect_prompt(RAG, key_passages=[KEY], profile=name)


def test_reported_order_is_used_and_named() -> None:
    out = align_prompt(RAG, key_passages=[KEY], profile="deepseek-v4.1-flash")
    assert out.report.provenance.kind == "reported"
    assert "2609.36322" in out.report.provenance.source
    assert spans(out)[0].phase_after == 1
    assert spans(out)[0].strength_after is None, "an order is not a number"


def test_strengths_decide_by_shape() -> None:
    chosen = with_strengths(4, {"1": [0.9, 0.5, 0.5, 0.5], "3": [0.5, 0.5, 0.9, 0.5]})
    out = align_prompt(RAG, key_passages=[KEY], profile=chosen)
    (span,) = spans(out)
    assert (span.tokens, span.phase_after, span.strength_after) == (7, 2, 0.9)
    single = align_prompt(RAG, key_passages=[KEY], answer="vault", profile=chosen)
    assert [(s.tokens, s.phase_after) for s in spans(single)] == [(1, 0)]


def test_kinds_come_back_as_they_went_in() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": RAG}]
    payload = {"model": "deepseek-v4-flash", "messages": messages, "tools": TOOLS, "temperature": 0}
    for prompt in (RAG, messages, tuple(messages), payload):
        kept = copy.deepcopy(prompt)
        phase = spans(inspect_prompt(prompt, key_passages=[KEY]))[0].index_before % 4
        out = align_prompt(prompt, key_passages=[KEY], strong={(phase + 1) % 4})
        assert prompt == kept, "nothing given may be mutated"
        assert out.report.verified
        assert out.report.pads
        assert out.restore() == (list(prompt) if isinstance(prompt, tuple) else prompt)
        if isinstance(prompt, dict):
            assert set(out.prompt) == set(prompt)
            assert out.prompt["tools"] is prompt["tools"]
            assert len(official_ids(out.prompt)) == out.report.tokens_after


def test_blocks_are_edited_and_all_else_is_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    content = [
        {"type": "text", "text": "Answer from this.\n\n" + RAG, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Thanks."},
    ]
    messages = [{"role": "user", "content": content}]
    out = align_prompt(messages, key_passages=[KEY], strong={3}, profile=V4.with_(chat="plain"))
    assert out.report.verified
    assert spans(out)[0].phase_after == 3
    assert out.prompt[0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert out.prompt[0]["content"][1] is content[1]
    with pytest.raises(PhaseGuardError):
        align_prompt([{"role": "user", "content": [image]}], key_passages=[KEY], strong={3})


def test_assistant_and_frozen_messages_never_change() -> None:
    messages = [
        {"role": "user", "content": RAG},
        {"role": "assistant", "content": f"It says:   \n\n\n\n{KEY}"},
        {"role": "user", "content": "Sure?  \n\n" + KEY},
    ]
    out = align_prompt(messages, key_passages=[KEY], strong={3}, frozen=1)
    assert out.prompt[:2] == messages[:2]
    assert out.report.verified
    assert len(out.report.passages) == 3
    assert spans(out)[2].phase_after == 3
    everything = align_prompt(messages, key_passages=[KEY], strong={3}, frozen=3)
    assert everything.prompt == messages
    with pytest.raises(InputError, match="frozen"):
        align_prompt(messages, key_passages=[KEY], strong={3}, frozen=4)


def test_tool_results_take_pads_only_at_their_start() -> None:
    result = json.dumps({"text": KEY}) + "\n\n\n\nnext   \n\n" + KEY
    messages = [
        {"role": "user", "content": "Find the code."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    for strong in range(4):
        payload = {"messages": messages, "tools": TOOLS}
        out = align_prompt(payload, key_passages=["PROVOCATIVE-8417"], occurrence=0, strong={strong})
        assert out.report.verified
        assert spans(out)[0].phase_after == strong
        assert out.prompt["messages"][2]["content"].endswith(result)
        assert all(pad.message == 2 and pad.offset == 0 for pad in out.report.pads)


@pytest.mark.parametrize(
    "zone",
    [
        f"```python\nx = 1\n\n\nCODE = '{KEY}'\n```",
        f"| a | b |\n|---|---|\n| 1 | {KEY} |",
        f"    x = 1\n\n    CODE = '{KEY}'",
        f'{{\n  "a": 1,\n\n  "key": "{KEY}"\n}}',
    ],
)
def test_pads_stay_out_of_zones_and_passages(zone: str) -> None:
    prompt = "\n\n".join([PARAGRAPHS[0], zone, PARAGRAPHS[1], "What is the code?"])
    for strong in range(4):
        out = align_prompt(prompt, key_passages=[KEY], strong={strong})
        assert out.report.verified
        assert zone in out.prompt
        assert KEY in out.prompt


def test_inside_lets_pads_into_a_passage_at_its_own_blank_lines() -> None:
    passage = "The first number is 8417.\n\nThe second number is 9000."
    prompt = f"{PARAGRAPHS[0]}\n\n{passage}\n\nWhich numbers?"
    for strong in range(4):
        alone = align_prompt(prompt, key_passages=[passage], strong={strong})
        assert passage in alone.prompt
        free = align_prompt(prompt, key_passages=[passage], strong={strong}, inside=True)
        assert all(span.phase_after == strong for span in spans(free))
        assert (
            align_prompt(free.prompt, key_passages=[passage], strong={strong}, inside=True).prompt
            == free.prompt
        )


def test_a_passage_is_aligned_at_each_place_and_occurrence_narrows() -> None:
    prompt = "\n\n".join([KEY, PARAGRAPHS[0], KEY, PARAGRAPHS[1], KEY, "Which code?"])
    out = align_prompt(prompt, key_passages=[KEY], strong={1})
    assert [span.phase_after for span in spans(out)] == [1, 1, 1]
    last = align_prompt(prompt, key_passages=[KEY], strong={1}, occurrence=-1)
    assert len(last.report.passages) == 1
    assert spans(last)[0].index_before == spans(out)[2].index_before
    with pytest.raises(PassageNotFoundError, match="are 0 to 2"):
        align_prompt(prompt, key_passages=[KEY], strong={1}, occurrence=3)


def test_a_missing_passage_shows_the_nearest_text() -> None:
    with pytest.raises(PassageNotFoundError, match=r"nearest text is 'The access code of the vault is PROVO"):
        align_prompt(RAG, key_passages=["The access code of the safe is PROVOCATIVE-8417."], strong={1})


def test_passages_by_place() -> None:
    start = RAG.index("PROVOCATIVE")
    by_text = align_prompt(RAG, key_passages=["PROVOCATIVE-8417"], strong={1})
    by_span = align_prompt(RAG, key_passages=[Span(start, start + 16)], strong={1})
    messages = [{"role": "system", "content": "Hi."}, {"role": "user", "content": RAG}]
    by_message = align_prompt(messages, key_passages=[PassageSpan(start, start + 16, 1)], strong={1})
    assert by_text.prompt == by_span.prompt
    assert spans(by_message)[0].text == "PROVOCATIVE-8417"
    for wrong in (PassageSpan(0, 5, 7), Span(0, len(RAG) + 1), 5):
        with pytest.raises(InputError, match="key_passages"):
            align_prompt(messages, key_passages=[wrong], strong={1})  # type: ignore[list-item]


def test_a_passage_that_normalizing_changes_is_still_found() -> None:
    messy = RAG.replace("access code of", "access\u200b code of").replace(KEY, KEY + "   ")
    key = KEY.replace("access code of", "access\u200b code of")
    out = align_prompt(messy, key_passages=[key], strong={1})
    assert spans(out)[0].phase_after == 1
    wrapped = RAG.replace("code of the vault", "code\nof the vault")
    assert spans(align_prompt(wrapped, key_passages=[KEY], strong={1}))[0].phase_after == 1


def test_the_query_finds_the_passage_and_says_why() -> None:
    out = align_prompt(RAG, strong={1})
    assert [passage.text for passage in out.report.passages] == [KEY]
    assert "'vault'" in out.report.passages[0].why
    other = align_prompt(RAG, query="What is the access code?", strong={1})
    assert other.report.passages[0].text == KEY
    nothing = align_prompt("Hello there.", query="zebra quagga", strong={1})
    assert nothing.report.passages == ()
    assert any("No key passage" in note for note in nothing.report.notes)


def test_what_the_question_names_is_not_the_answer() -> None:
    prompt = "\n\n".join(
        [*PARAGRAPHS[:3], "Door D-4711 opens with PROVOCATIVE-8417.", "Which code opens door D-4711?"]
    )
    for strong in range(4):
        out = align_prompt(prompt, key_passages=["Door D-4711 opens with PROVOCATIVE-8417."], strong={strong})
        asked, answer = spans(out)
        assert asked.weight < answer.weight
        assert answer.phase_after == strong


def test_a_budget_is_kept() -> None:
    keys = [f"The code of unit {n} is UNIT-{n * 7919}." for n in range(6)]
    prompt = "\n\n".join(part for pair in zip(PARAGRAPHS, keys, strict=False) for part in pair)
    free = align_prompt(prompt, key_passages=keys, answer=[f"UNIT-{n * 7919}" for n in range(6)], strong={1})
    assert free.report.tokens_added > 3
    assert all(span.phase_after == 1 for span in spans(free))
    for budget in range(free.report.tokens_added + 1):
        out = align_prompt(prompt, key_passages=keys, strong={1}, max_added_tokens=budget)
        assert out.report.verified
        assert out.report.tokens_added <= budget
    with pytest.raises(InputError, match="max_added_tokens"):
        align_prompt(prompt, key_passages=keys, strong={1}, max_added_tokens=-1)


def test_own_pads() -> None:
    out = align_prompt(
        RAG, key_passages=[KEY], strong={3}, pads=["note\n\n", "see note\n\n", "please see note\n\n"]
    )
    assert out.report.verified
    assert spans(out)[0].phase_after == 3
    for wrong in (["no newline"], ["a b c d e f g h\n"], "blanks", [3]):
        with pytest.raises(InputError, match="pads"):
            align_prompt(RAG, key_passages=[KEY], strong={3}, pads=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"prompt": ""}, "empty"),
        ({"prompt": []}, "no messages"),
        ({"prompt": 5}, "string"),
        ({"prompt": {"role": "user"}}, "messages"),
        ({"prompt": ["hi"]}, "Message 0"),
        ({"prompt": [{"content": "hi"}]}, "role"),
        ({"strong": {4}}, "strong"),
        ({"strong": set()}, "strong"),
        ({"strong": 3}, "strong"),
        ({"strong": {"2"}}, "strong"),
        ({"level": "sfe"}, "safe"),
        ({"profile": "deepseek-v4-flsh"}, "deepseek-v4-flash"),
        ({"key_passages": ["  "]}, "blank"),
        ({"query": 5}, "query"),
        ({"answer": ""}, "answer"),
        ({"answer": "not there"}, "answer"),
        ({"occurrence": "1"}, "occurrence"),
    ],
)
def test_bad_input_is_one_clear_error(arguments: dict[str, Any], match: str) -> None:
    given = {"prompt": RAG, "key_passages": [KEY], "strong": {1}, **arguments}
    with pytest.raises(PhaseGuardError, match=match):
        align_prompt(given.pop("prompt"), **given)


@pytest.mark.parametrize("level", ["off", "safe"])
@pytest.mark.parametrize("profile", ["deepseek-v4-flash", "llama-3"])
def test_notes_speak_of_normalizing_only_where_it_was_done(profile: str, level: str) -> None:
    note = align_prompt(RAG, key_passages=[KEY], profile=profile, level=level, isolate=False).report.notes[0]
    assert ("normalized" in note, "left as it is" in note) == (level == "safe", level == "off")


def test_inspect_does_not_claim_to_have_normalized() -> None:
    assert "normalized" not in " ".join(inspect_prompt(RAG, key_passages=[KEY]).report.notes)


def test_a_weak_answer_that_nothing_was_tried_for_is_said_to_be_movable() -> None:
    given = {"key_passages": [KEY], "profile": "deepseek-v4.1-flash"}
    phase = spans(inspect_prompt(RAG, **given))[0].phase_before
    weak = {**given, "strong": {1 - phase}}
    for report in (inspect_prompt(RAG, **weak).report, align_prompt(RAG, max_added_tokens=0, **weak).report):
        (note,) = [note for note in report.notes if "weak phase" in note]
        assert "phaseguard align" in note
        assert "needs a place" not in note


@pytest.mark.parametrize("messages", ["x", 3, None, {"role": "user", "content": "x"}])
def test_a_payload_whose_messages_are_no_list_is_told_so(messages: object) -> None:
    with pytest.raises(InputError, match="The 'messages' of a payload are a list, not "):
        align_prompt({"messages": messages})


def test_inspect_changes_nothing() -> None:
    seen = inspect_prompt(RAG, key_passages=[KEY], strong={1})
    assert [span.of(seen.text) for span in seen.spans] == ["PROVOCATIVE-8417"]
    assert seen.request.tokens == len(official_ids(RAG))
    assert seen.report.pads == ()


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("strong", range(4))
def test_other_tokenizers(name: str, strong: int) -> None:
    chosen = profile(name, "plain", prefix_offset=1)
    out = align_prompt(RAG, key_passages=[KEY], profile=chosen, strong={strong})
    assert out.report.verified
    assert spans(out)[0].phase_after == strong


def test_sites_of_an_earlier_block_serve_a_later_one() -> None:
    content = [{"type": "text", "text": "\n\n".join(PARAGRAPHS[:3])}, {"type": "text", "text": f" {KEY}"}]
    for strong in range(4):
        prompt = [{"role": "user", "content": content}]
        out = align_prompt(prompt, key_passages=[KEY], strong={strong}, profile=V4.with_(chat="plain"))
        assert out.report.verified
        assert spans(out)[0].phase_after == strong
        assert out.restore() == prompt
