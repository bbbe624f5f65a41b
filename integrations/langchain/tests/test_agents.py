"""Agents whose model is wrapped: what they are sent is seen through retries, fallbacks and bindings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_phaseguard import PhaseGuardMiddleware
from pydantic import BaseModel

from phaseguard.testing import Completion, Fault, ScriptedEngine, Server, ToolCall

from .case import KEY, MODEL, PASSAGE, QUERY, chat, every_phase, guard_for, phase_of, serving
from .server import Clients

ASKED: Any = {"messages": [HumanMessage(f"Notes:\n\n{PASSAGE}\n\n{QUERY}")]}


@tool
def look_up(code: str) -> str:
    """Say which door a code opens."""
    return f"{code} opens the vault."


class Found(BaseModel):
    """The code that was asked for."""

    code: str


def with_broken(model: Any, clients: Clients, broken: Server) -> Any:
    return chat(ChatOpenAI, broken, clients).with_fallbacks([model])


WRAPPED: dict[str, Callable[..., Any]] = {
    "fallbacks": with_broken,
    "bound": lambda model, *_: model.bind(seed=3),
    "retried": lambda model, *_: model.with_retry(),
}
# a model that is retried cannot be given tools, guarded or not
PAIRS = [("fallbacks", [look_up]), ("bound", [look_up]), ("fallbacks", []), ("bound", []), ("retried", [])]
every_wrapping = pytest.mark.parametrize(("kind", "tools"), PAIRS)


def broken() -> Server:
    return Server(ScriptedEngine(KEY), models=(MODEL,), faults=lambda _: Fault("status", code=500))


@every_wrapping
@every_phase
def test_the_answer_stands_where_it_should(clients: Clients, kind: str, tools: Any, strong: int) -> None:
    with broken() as first, serving() as server:
        model = WRAPPED[kind](chat(ChatOpenAI, server, clients), clients, first)
        agent = create_agent(model, tools, middleware=[PhaseGuardMiddleware(guard_for(strong))])
        assert agent.invoke(ASKED)["messages"][-1].content == KEY
        assert [phase_of(call) for call in server.calls] == [strong]
        assert len(server.calls[0].body.get("tools") or ()) == len(tools)


@every_wrapping
def test_one_answer_of_an_ensemble_is_streamed(clients: Clients, kind: str, tools: Any) -> None:
    with broken() as first, serving() as server:
        model = WRAPPED[kind](chat(ChatOpenAI, server, clients), clients, first)
        middleware = PhaseGuardMiddleware(guard_for(1), ensemble={"layouts": 3, "stop": "all"})
        parts = create_agent(model, tools, middleware=[middleware]).stream(ASKED, stream_mode="messages")
        assert "".join(message.text for message, _ in parts) == KEY
        assert {phase_of(call) for call in server.calls} == {1, 2, 3}


@every_phase
def test_a_bare_schema_becomes_a_tool_where_the_agent_makes_it_one(clients: Clients, strong: int) -> None:
    """What fallbacks offer by their profile, agents do not look at."""
    answer = Completion(None, (ToolCall("Found", f'{{"code": "{KEY}"}}'),))
    with broken() as first, serving(lambda _: answer) as server:
        profile: Any = {"structured_output": True}
        model = chat(ChatOpenAI, first, clients, profile=profile).with_fallbacks(
            [chat(ChatOpenAI, server, clients, profile=profile)]
        )
        middleware = [PhaseGuardMiddleware(guard_for(strong))]
        agent = create_agent(model, [], middleware=middleware, response_format=Found)
        assert agent.invoke(ASKED)["structured_response"] == Found(code=KEY)
        (call,) = server.calls
        assert [one["function"]["name"] for one in call.body["tools"]] == ["Found"]
        assert phase_of(call) == strong


@pytest.mark.parametrize("ensemble", [None, {"layouts": 2}])
async def test_aligning_does_not_hold_up_the_event_loop(clients: Clients, ensemble: Any) -> None:
    threads: list[int] = []
    guard = guard_for(1, on_report=lambda _: threads.append(threading.get_ident()))
    with serving() as server:
        middleware = [PhaseGuardMiddleware(guard, ensemble=ensemble)]
        agent = create_agent(chat(ChatOpenAI, server, clients), [look_up], middleware=middleware)
        await agent.ainvoke(ASKED)
        assert {phase_of(call) for call in server.calls[:1]} == {1}
    assert len(threads) == 1
    assert threads != [threading.get_ident()]
