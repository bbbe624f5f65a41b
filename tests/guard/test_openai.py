"""Wrapped openai clients, version 2 and 3, over HTTP: phases as the server received them."""

from __future__ import annotations

import asyncio
import contextvars
import json
from itertools import pairwise

import openai
import pytest
from pydantic import BaseModel

from phaseguard import PhaseGuard
from phaseguard.errors import InputError, PhaseGuardWarning
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall, assert_phases, phases_on_wire
from tests.guard.prompts import ATTIC, STRONG, TEXT, TOOLS, VAULT, payload

CODE = "PROVOCATIVE-8417"
MODELS = ["deepseek-v4-flash", "gpt-5"]


class Found(BaseModel):
    code: str


@pytest.fixture(scope="module")
def server():
    with Server(ScriptedEngine('{"code": "A-17"}'), models=MODELS) as running:
        yield running


@pytest.fixture
def url(server):
    server.reset()
    return server.url


@pytest.fixture
def guard():
    made = PhaseGuard(strong=STRONG)
    with made.request():
        made.mark([VAULT])
        yield made


@pytest.fixture
def client(guard, url):
    with openai.OpenAI(base_url=url, api_key="any") as given:
        yield guard.wrap(given)


def ask_create(client, **more):
    return client.chat.completions.create(**payload(**more)).choices[0].message.content


def ask_streamed(client, **more):
    with client.chat.completions.create(**payload(**more), stream=True) as chunks:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_stream(client, **more):
    with client.chat.completions.stream(**payload(**more)) as events:
        return events.get_final_completion().choices[0].message.content


def ask_parse(client, **more):
    parsed = client.chat.completions.parse(**payload(**more), response_format=Found)
    return parsed.choices[0].message.parsed.model_dump_json().replace(":", ": ")


def ask_stream_parsed(client, **more):
    with client.chat.completions.stream(**payload(**more), response_format=Found) as events:
        return events.get_final_completion().choices[0].message.content


def ask_raw(client, **more):
    raw = client.chat.completions.with_raw_response.create(**payload(**more))
    return raw.parse().choices[0].message.content


def ask_root_raw(client, **more):
    raw = client.with_raw_response.chat.completions.create(**payload(**more))
    return raw.parse().choices[0].message.content


def ask_streaming_response(client, **more):
    with client.chat.completions.with_streaming_response.create(**payload(**more)) as response:
        return response.parse().choices[0].message.content


def ask_with_options(client, **more):
    return ask_create(client.with_options(timeout=30, max_retries=0).copy(default_headers={"x": "y"}), **more)


def ask_beta(client, **more):
    return client.beta.chat.completions.parse(**payload(**more)).choices[0].message.content


WAYS = [
    ask_create,
    ask_streamed,
    ask_stream,
    ask_parse,
    ask_stream_parsed,
    ask_raw,
    ask_root_raw,
    ask_streaming_response,
    ask_with_options,
    ask_beta,
]


def check(client, server, ask, **more):
    assert ask(client, **more) == '{"code": "A-17"}'
    (sent,) = server.calls
    assert_phases(sent, CODE, STRONG)
    assert sent.body["messages"][0]["content"].split() == TEXT.split()
    return sent.body


@pytest.mark.parametrize("ask", WAYS)
def test_every_way_to_ask_is_aligned(client, server, ask):
    check(client, server, ask)


# DeepSeek's encoder refuses a response format beside tools
@pytest.mark.parametrize("ask", [ask for ask in WAYS if "parse" not in ask.__name__])
def test_every_way_to_ask_with_tools_is_aligned(client, server, ask):
    body = check(client, server, ask, tools=[openai.pydantic_function_tool(Found)])
    assert body["tools"][0]["function"]["name"] == "Found"


def test_without_the_guard_the_phase_is_weak(server, url):
    with openai.OpenAI(base_url=url, api_key="any") as plain:
        ask_create(plain)
    with pytest.raises(AssertionError, match="phase 2"):
        assert_phases(server.calls[0], CODE, STRONG)


async def ask_all(client):
    chat = client.chat.completions
    done = [await chat.create(**payload())]
    done.append(await chat.parse(**payload(), response_format=Found))
    done.append((await chat.with_raw_response.create(**payload())).parse())
    done.append(await client.with_options(timeout=30).chat.completions.create(**payload()))
    async with chat.with_streaming_response.create(**payload()) as response:
        done.append(await response.parse())
    async with chat.stream(**payload(), response_format=Found) as events:
        done.append(await events.get_final_completion())
    parts = [part async for part in await chat.create(**payload(), stream=True) if part.choices]
    said = "".join(part.choices[0].delta.content or "" for part in parts)
    return [*(one.choices[0].message.content for one in done), said]


def test_asynchronous_clients(guard, server, url):
    async def main():
        async with openai.AsyncOpenAI(base_url=url, api_key="any") as given:
            assert isinstance(guard.wrap(given), openai.AsyncOpenAI)
            return await ask_all(guard.wrap(given))

    assert asyncio.run(main()) == ['{"code": "A-17"}'] * 7
    assert len(server.calls) == 7
    for sent in server.calls:
        assert_phases(sent, CODE, STRONG)


def test_users_at_the_same_time_get_their_own_marks(server, url):
    guard = PhaseGuard(strong=STRONG)

    async def user(client, number):
        question = f"Which is the code of room {number}?"
        rooms = [f"The code of room {n} is KEY-{n}{n}." for n in range(4)]
        guard.mark([rooms[number % 4]], query=question)
        text = "\n\n".join([*rooms, question])
        await client.chat.completions.create(**payload(text))

    async def main():
        async with openai.AsyncOpenAI(base_url=url, api_key="any") as given:
            client = guard.wrap(given)
            await asyncio.gather(*(user(client, number) for number in range(40)))

    asyncio.run(main())
    assert len(server.calls) == 40
    for sent in server.calls:
        text = sent.body["messages"][0]["content"]
        key = f"{int(text.rsplit(' ', 1)[1][:-1]) % 4}"
        given = "\n\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
        alone = PhaseGuard(strong=STRONG).align(
            given, key_passages=[f"The code of room {key} is KEY-{key * 2}."]
        )
        assert text == alone.prompt


def answer(body):
    """A tool call where a user asks, an answer where a tool has answered."""
    count = len(body["messages"])
    if body["messages"][-1]["role"] == "tool":
        return f"It is {count}."
    return Completion(None, tool_calls=(ToolCall("look_up", f'{{"query": "q{count}"}}'),))


def test_a_conversation_with_tools_over_six_turns():
    guard = PhaseGuard(strong=STRONG)
    with Server(ScriptedEngine(answer), models=MODELS) as server:
        with openai.OpenAI(base_url=server.url, api_key="any") as given:
            contextvars.copy_context().run(converse, guard, guard.wrap(given))
        bodies = [sent.body for sent in server.calls]
    assert len(bodies) == 12
    for number, (before, after) in enumerate(pairwise(bodies)):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        codes = [f"ROOM-{turn}77" for turn in range((number + 1) // 2)]
        if codes:
            assert phases_on_wire(before, codes) == phases_on_wire(after, codes)
            assert_phases(before, codes, STRONG)


def converse(guard, client):
    """Six turns, each with a tool call; what is found is marked, and the marks are gone in the next turn."""
    history = []
    for turn in range(6):
        history.append({"role": "user", "content": f"{ATTIC}\n\nWhich is the code of room {turn}?"})
        ask = {"model": MODELS[0], "messages": history, "tools": TOOLS}
        reply = client.chat.completions.create(**ask).choices[0].message
        history.append(reply.model_dump(exclude_none=True))
        found = f"The code of room {turn} is ROOM-{turn}77."
        guard.mark([found], query=json.loads(reply.tool_calls[0].function.arguments)["query"])
        history.append({"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": found})
        reply = client.chat.completions.create(**ask).choices[0].message
        history.append({"role": "assistant", "content": reply.content})


def test_extra_body_counts_as_the_server_reads_it(client, server):
    ask_create(client, extra_body={"tools": TOOLS})
    (sent,) = server.calls
    assert sent.body["tools"] == TOOLS
    assert_phases(sent, CODE, STRONG)
    own = [{"role": "user", "content": TEXT}]
    ask_create(client, extra_body={"messages": own})
    assert server.calls[-1].body["messages"] == own


def test_unknown_models_are_normalized_only(client, server):
    with pytest.warns(PhaseGuardWarning, match="gpt-5"):
        ask_create(client, model="gpt-5", messages=[{"role": "user", "content": "Hi. \n\n\n\nYou."}])
    assert server.calls[0].body["messages"] == [{"role": "user", "content": "Hi.\n\nYou."}]


def test_everything_else_is_the_clients_own(client, server):
    assert [model.id for model in client.models.list()] == MODELS
    done = client.completions.create(model=MODELS[0], prompt=TEXT)
    assert done.choices[0].text
    assert server.calls[-1].body["prompt"] == TEXT
    with pytest.warns(PhaseGuardWarning, match="none"), pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="none", messages=payload()["messages"])


def test_the_given_client_is_left_alone(guard, server, url):
    class Own(openai.OpenAI):
        def __init__(self, team):
            super().__init__(base_url=url, api_key="any", max_retries=7, default_headers={"x-own": "1"})
            self.team = team

    with Own("a") as given:
        ask_create(given)
        wrapped = guard.wrap(given)
        assert isinstance(wrapped, Own)
        assert (wrapped.max_retries, wrapped.base_url, wrapped.team) == (7, given.base_url, "a")
        ask_create(wrapped)
        ask_create(given)
        ask_create(guard.wrap(wrapped))
    before, guarded, plain, twice = (sent.body["messages"] for sent in server.calls)
    assert before == plain == payload()["messages"]
    assert guarded != plain
    assert twice == guarded
    assert server.calls[1].headers["x-own"] == "1"
    assert type(given) is Own


def test_azure_clients_too(guard, monkeypatch):
    sent = []
    monkeypatch.setattr(openai.AzureOpenAI, "post", lambda self, path, **kwargs: sent.append(kwargs["body"]))
    with openai.AzureOpenAI(azure_endpoint="http://127.0.0.1:9", api_key="any", api_version="1") as given:
        guard.wrap(given).chat.completions.create(**payload())
    assert_phases(sent[0], CODE, STRONG)


@pytest.mark.parametrize("client", [None, object(), openai])
def test_other_clients_are_refused(guard, client):
    with pytest.raises(InputError, match="align_payload"):
        guard.wrap(client)
