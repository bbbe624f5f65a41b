"""What an engine answers, scripted engines, and the record of calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.align import inspect_prompt
from phaseguard.errors import InputError
from phaseguard.testing import Call, Completion, Echo, ScriptedEngine, ToolCall
from phaseguard.testing.stream import parts

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "Which code is it?"}]}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"logprobs": (-0.1,)}, "needs tokens"),
        ({"top": ({},)}, "needs tokens"),
        ({"tokens": ("A",)}, "do not make up"),
        ({"tokens": ("A", "-17"), "logprobs": (-0.1,)}, "1 logprobs for 2 tokens"),
        ({"tokens": ("A", "-17"), "top": ({},)}, "1 top for 2 tokens"),
    ],
)
def test_parts_that_do_not_fit(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Completion("A-17", **wrong)


def test_echoes_fit_their_tokens() -> None:
    with pytest.raises(InputError, match="Echo: 1 logprobs for 2 tokens"):
        Echo(("a", "b"), (None,))


def test_why_an_answer_ends() -> None:
    assert Completion("A").finished == "stop"
    assert Completion(None, (ToolCall("f"),)).finished == "tool_calls"
    assert Completion("A", finish_reason="length").finished == "length"


@given(st.text())
def test_parts_make_up_the_text(text: str) -> None:
    assert "".join(parts(Completion(text))) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_profile_counts_the_tokens_of_prompt_and_answer(text: str) -> None:
    profile = "deepseek-v4-flash"
    reply = ScriptedEngine(text, profile=profile).reply(BODY, "")
    assert reply.text == "".join(reply.tokens or ()) == text
    assert reply.completion_tokens == len(reply.tokens or ())
    given_prompt = [{"role": "user", "content": "Which code is it?"}]
    assert reply.prompt_tokens == inspect_prompt(given_prompt, profile=profile).report.tokens_after


def test_counts_that_are_stated_stay() -> None:
    stated = Completion("A-17", prompt_tokens=1, completion_tokens=2)
    assert ScriptedEngine(stated, profile="deepseek-v4-flash").reply(BODY, "") == stated
    legacy = ScriptedEngine("A", profile="deepseek-v4-flash").reply({"prompt": "Which code is it?"}, "")
    assert (
        legacy.prompt_tokens == ScriptedEngine("A", profile="deepseek-v4-flash").reply(BODY, "").prompt_tokens
    )


def test_a_sequence_gives_each_answer_once_whatever_threads_ask() -> None:
    engine = ScriptedEngine([str(n) for n in range(200)])
    with ThreadPoolExecutor(8) as threads:
        given_out = list(threads.map(lambda _: engine.reply(BODY, "").text, range(200)))
    assert sorted(map(str, given_out), key=int) == [str(n) for n in range(200)]
    with pytest.raises(InputError, match="200 answers, and this is request 201"):
        engine.reply(BODY, "")


def test_functions_see_the_body() -> None:
    engine = ScriptedEngine(lambda body: Completion(body["messages"][0]["content"][:5]))
    assert engine.reply(BODY, "").text == "Which"


def test_scripts_that_cannot_be_used() -> None:
    wrong: Any = 17
    with pytest.raises(InputError, match="answers is a int"):
        ScriptedEngine(wrong)
    with pytest.raises(InputError, match="needs profile"):
        ScriptedEngine("A", tokenizer="deepseek-v4")
    with pytest.raises(InputError, match="gave a int"):
        ScriptedEngine(lambda _: wrong).reply(BODY, "")


def test_texts_of_a_call() -> None:
    blocks = [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    messages = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": blocks},
        {"role": "assistant", "content": None},
    ]
    assert Call(0, "", {"messages": messages}).texts == ("a", "b", "")
    assert Call(0, "", {"prompt": "a"}).texts == ("a",)
    assert Call(0, "", {"prompt": ["a", "b"]}).texts == ("a", "b")
    assert Call(0, "", {}).texts == ()
