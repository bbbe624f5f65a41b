"""The contracts of align as properties: proof, undo, idempotence, cache stability, determinism."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaseguard import align_prompt
from phaseguard.align import setting
from phaseguard.align.prompt import Prompt
from phaseguard.chat import load_renderer
from tests.align.helpers import PARAGRAPHS, V4, V41, decoded_at, official_ids, profile
from tests.align.test_align import TOOLS

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CODES = tuple(f"{word}-{number}" for word in ("PROVOCATIVE", "ALPHA", "Zed") for number in (8417, 5, 90210))
EXTRA = (
    "```python\ndef f(x):\n    return   x\n\n\ny = 1\n```",
    "- one\n- two\n\n- three",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "> quoted words\n> go on",
    "==========",
    "He wrote <think> and <｜User｜> here.",
    "合同编号为甲方提供的号码。",
    "👩‍💻 done.   ",
    "# Heading",
    "a  \nb",
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Real paragraphs, some with a code word, mixed with code, tables, lists and decoration."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.integers(0, 3))
        if kind == 0:
            parts.append(draw(st.sampled_from(EXTRA)))
        elif kind == 1:
            parts.append(
                f"The access code of unit {draw(st.integers(0, 99))} is {draw(st.sampled_from(CODES))}."
            )
        else:
            parts.append(draw(st.sampled_from(PARAGRAPHS)))
    breaks = st.sampled_from(["\n\n", "\n\n", "\n \n", "\n\n\n\n", "\n", "  \n\n"])
    return "".join(part + draw(breaks) for part in parts)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """System, user turns with documents, assistant answers, tool calls and their results."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(documents())})
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(documents()) + "What is the access code of unit 7?"})
        if draw(st.booleans()):
            call = {
                "id": f"c{turn}",
                "type": "function",
                "function": {"name": "search", "arguments": '{"q": "x"}'},
            }
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            result = json.dumps({"text": draw(documents())}) if draw(st.booleans()) else draw(documents())
            messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": result})
        answer: dict[str, Any] = {"role": "assistant", "content": "It is " + draw(st.sampled_from(CODES))}
        if draw(st.booleans()):
            answer["reasoning_content"] = "Let me look at it."
        messages.append(answer)
    messages.append({"role": "user", "content": draw(documents()) + "And the access code of unit 9?"})
    return messages


def keys_in(prompt: Any) -> list[str]:
    texts = [field.text for field in Prompt.read(prompt).fields]
    return [code for code in CODES if any(code in text for text in texts)]


strongs = st.sets(st.integers(0, 3), min_size=1, max_size=3)
modes = st.sampled_from(["off", "low", "high", "max"])


@given(documents(), strongs, st.sampled_from(["off", "safe", "full"]), st.sampled_from(["auto", "visible"]))
@SETTINGS
def test_documents_are_proven_undone_and_stable(text: str, strong: set[int], level: str, pads: str) -> None:
    keys = keys_in(text)
    if not keys:
        return
    out = align_prompt(text, key_passages=keys, strong=strong, level=level, pads=pads)
    assert out.report.verified
    assert out.restore() == text
    ids = official_ids(out.prompt)
    assert len(ids) == out.report.tokens_after
    for passage in out.report.passages:
        for span in passage.spans:
            found = decoded_at(ids, span.index_after, span.tokens)
            assert span.text in found
    again = align_prompt(out.prompt, key_passages=keys, strong=strong, level=level, pads=pads)
    assert again.prompt == out.prompt
    assert align_prompt(text, key_passages=keys, strong=strong, level=level, pads=pads) == out


@given(documents(), strongs, st.integers(0, 6))
@SETTINGS
def test_a_budget_stays_idempotent(text: str, strong: set[int], budget: int) -> None:
    keys = keys_in(text)
    if not keys:
        return
    for pads in ("auto", "visible"):
        given_ = {"key_passages": keys, "strong": strong, "max_added_tokens": budget, "pads": pads}
        out = align_prompt(text, **given_)
        assert out.report.tokens_added <= budget
        assert align_prompt(out.prompt, **given_).prompt == out.prompt


@given(conversations(), strongs, modes, st.booleans(), st.booleans())
@SETTINGS
def test_earlier_messages_stay_byte_identical(
    messages: list[dict[str, Any]], strong: set[int], mode: str, by_query: bool, tools: bool
) -> None:
    options = {"tools": TOOLS} if tools else {}
    keys = None if by_query else keys_in(messages[:1] + [m for m in messages if m["role"] == "user"][:1])
    chosen = V4.with_(reasoning=mode)

    def align(part: list[dict[str, Any]]) -> Any:
        return align_prompt({"messages": part, **options}, key_passages=keys, profile=chosen, strong=strong)

    if keys == []:
        return
    kept = copy.deepcopy(messages)
    whole = align(messages)
    assert messages == kept
    assert whole.report.verified
    assert whole.restore() == {"messages": messages, **options}
    for before, after in zip(messages, whole.prompt["messages"], strict=True):
        if before["role"] == "assistant":
            assert after == before
    ends = [i for i, m in enumerate(messages) if m["role"] in ("user", "tool")]
    for end in ends:
        part = align(messages[: end + 1])
        assert part.prompt["messages"] == whole.prompt["messages"][: end + 1]
    again = align_prompt(whole.prompt, key_passages=keys, profile=chosen, strong=strong)
    assert again.prompt == whole.prompt


@given(conversations(), st.sampled_from([V4, V41]), modes)
@SETTINGS
def test_conversations_agree_with_the_official_encoder(
    messages: list[dict[str, Any]], base: Any, mode: str
) -> None:
    keys = keys_in(messages)
    if not keys or mode != "off":
        return
    out = align_prompt(messages, key_passages=keys, profile=base, strong={1})
    ids = official_ids(out.prompt, base.chat)
    assert len(ids) == out.report.tokens_after
    for passage in out.report.passages:
        for span in passage.spans:
            if span.index_after is not None:
                found = decoded_at(ids, span.index_after, span.tokens)
                assert span.text in found


def test_the_contract_tests_can_fail() -> None:
    """A shifted prompt is not what the report says: the check above would see it."""
    text = "\n\n".join([PARAGRAPHS[0], f"The code is {CODES[0]}.", "Which?"])
    out = align_prompt(text, key_passages=[CODES[0]], strong={1})
    span = out.report.passages[0].spans[0]
    ids = official_ids("x " + out.prompt)
    assert span.text not in decoded_at(ids, span.index_after, span.tokens)


@pytest.mark.parametrize("level", ["off", "safe"])
def test_windows_line_endings(level: str) -> None:
    text = "\r\n\r\n".join([PARAGRAPHS[0], f"The code is {CODES[0]}.", PARAGRAPHS[1], "Which?"])
    out = align_prompt(text, key_passages=[CODES[0]], strong={1}, level=level)
    assert out.report.verified
    assert out.restore() == text


@given(
    documents(),
    strongs,
    st.sampled_from(["cl100k_base", "o200k_base", "deepseek-v4"]),
    st.sampled_from([2, 4, 8]),
)
@SETTINGS
def test_other_tokenizers_and_periods(text: str, strong: set[int], name: str, period: int) -> None:
    keys = keys_in(text)
    if not keys:
        return
    chosen = profile(name, "plain", period, prefix_offset=1)
    phases = {phase % period for phase in strong}
    out = align_prompt(text, key_passages=keys, profile=chosen, strong=phases)
    assert out.report.verified
    assert out.restore() == text
    assert align_prompt(out.prompt, key_passages=keys, profile=chosen, strong=phases).prompt == out.prompt
    for passage in out.report.passages:
        for span in passage.spans:
            assert span.index_after % period == span.phase_after


TRIMMING = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{{ m['content'] | trim }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


@given(documents(), strongs)
@SETTINGS
def test_a_template_that_strips_takes_no_pad_at_an_edge(text: str, strong: set[int]) -> None:
    keys = keys_in(text)
    if not keys:
        return
    renderer = load_renderer("jinja", template=TRIMMING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setting, "load_renderer", lambda *a, **k: renderer)
        out = align_prompt(text, key_passages=keys, profile=profile(chat="jinja"), strong=strong)
    assert out.report.verified
    assert out.restore() == text
    assert all(pad.text.strip() or pad.original for pad in out.report.pads), "blanks at an edge are stripped"
