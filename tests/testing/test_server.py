"""The server as real clients see it: answers, refusals, records."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import openai
import pytest

from phaseguard.errors import InputError, MissingExtraError
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall
from tests.testing.clients import ASKED, MODEL, async_client, by_number, client

SPOKEN = Completion(
    "A-17",
    tokens=("A", "-17"),
    logprobs=(-0.1, -0.2),
    top=({"A": -0.1, "B": -3.0, "C": -4.0}, {"-17": -0.2}),
    prompt_tokens=7,
    cached_tokens=4,
)


def raw(url: str, body: bytes | None = None, method: str | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_answer_with_everything_in_it() -> None:
    with Server(ScriptedEngine(SPOKEN)) as server, client(server) as asking:
        reply = asking.chat.completions.create(**ASKED, logprobs=True, top_logprobs=2)
    (choice,) = reply.choices
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (
        "A-17",
        "assistant",
        "stop",
    )
    assert reply.model == MODEL
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (7, 2, 9)
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.prompt_tokens_details.cached_tokens == 4
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    said = [
        (t.token, t.logprob, [(b.token, b.logprob) for b in t.top_logprobs]) for t in choice.logprobs.content
    ]
    assert said == [("A", -0.1, [("A", -0.1), ("B", -3.0)]), ("-17", -0.2, [("-17", -0.2)])]
    assert bytes(choice.logprobs.content[1].bytes or ()) == b"-17"


def test_what_is_not_asked_for_or_not_known_is_left_out() -> None:
    with Server(ScriptedEngine([SPOKEN, Completion("A-17")])) as server, client(server) as asking:
        unasked = asking.chat.completions.create(**ASKED)
        unknown = asking.chat.completions.create(**ASKED, logprobs=True)
    assert unasked.choices[0].logprobs is unknown.choices[0].logprobs is None
    assert unknown.usage is None


async def test_async_and_raw_responses() -> None:
    with Server(ScriptedEngine("A-17")) as server:
        async with async_client(server) as asking:
            reply = await asking.chat.completions.create(**ASKED)
            whole = await asking.chat.completions.with_raw_response.create(**ASKED)
        with client(server) as plain:
            sync = plain.chat.completions.with_raw_response.create(**ASKED)
    assert reply.choices[0].message.content == "A-17"
    assert sync.headers["content-type"].startswith("application/json")
    assert [json.loads(r.text)["id"] for r in (whole, sync)] == ["chatcmpl-1", "chatcmpl-2"]


def test_tools_and_response_formats_reach_the_engine_and_tool_calls_come_back() -> None:
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    called = Completion(None, (ToolCall("look_up", '{"code": 17}'), ToolCall("stop")))
    with Server(ScriptedEngine(called)) as server, client(server) as asking:
        reply = asking.chat.completions.create(
            **ASKED, tools=[tool], tool_choice="auto", response_format={"type": "json_object"}
        )
    (choice,) = reply.choices
    assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")
    calls = [(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or ()]
    assert calls == [("call_0_0", "look_up", '{"code": 17}'), ("call_0_1", "stop", "{}")]
    body = server.calls[0].body
    assert (body["tools"], body["response_format"]) == ([tool], {"type": "json_object"})


def test_every_request_is_recorded_without_its_key() -> None:
    with Server(ScriptedEngine("A-17"), key="sk-secret") as server:
        with client(
            server, key="sk-secret", default_headers={"X-Trace": "7", "api-key": "sk-other"}
        ) as asking:
            asking.chat.completions.create(**ASKED, temperature=0)
            asking.models.list()
        with client(server, key="sk-wrong") as other, pytest.raises(openai.AuthenticationError):
            other.chat.completions.create(**ASKED)
        first, listed, refused = server.calls
        assert [c.number for c in server.calls] == [0, 1, 2]
        assert (first.path, listed.path) == ("/v1/chat/completions", "/v1/models")
        assert first.body == {**ASKED, "temperature": 0}
        assert listed.body == {}
        assert refused.body == ASKED
        assert first.texts == ("Which code?",)
        assert first.headers["x-trace"] == "7"
        assert first.headers["authorization"] == first.headers["api-key"] == "(hidden)"
        assert "sk-" not in repr(server.calls)
        assert 0 <= first.at <= listed.at <= refused.at
        server.reset()
        assert server.calls == ()


def test_models() -> None:
    with Server(ScriptedEngine("A-17"), models=["one", "org/two"]) as server, client(server) as asking:
        assert [model.id for model in asking.models.list()] == ["one", "org/two"]
        assert asking.models.retrieve("org/two").id == "org/two"
        with pytest.raises(openai.NotFoundError, match="three"):
            asking.models.retrieve("three")


@pytest.mark.parametrize(("given", "says"), [("sk-wrong", "Incorrect API key"), ("", "didn't provide")])
def test_a_wrong_key(given: str, says: str) -> None:
    with Server(ScriptedEngine("A-17"), key="sk-right") as server:
        header = {"Authorization": f"Bearer {given}"} if given else {}
        request = urllib.request.Request(f"{server.url}/models", headers=header)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=10)
        with caught.value as answer:
            error = json.load(answer)["error"]
    assert caught.value.code == 401
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
    assert says in error["message"]


@pytest.mark.parametrize(
    ("changed", "status", "param", "says"),
    [
        ({"model": "other"}, 404, "model", "`other` does not exist"),
        ({"model": None}, 400, "model", "provide a model"),
        ({"messages": []}, 400, "messages", "at least one message"),
        ({"messages": "Hi"}, 400, "messages", "must be a list"),
        ({"n": 2}, 400, "n", "one choice"),
        ({"n": [1]}, 400, "n", "one choice"),
        ({"max_tokens": -1}, 400, "max_tokens", "whole number"),
        ({"max_completion_tokens": True}, 400, "max_completion_tokens", "whole number"),
        ({"top_logprobs": 2}, 400, "top_logprobs", "only allowed"),
        ({"logprobs": True, "top_logprobs": "x"}, 400, "top_logprobs", "0 to 20"),
    ],
)
def test_refusals_say_what_is_wrong(changed: dict[str, Any], status: int, param: str, says: str) -> None:
    with Server(ScriptedEngine("A-17")) as server:
        code, body = raw(f"{server.url}/chat/completions", json.dumps({**ASKED, **changed}).encode())
    assert (code, body["error"]["param"]) == (status, param)
    assert says in body["error"]["message"]


def test_what_is_no_request_at_all() -> None:
    with Server(ScriptedEngine("A-17")) as server:
        for body in (b"{", b"[]", b"", b"\xff"):
            code, said = raw(f"{server.url}/chat/completions", body, "POST")
            assert (code, said["error"]["type"]) == (400, "invalid_request_error")
        assert raw(f"{server.url}/embeddings", b"{}")[0] == 404
        assert raw(f"{server.url}/chat/completions")[0] == 405
        assert len(server.calls) == 6


def test_a_prompt_beyond_the_context() -> None:
    engine = ScriptedEngine("A-17", profile="deepseek-v4-flash")
    with Server(engine, context=10) as server, client(server) as asking:
        assert asking.chat.completions.create(**ASKED, max_tokens=3).usage
        with pytest.raises(openai.BadRequestError, match="maximum context length is 10 tokens") as caught:
            asking.chat.completions.create(**ASKED, max_tokens=4)
    assert caught.value.code == "context_length_exceeded"


def test_errors_of_engines() -> None:
    def answer(body: Mapping[str, Any]) -> str:
        if body["messages"][0]["content"] == "broken":
            raise RuntimeError("no memory")
        raise InputError("The prompt is empty.")

    with Server(ScriptedEngine(answer)) as server, client(server) as asking:
        with pytest.raises(openai.BadRequestError, match="The prompt is empty"):
            asking.chat.completions.create(**ASKED)
        with pytest.raises(openai.InternalServerError, match="RuntimeError: no memory"):
            asking.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "broken"}])


async def test_async_engines() -> None:
    class Async:
        async def reply(self, body: Mapping[str, Any], path: str) -> Completion:
            return Completion(f"{path} {threading.current_thread().name}")

    class Late:
        def reply(self, body: Mapping[str, Any], path: str) -> Any:
            return Async().reply(body, path)

    for engine in (Async(), Late()):
        with Server(engine) as server, client(server) as asking:
            text = asking.chat.completions.create(**ASKED).choices[0].message.content
        assert text == "/v1/chat/completions phaseguard-server"


def test_what_faults_and_engines_give_is_checked() -> None:
    class Nothing:
        def reply(self, body: Mapping[str, Any], path: str) -> Any:
            return "A-17" if body.get("seed") else None

    faults: Any = {0: "delay"}
    with Server(Nothing(), faults=by_number(faults)) as server, client(server) as asking:
        for says in ("faults gave a str", "reply gave a NoneType"):
            with pytest.raises(openai.InternalServerError, match=says):
                asking.chat.completions.create(**ASKED)


def test_a_server_is_on_the_loopback_interface_and_gone_behind_its_block() -> None:
    server = Server(ScriptedEngine("A-17"))
    with pytest.raises(InputError, match="not running"):
        _ = server.url
    with server:
        assert server.url.startswith("http://127.0.0.1:")
        with pytest.raises(InputError, match="is running"):
            server.__enter__()
    host = server.url.removeprefix("http://").removesuffix("/v1")
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(host, timeout=5).request("GET", "/v1/models")
    assert not [t for t in threading.enumerate() if t.name.startswith("phaseguard")]


def test_a_server_can_be_started_again() -> None:
    server = Server(ScriptedEngine("A-17"))
    for _ in range(2):
        with server, client(server) as asking:
            assert asking.chat.completions.create(**ASKED).choices[0].message.content == "A-17"
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"engine": "A-17"}, "no reply"),
        ({"models": "one"}, "list of at least one"),
        ({"models": []}, "list of at least one"),
        ({"context": 0}, "from 1"),
    ],
)
def test_arguments(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Server(**{"engine": ScriptedEngine("A-17"), **wrong})


def test_a_server_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(site: Any) -> None:
        raise OSError("no port is free")

    monkeypatch.setattr("aiohttp.web.TCPSite.start", start)
    with pytest.raises(OSError, match="no port is free"):
        Server(ScriptedEngine("A-17")).__enter__()


def test_without_aiohttp_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "phaseguard.testing.app", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'phaseguard\[testing\]'"):
        Server(ScriptedEngine("A-17")).__enter__()


def test_importing_loads_neither_a_server_nor_a_framework() -> None:
    heavy = ["aiohttp", "openai", "torch", "transformers", "langchain_core", "llama_index"]
    script = f"import sys, phaseguard.testing; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
