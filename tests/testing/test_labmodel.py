"""On-device models over HTTP: what they answer, count and give as probabilities."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest

from phaseguard.errors import InputError, RenderError
from phaseguard.lab.ask import ask
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import PAD, Task
from phaseguard.lab.words import WordTokenizer, write
from phaseguard.testing import LabEngine, Server, lab_ask
from tests.testing.clients import MODEL, client

TOKENIZER = WordTokenizer()
LOAD = Task("records", records=24)
CASES = draw_cases(LOAD, 12, period=4, window=8, seed=5)
CHAT, LEGACY = "/v1/chat/completions", "/v1/completions"


def chat(case: Case) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": case.prompt}]}


def ids(case: Case, pads: int = 0) -> Any:
    return np.concatenate([np.full(pads, PAD), TOKENIZER.encode(case.prompt).ids]).astype(np.int64)


@pytest.mark.parametrize("prefix", [0, 1, 6])
def test_answers_probabilities_and_usage_are_the_models(prefix: int) -> None:
    expected = ask(load_model("csa4-s0"), [ids(case, prefix) for case in CASES])
    with Server(LabEngine("csa4-s0", prefix=prefix)) as server, client(server) as asking:
        for n, case in enumerate(CASES):
            reply = asking.chat.completions.create(model=MODEL, **chat(case), logprobs=True, top_logprobs=3)
            (choice,) = reply.choices
            assert choice.message.content == write(expected.answers[n]).removesuffix("\n\n")
            assert choice.logprobs is not None
            (token,) = choice.logprobs.content or ()
            assert exp(token.logprob) == pytest.approx(expected.probability[n], rel=1e-5)
            assert token.top_logprobs[0].token == choice.message.content
            assert sum(exp(t.logprob) for t in token.top_logprobs) <= 1 + 1e-6
            assert reply.usage is not None
            assert reply.usage.prompt_tokens == prefix + len(TOKENIZER.encode(case.prompt))
            assert reply.usage.completion_tokens == 1


def test_messages_are_joined() -> None:
    engine, case = LabEngine("csa4-s0"), CASES[0]
    half = len(case.prompt) // 2 // 6 * 6
    parts = [{"type": "text", "text": case.prompt[half:]}]
    split = [{"role": "system", "content": case.prompt[:half]}, {"role": "user", "content": parts}]
    assert engine.reply({"messages": split}, CHAT) == engine.reply(chat(case), CHAT)
    assert engine.reply({"prompt": case.prompt}, LEGACY) == engine.reply(chat(case), CHAT)
    with pytest.raises(RenderError, match="no place for 'tools'"):
        engine.reply({**chat(case), "tools": [{"type": "function"}]}, CHAT)


def test_longer_answers() -> None:
    case = CASES[0]
    expected = ask(load_model("full-s0"), [ids(case)], answer_tokens=3)
    engine = LabEngine("full-s0", answer_tokens=3)
    reply = engine.reply(chat(case), CHAT)
    assert reply.text == write(expected.answers[0]).removesuffix("\n\n")
    assert exp(sum(reply.logprobs or ())) == pytest.approx(expected.probability[0], rel=1e-5)
    assert (reply.completion_tokens, reply.finished) == (3, "stop")
    for limit in ("max_tokens", "max_completion_tokens"):
        short = engine.reply({**chat(case), limit: 2}, CHAT)
        assert (short.completion_tokens, short.finished) == (2, "length")
        assert (reply.text or "").startswith(short.text or "?")


@pytest.mark.parametrize("prefix", [0, 3])
def test_legacy_completions_score_their_prompt(prefix: int) -> None:
    case = CASES[0]
    text = case.prompt + "\n\n" + case.answer_text
    tokens = TOKENIZER.encode(text).ids
    with Server(LabEngine("csa4-s0", prefix=prefix)) as server, client(server) as asking:
        reply = asking.completions.create(model=MODEL, prompt=text, echo=True, logprobs=2, max_tokens=0)
        several = asking.completions.create(model=MODEL, prompt=[case.prompt, CASES[1].prompt])
    (choice,) = reply.choices
    assert (choice.text, choice.finish_reason) == (text, "length")
    told = choice.logprobs
    assert told is not None
    assert told.tokens is not None
    assert "".join(told.tokens) == text
    assert [
        text[at:][: len(t)] for at, t in zip(told.text_offset or (), told.tokens, strict=True)
    ] == told.tokens
    logprobs: Any = told.token_logprobs
    assert (logprobs[0] is None) == (prefix == 0)
    assert len(logprobs) == len(tokens) == len(told.top_logprobs or ())
    whole = np.concatenate([np.full(prefix, PAD), tokens]).astype(np.int64)
    for back in (1, 2, 30):
        scores = load_model("csa4-s0").logits(whole[None], np.array([[len(whole) - back - 1]]))[0, 0]
        shares = np.exp(scores - scores.max())
        expected = shares[whole[-back]] / shares.sum()
        assert exp(logprobs[-back]) == pytest.approx(expected, rel=1e-3)
    assert [c.index for c in several.choices] == [0, 1]
    assert [c.text for c in several.choices] == [
        LabEngine("csa4-s0", prefix=prefix).reply(chat(c), CHAT).text for c in CASES[:2]
    ]


def test_a_share_of_answers_is_wrong_the_same_ones_every_time() -> None:
    right, never = LabEngine("full-s0"), LabEngine("full-s0", wrong=1.0)
    sometimes = LabEngine("full-s0", wrong=0.3, seed=1)
    cases = draw_cases(LOAD, 120, period=4, window=8, seed=6)
    said = [right.reply(chat(case), CHAT).text for case in cases]
    assert all(never.reply(chat(c), CHAT).text != text for c, text in zip(cases, said, strict=True))
    swapped = [sometimes.reply(chat(c), CHAT).text for c in reversed(cases)][::-1]
    assert swapped == [sometimes.reply(chat(c), CHAT).text for c in cases]
    other = [LabEngine("full-s0", wrong=0.3, seed=2).reply(chat(c), CHAT).text for c in cases]
    assert swapped != other
    for given in (swapped, other):
        assert 20 <= sum(a != b for a, b in zip(given, said, strict=True)) <= 55
    assert all((text or "")[0] in "kl" for text in swapped)


def test_in_process_and_over_http_say_the_same() -> None:
    asked, engine = lab_ask("csa4-s0", prefix=2), LabEngine("csa4-s0", prefix=2)
    for case in CASES:
        reply = engine.reply(chat(case), CHAT)
        for prompt in (case.prompt, chat(case)["messages"], chat(case)):
            answer = asked(prompt)
            assert (answer.text, answer.tokens, answer.prompt_tokens) == (reply.text, 1, reply.prompt_tokens)
            assert answer.probability == pytest.approx(exp((reply.logprobs or (0,))[0]))


def test_loaded_models_and_paths_are_taken_too() -> None:
    loaded = lab_ask(load_model("csa4-s0"))
    assert loaded(CASES[0].prompt) == lab_ask("csa4-s0")(CASES[0].prompt)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"wrong": 1.5}, "share from 0 to 1"),
        ({"prefix": -1}, "prefix=-1"),
        ({"prefix": True}, "prefix=True"),
        ({"answer_tokens": 0}, "answer_tokens=0"),
        ({"name_or_model": "csa5"}, "no on-device model 'csa5'"),
    ],
)
def test_arguments(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        LabEngine(**{"name_or_model": "csa4-s0", **wrong})
    with pytest.raises(InputError, match="The prompt is empty"):
        LabEngine("csa4-s0").reply({"prompt": ""}, LEGACY)
