"""Endpoints over HTTP: what is sent, what is read, and what goes wrong."""

from __future__ import annotations

import dataclasses
import socket
import threading

import pytest

from phaseguard.calibrate.endpoint import Outcome, Question, Reply, TokenChoice, margin
from phaseguard.calibrate.ondevice import LabLanguage
from phaseguard.calibrate.openai import OpenAIEndpoint, reasoning_fields
from phaseguard.chat import load_renderer
from phaseguard.errors import InputError
from phaseguard.testing import Completion, Fault, LabEngine, ScriptedEngine, Server

SECRET = "sk-very-secret-17"
ASKED = [Question(number, f"Question {number}?", 4) for number in range(6)]


@pytest.fixture(autouse=True)
def _key(monkeypatch) -> None:
    monkeypatch.delenv("PHASEGUARD_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def ask(server: Server, questions=ASKED, **more) -> dict[int, Outcome]:
    with OpenAIEndpoint(server.url, more.pop("model", "test-model"), **more) as endpoint:
        return {outcome.number: outcome for outcome in endpoint.ask(questions)}


@pytest.mark.parametrize("completions", [False, True])
def test_every_question_is_answered_once(completions) -> None:
    language = LabLanguage.of("full-s0")
    items = [language.draw(number, "records") for number in range(5)]
    questions = [Question(item.number, item.text, 1) for item in items]
    with Server(LabEngine("full-s0")) as server:
        done = ask(server, questions, completions=completions)
        paths = {call.path for call in server.calls}
    assert paths == {"/v1/completions" if completions else "/v1/chat/completions"}
    for item in items:
        reply = done[item.number].reply
        assert reply is not None
        assert reply.text == item.expected
        assert reply.prompt_tokens == len(language.tokenizer.encode(item.text))
        assert len(reply.choices[0].top) == 20
        assert margin(reply, reply.text) > 0
    bodies = [call.body for call in server.calls]
    assert all(body["temperature"] == 0 and body["max_tokens"] == 1 for body in bodies)


def test_margin_is_that_of_the_place_where_answers_part() -> None:
    right = Reply(
        "841 7", (TokenChoice("841", {"841": -0.1, "9": -3.0}), TokenChoice("7", {"7": -0.7, "1": -0.9}))
    )
    assert margin(right, "8417") == pytest.approx(0.2)
    wrong = Reply(
        "8411", (TokenChoice("841", {"841": -0.1, "9": -3.0}), TokenChoice("1", {"7": -0.9, "1": -0.7}))
    )
    assert margin(wrong, "8417") == pytest.approx(-0.2)
    said = Reply(
        "It is 7", (TokenChoice("It is ", {"It is ": 0.0}), TokenChoice("7", {"7": -0.1, "8": -2.1}))
    )
    assert margin(said, "7") == pytest.approx(2.0)
    absent = Reply("x", (TokenChoice("x", {"x": -0.1, "y": -5.0}),))
    assert margin(absent, "7") == pytest.approx(-4.9)
    assert margin(Reply("7"), "7") is None


def test_an_endpoint_without_log_probabilities_is_asked_without() -> None:
    class Refusing:
        def reply(self, body, path):
            if body.get("logprobs"):
                raise InputError("logprobs are not supported with this model")
            return Completion("ok")

    with Server(Refusing()) as server:
        done = ask(server, concurrency=1)
        asked = [bool(call.body.get("logprobs")) for call in server.calls]
    assert all(outcome.reply and not outcome.reply.choices for outcome in done.values())
    assert asked == [True, *[False] * len(ASKED)]


def test_rate_limits_lost_connections_and_late_answers_are_lived_with() -> None:
    faults = {
        0: Fault.rate_limited(),
        2: Fault("disconnect"),
        3: Fault.delay(2.0),
        4: Fault.status(503, 0.01),
    }
    with Server(ScriptedEngine("ok"), faults=lambda call: faults.get(call.number)) as server:
        done = ask(server, timeout=0.5, concurrency=2)
        assert len(server.calls) >= len(ASKED) + len(faults)
    assert [done[number].error for number in range(6)] == [None] * 6


@pytest.mark.parametrize("kind", ["empty-choices", "not-json"])
def test_an_answer_that_is_none_is_a_failure_of_that_call_alone(kind) -> None:
    with Server(
        ScriptedEngine("ok"), faults=lambda call: Fault(kind) if call.number == 1 else None
    ) as server:
        done = ask(server, concurrency=1, retries=0)
    assert [outcome.reply is None for _, outcome in sorted(done.items())] == [False, True, *[False] * 4]
    assert done[1].error
    assert not done[1].fatal


def test_an_answer_without_text_says_why() -> None:
    with Server(ScriptedEngine(Completion("", finish_reason="length"))) as server:
        done = ask(server, ASKED[:1])
    assert "no text" in (done[0].error or "")
    assert "Reasoning" in (done[0].error or "")


def test_a_wrong_key_is_fatal_and_never_shown() -> None:
    with Server(ScriptedEngine("ok"), key="another") as server:
        done = ask(server, concurrency=2)
    assert len(done) <= 3  # none is asked after it
    assert all(
        outcome.fatal and "OPENAI_API_KEY is refused" in (outcome.error or "") for outcome in done.values()
    )
    assert SECRET not in repr(done)


def test_a_server_that_repeats_the_key_does_not_get_it_shown() -> None:
    class Telling:
        def reply(self, body, path):
            raise InputError(f"The key {SECRET} of user:hush may not do this.")

    with Server(Telling()) as server:
        url = server.url.replace("//", "//user:hush@")
        with OpenAIEndpoint(url, "test-model") as endpoint:
            (outcome,) = endpoint.ask(ASKED[:1])
    assert (
        outcome.error
        == "The endpoint refuses the request: The key (hidden) of user:(hidden) may not do this."
    )


def test_an_unset_key_is_said(monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with Server(ScriptedEngine("ok"), key="another") as server:
        done = ask(server, ASKED[:1])
    assert "OPENAI_API_KEY is not set" in (done[0].error or "")


def test_the_key_comes_from_the_variable_that_is_named(monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "another")
    with Server(ScriptedEngine("ok"), key="another") as server:
        assert ask(server, ASKED[:1], key_env="MY_KEY")[0].reply is not None


def test_an_unknown_model_lists_near_ones() -> None:
    with Server(ScriptedEngine("ok"), models=["deepseek-v4-flash"]) as server:
        done = ask(server, ASKED[:1], model="deepseek-v4-flsh")
    assert done[0].fatal
    assert "Did you mean 'deepseek-v4-flash'?" in (done[0].error or "")


def test_a_context_that_is_too_long_is_said() -> None:
    engine = ScriptedEngine("ok", profile="deepseek-v4-flash")
    with Server(engine, context=4) as server:
        done = ask(server, ASKED[:1])
    assert done[0].fatal
    assert "--context" in (done[0].error or "")


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with OpenAIEndpoint(f"http://127.0.0.1:{port}/v1", "m", retries=0) as endpoint:
        (outcome,) = endpoint.ask(ASKED[:1])
    assert "cannot be reached" in (outcome.error or "")


@pytest.mark.parametrize(
    "url", ["ftp://host/v1", "no url", "http://", "http://host:abc/v1", "http://[::1/v1"]
)
def test_urls_that_are_none(url) -> None:
    with pytest.raises(InputError, match="base_url"):
        OpenAIEndpoint(url, "m")


def test_calls_run_at_once() -> None:
    together = threading.Barrier(4, timeout=10)

    class Waiting:
        def reply(self, body, path):
            together.wait()
            return Completion("ok")

    with Server(Waiting()) as server:
        done = ask(server, ASKED[:4], concurrency=4)
    assert all(outcome.reply for outcome in done.values())


@pytest.mark.parametrize("version", ["deepseek-v4", "deepseek-v4.1"])
@pytest.mark.parametrize("mode", ["off", "low", "high", "max"])
def test_the_reasoning_mode_on_the_wire_renders_as_the_profile_does(version, mode) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    fields = reasoning_fields(version, mode)
    with Server(ScriptedEngine("ok")) as server:
        ask(server, [Question(0, "Hi", 1, fields)])
        body = server.calls[0].body
    sent = {key: body[key] for key in ("thinking", "reasoning_effort") if key in body}
    assert sent == fields
    rendered = load_renderer(version, reasoning=mode).render(messages, {})
    assert load_renderer(version).render(messages, sent).text == rendered.text


def test_questions_that_differ_have_other_digests() -> None:
    one = Question(0, "Hi", 1, {"a": 1})
    others = [
        dataclasses.replace(one, **change) for change in ({"prompt": "Ho"}, {"max_tokens": 2}, {"extra": {}})
    ]
    assert len({question.digest("m") for question in (one, *others)} | {one.digest("n")}) == 5
