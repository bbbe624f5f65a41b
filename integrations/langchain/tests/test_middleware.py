"""Agents: aligned on the wire, turn after turn, with tools and structured answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    ChatPhaseGuard,
    PhaseGuardChatDeepSeek,
    PhaseGuardChatOpenAI,
    PhaseGuardMiddleware,
    PhaseGuardRetriever,
)
from pydantic import BaseModel

from phaseguard import PhaseGuard
from phaseguard.errors import InputError, PhaseGuardWarning
from phaseguard.testing import Call, Completion, ToolCall, phases_on_wire

from .case import KEY, MODEL, QUERY, Store, asked, both_ways, chat, documents, every_phase, guard_for, serving
from .server import Clients

SYSTEM = "You answer questions about a building.\n\nYou know nothing but your notes."
ROOMS = ("vault", "attic", "cellar", "garage", "garden", "library", "kitchen")


def code_of(room: str) -> str:
    return f"PROVOCATIVE-{4000 + 37 * ROOMS.index(room)}"


def found(query: str) -> list[Document]:
    """Notes of a room, the right one first."""
    room = query.rsplit(maxsplit=1)[-1]
    return [
        Document(f"Under the stairs somebody wrote {code_of(room)} with chalk, for the {room}."),
        Document(f"Whoever asks for the {room} has to wear a hat."),
        Document("The porter counts to 1203 before he opens."),
    ]


@tool
def weather(city: str) -> str:
    """Say what the weather is like in a city."""
    return f"Rain in {city}, with 12 degrees."


def tools_for(guard: PhaseGuard) -> list[Any]:
    retriever = PhaseGuardRetriever(RunnableLambda(found), guard, top=1)
    notes = create_retriever_tool(
        retriever, "notes", "Search the notes for a room.", response_format="content_and_artifact"
    )
    return [notes, weather]


def answer(body: Mapping[str, Any]) -> Completion | str:
    """Searches once for each question, and asks for the weather beside it; then says the code."""
    last = body["messages"][-1]
    names = [one["function"]["name"] for one in body.get("tools") or ()]
    if last["role"] == "user":
        room = last["content"].strip().split()[-1].rstrip("?")
        calls = (ToolCall("notes", json.dumps({"query": room})), ToolCall("weather", '{"city": "Oslo"}'))
        return Completion(None, calls)
    text = next(m["content"] for m in reversed(body["messages"]) if "PROVOCATIVE" in (m["content"] or ""))
    code = "PROVOCATIVE-" + text.split("PROVOCATIVE-")[1][:4]
    if "Found" in names:
        return Completion(None, (ToolCall("Found", json.dumps({"code": code})),))
    return json.dumps({"code": code}) if body.get("response_format") else code


class Found(BaseModel):
    """The code that was asked for."""

    code: str


def last_code(call: Call) -> str:
    """The code that the last question is about."""
    said = [m["content"] for m in call.body["messages"] if m["role"] == "user"]
    return code_of(said[-1].split()[-1].rstrip("?"))


async def converse(agent: Any, way: str, turns: int) -> list[Any]:
    history: list[Any] = []
    for room in ROOMS[:turns]:
        history.append(("user", f"Which code opens the {room}?"))
        state = await asked(agent, way, {"messages": history})
        history = state["messages"]
        assert history[-1].content == code_of(room)
    return history


def prefixes_stay(calls: tuple[Call, ...]) -> None:
    for before, after in pairwise(calls):
        sent = before.body["messages"]
        assert after.body["messages"][: len(sent)] == sent, "earlier messages are sent again as they were"
        assert after.body["tools"] == before.body["tools"]


@both_ways
@every_phase
async def test_earlier_turns_stay_as_they_were_sent(clients: Clients, way: str, strong: int) -> None:
    guard = guard_for(strong)
    with serving(answer) as server:
        agent = create_agent(
            chat(ChatOpenAI, server, clients),
            tools_for(guard),
            system_prompt=SYSTEM,
            middleware=[PhaseGuardMiddleware(guard)],
        )
        history = await converse(agent, way, 6)
        calls = server.calls
    assert len(calls) == 12
    prefixes_stay(calls)
    places: dict[str, set[int]] = {}
    for call in calls[1::2]:
        for room in ROOMS[: ROOMS.index(last_room(call)) + 1]:
            for place in phases_on_wire(call, code_of(room), MODEL):
                places.setdefault(room, set()).add(place.index)
                break
    assert {room: {index % 4 for index in indexes} for room, indexes in places.items()} == {
        room: {strong} for room in ROOMS[:6]
    }
    assert all(len(indexes) == 1 for indexes in places.values()), "positions stay"
    assert all(" \t" not in str(message.content) for message in history), "the state has no pads"


def last_room(call: Call) -> str:
    said = [m["content"] for m in call.body["messages"] if m["role"] == "user"]
    return str(said[-1].split()[-1].rstrip("?"))


@both_ways
async def test_a_retriever_tool_needs_no_guard_of_its_own(clients: Clients, way: str) -> None:
    """Its artifact holds the documents."""
    guard = guard_for(2)
    plain = create_retriever_tool(
        Store(found=found("vault")[:1]), "notes", "Search the notes.", response_format="content_and_artifact"
    )
    with serving(answer) as server:
        middleware = PhaseGuardMiddleware(guard)
        agent = create_agent(chat(ChatOpenAI, server, clients), [plain, weather], middleware=[middleware])
        await asked(agent, way, {"messages": [("user", "Which code opens the vault?")]})
        call = server.calls[-1]
    assert phases_on_wire(call, code_of("vault"), MODEL)[0].phase == 2


@both_ways
@every_phase
async def test_a_tool_strategy_adds_its_tool(clients: Clients, way: str, strong: int) -> None:
    guard = guard_for(strong)
    with serving(answer) as server:
        agent = create_agent(
            chat(ChatOpenAI, server, clients),
            tools_for(guard),
            response_format=ToolStrategy(Found),
            middleware=[PhaseGuardMiddleware(guard)],
        )
        state = await asked(agent, way, {"messages": [("user", "Which code opens the vault?")]})
        call = server.calls[-1]
    assert state["structured_response"] == Found(code=code_of("vault"))
    assert [one["function"]["name"] for one in call.body["tools"]] == ["notes", "weather", "Found"]
    assert phases_on_wire(call, code_of("vault"), MODEL)[0].phase == strong


@both_ways
@every_phase
@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # langchain-openai, of parsed answers
async def test_a_provider_strategy_adds_its_format(
    clients: Clients, way: str, strong: int, bare: bool
) -> None:
    guard = guard_for(strong)
    code = json.dumps({"code": KEY})
    with serving(code) as server:
        model = chat(ChatOpenAI, server, clients, profile={"structured_output": True})
        agent = create_agent(
            model,
            [],
            response_format=Found if bare else ProviderStrategy(Found),
            middleware=[PhaseGuardMiddleware(guard)],
        )
        notes = "\n\n".join(document.page_content for document in documents())
        state = await asked(agent, way, {"messages": [("user", f"{notes}\n\n{QUERY} JSON, please.")]})
        (call,) = server.calls
    assert state["structured_response"] == Found(code=KEY)
    assert call.body["response_format"]["type"] == "json_schema"
    assert phases_on_wire(call, KEY, MODEL)[0].phase == strong


@both_ways
async def test_a_bare_schema_is_a_tool_where_the_model_offers_no_format(clients: Clients, way: str) -> None:
    guard = guard_for(3)
    with serving(answer) as server:
        agent = create_agent(
            chat(ChatOpenAI, server, clients),
            tools_for(guard),
            response_format=Found,
            middleware=[PhaseGuardMiddleware(guard)],
        )
        state = await asked(agent, way, {"messages": [("user", "Which code opens the vault?")]})
        call = server.calls[-1]
    assert state["structured_response"] == Found(code=code_of("vault"))
    assert phases_on_wire(call, code_of("vault"), MODEL)[0].phase == 3


class _Changes(AgentMiddleware):
    """Changes the request as it likes."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.change(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.change(request))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "system": lambda request: request.override(system_message=SystemMessage("Be brief.")),
    "messages": lambda request: request.override(messages=request.messages[-1:]),
    "tools": lambda request: request.override(tools=request.tools[:1]),
}


@both_ways
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("ensemble", [None, {"layouts": 2}])
async def test_a_middleware_behind_it_is_noticed(
    clients: Clients, way: str, change: Any, ensemble: Any
) -> None:
    guard = guard_for(1)
    given = {"messages": [("user", "Hello."), ("ai", "Hi."), ("user", f"{KEY}. {QUERY}")]}
    with serving() as server:
        model = chat(ChatOpenAI, server, clients)
        own, other = PhaseGuardMiddleware(guard, ensemble=ensemble), _Changes(change)
        last = create_agent(model, tools_for(guard), system_prompt=SYSTEM, middleware=[other, own])
        await asked(last, way, given)
        first = create_agent(model, tools_for(guard), system_prompt=SYSTEM, middleware=[own, other])
        with pytest.warns(PhaseGuardWarning, match="put it last"):
            await asked(first, way, given)


@both_ways
@pytest.mark.parametrize("kind", ["wrapper", "openai", "deepseek"])
async def test_a_guarded_model_is_left_to_itself(clients: Clients, way: str, kind: str) -> None:
    guard = guard_for(1)
    with serving(answer) as server:
        if kind == "wrapper":
            model: Any = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        else:
            made = PhaseGuardChatOpenAI if kind == "openai" else PhaseGuardChatDeepSeek
            model = chat(made, server, clients, guard=guard)
        behind = _Changes(lambda request: request.override(system_message=SystemMessage("Be brief, please.")))
        agent = create_agent(
            model,
            tools_for(guard),
            system_prompt=SYSTEM,
            response_format=ToolStrategy(Found),
            middleware=[PhaseGuardMiddleware(guard), behind],
        )
        state = await asked(agent, way, {"messages": [("user", "Which code opens the vault?")]})
        call = server.calls[-1]
    assert state["structured_response"] == Found(code=code_of("vault"))
    assert call.texts[0] == "Be brief, please."
    assert phases_on_wire(call, code_of("vault"), MODEL)[0].phase == 1


@pytest.mark.parametrize(
    "options", [{"profile": MODEL}, {"layers": 3}, {"stop": "soon"}, {"report_ties": True}]
)
def test_options_that_do_not_fit_are_told_at_once(options: Any) -> None:
    with pytest.raises(InputError):
        PhaseGuardMiddleware(PhaseGuard(), ensemble=options)


def test_models_without_tools_work(clients: Clients) -> None:
    agent = create_agent(
        FakeListChatModel(responses=["Hello."]), middleware=[PhaseGuardMiddleware(PhaseGuard())]
    )
    assert agent.invoke({"messages": [("user", "Hello.")]})["messages"][-1].content == "Hello."
