"""Ensembles in a chain and in an agent: several layouts are asked, one answer comes back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    ChatPhaseGuard,
    PhaseGuardChatOpenAI,
    PhaseGuardMiddleware,
    ensemble_chain,
)
from langgraph.graph import START, MessagesState, StateGraph

from phaseguard.errors import AllCallsFailedError, InputError, PhaseGuardWarning
from phaseguard.testing import Call, Completion, Fault, ScriptedEngine, Server, ToolCall, phases_on_wire

from .case import (
    KEY,
    MODEL,
    PASSAGE,
    QUERY,
    asked,
    both_ways,
    chat,
    documents,
    guard_for,
    packed,
    rag,
    serving,
)
from .server import Clients
from .test_middleware import SYSTEM, Found, answer, code_of, tools_for

TEXT = f"{packed(documents())}\n\n{QUERY}"


def by_phase(body: Mapping[str, Any]) -> str:
    """Right but where the passage stands at phase 0."""
    return "I do not know." if phase(body) == 0 else KEY


def phase(body: Mapping[str, Any]) -> int:
    return phases_on_wire(body, KEY, MODEL)[0].phase


def phases(calls: tuple[Call, ...]) -> list[int]:
    return [phases_on_wire(call, KEY, MODEL)[0].phase for call in calls]


@both_ways
@pytest.mark.parametrize("kind", ["plain", "wrapper", "mixin"])
async def test_every_layout_is_asked_and_the_majority_answers(clients: Clients, way: str, kind: str) -> None:
    guard = guard_for(0)
    with serving(by_phase) as server:
        made = PhaseGuardChatOpenAI if kind == "mixin" else ChatOpenAI
        model = chat(made, server, clients, **({"guard": guard} if kind == "mixin" else {}))
        if kind == "wrapper":
            model = ChatPhaseGuard(model, guard)
        said = await asked(rag(ensemble_chain(model, guard, stop="all"), guard), way, QUERY)
        found = phases(server.calls)
        usage = [server_usage(call) for call in server.calls]
    assert found[0] == 0, "the strongest layout comes first"
    assert sorted(found) == [0, 1, 2, 3]
    assert said.content == KEY
    assert said.usage_metadata["input_tokens"] == sum(usage)
    told = said.response_metadata["phaseguard"]
    assert (told["answer"], told["support"], told["counted"], told["calls"]) == (KEY, 3, 4, 4)
    assert told["phase"] != 0
    assert json.loads(json.dumps(told)) == told
    assert said.response_metadata["model_name"] == MODEL


def server_usage(call: Call) -> int:
    """Tokens of a prompt, as the engine counts them."""
    counted = ScriptedEngine(KEY, profile=MODEL).reply(call.body, call.path)
    return counted.prompt_tokens or 0


@both_ways
async def test_it_stops_when_the_answer_is_clear(clients: Clients, way: str) -> None:
    guard = guard_for(2)
    with serving() as server:
        chain = ensemble_chain(chat(ChatOpenAI, server, clients), guard, layouts=3, concurrency=1)
        said = await asked(chain | StrOutputParser(), way, TEXT)
        assert (said, len(server.calls)) == (KEY, 2)


@both_ways
async def test_tools_stay_bound_and_calls_are_compared_by_value(clients: Clients, way: str) -> None:
    guard = guard_for(1)

    def call(body: Mapping[str, Any]) -> Completion:
        written = ['{"city": "Oslo"}', '{"city":"Oslo"}', '{"city": "Bergen"}', '{ "city" : "Oslo" }']
        return Completion(None, (ToolCall("weather", written[phase(body)]),))

    with serving(call) as server:
        model = chat(ChatOpenAI, server, clients).bind_tools(tools_for(guard))
        said = await asked(ensemble_chain(model, guard, stop="all"), way, TEXT)
        assert sorted(phases(server.calls)) == [0, 1, 2, 3]
        assert all(len(one.body["tools"]) == 2 for one in server.calls)
    assert [one["args"] for one in said.tool_calls] == [{"city": "Oslo"}]
    assert said.response_metadata["phaseguard"]["support"] == 3


@both_ways
async def test_a_failed_call_is_a_missing_ballot(clients: Clients, way: str) -> None:
    guard = guard_for(1)
    engine = ScriptedEngine(KEY, profile=MODEL)

    def second(call: Call) -> Fault | None:
        return Fault("status", code=500) if call.number == 1 else None

    with Server(engine, models=(MODEL,), faults=second) as server:
        said = await asked(ensemble_chain(chat(ChatOpenAI, server, clients), guard, stop="all"), way, TEXT)
    told = said.response_metadata["phaseguard"]
    assert (said.content, told["counted"], told["calls"]) == (KEY, 3, 4)


@both_ways
async def test_when_all_fail_that_is_told(clients: Clients, way: str) -> None:
    with Server(ScriptedEngine(KEY), models=(MODEL,), faults=lambda _: Fault("status", code=500)) as server:
        chain = ensemble_chain(chat(ChatOpenAI, server, clients), guard_for(1))
        with pytest.raises(AllCallsFailedError):
            await asked(chain, way, TEXT)


@both_ways
async def test_a_prompt_that_cannot_be_aligned_is_asked_once(clients: Clients, way: str) -> None:
    with serving() as server:
        chain = ensemble_chain(chat(ChatOpenAI, server, clients, model="fine-tuned"), guard_for(1))
        with pytest.warns(PhaseGuardWarning, match="fine-tuned"):
            said = await asked(chain, way, TEXT)
        assert (said.content, len(server.calls)) == (KEY, 1)
    assert "phaseguard" not in said.response_metadata


@both_ways
async def test_a_second_opinion_takes_the_vote_s_place(clients: Clients, way: str) -> None:
    with serving(lambda body: f"Code {phase(body)}") as server:
        model = chat(ChatOpenAI, server, clients)
        chain = ensemble_chain(model, guard_for(1), stop="all", on_disagreement=lambda verdict: KEY)
        said = await asked(chain, way, TEXT)
    assert (said.content, said.response_metadata["phaseguard"]["answer"]) == (KEY, KEY)
    assert said.usage_metadata["output_tokens"] > 0


@pytest.mark.parametrize("model", [RunnableLambda(str), StrOutputParser()])
def test_only_chat_models_can_be_asked(model: Any) -> None:
    with pytest.raises(InputError, match="no chat model"):
        ensemble_chain(model, guard_for(1))


def agent_for(server: Server, clients: Clients, guard: Any, **more: Any) -> Any:
    return create_agent(
        chat(ChatOpenAI, server, clients),
        tools_for(guard),
        system_prompt=SYSTEM,
        middleware=[PhaseGuardMiddleware(guard, ensemble={"layouts": 4, "stop": "all"})],
        **more,
    )


ASKED = {"messages": [("user", "Which code opens the vault?")]}


@both_ways
async def test_an_agent_asks_several_layouts_of_each_call(clients: Clients, way: str) -> None:
    guard = guard_for(3)
    with serving(answer) as server:
        state = await asked(
            agent_for(server, clients, guard, response_format=ToolStrategy(Found)), way, ASKED
        )
        calls = server.calls
    assert state["structured_response"] == Found(code=code_of("vault"))
    by_length = Counter(len(call.body["messages"]) for call in calls)
    assert set(by_length.values()) == {4}
    places = [
        phases_on_wire(call, code_of("vault"), MODEL)[0].phase
        for call in calls
        if len(call.body["messages"]) == 5
    ]
    assert places[0] == 3
    assert sorted(places) == [0, 1, 2, 3]
    assert all(len(call.body["tools"]) == 3 for call in calls)
    voted = [one for one in state["messages"] if isinstance(one, AIMessage)]
    assert [one.response_metadata["phaseguard"]["calls"] for one in voted] == [4, 4]
    assert [one.tool_calls[0]["name"] for one in voted] == ["notes", "Found"]


@both_ways
async def test_earlier_turns_are_sent_as_the_guard_sends_them(clients: Clients, way: str) -> None:
    guard = guard_for(2)
    with serving(answer) as server:
        agent = agent_for(server, clients, guard)
        state = await asked(agent, way, ASKED)
        turns = [*state["messages"], ("user", "Which code opens the attic?")]
        state = await asked(agent, way, {"messages": turns})
        calls = server.calls
    assert state["messages"][-1].content == code_of("attic")
    firsts: dict[int, Any] = {}
    for call in calls:
        firsts.setdefault(len(call.body["messages"]), call.body["messages"])
    assert list(firsts) == [2, 5, 7, 10]
    for before, after in pairwise(firsts.values()):
        assert after[: len(before)] == before
    for call in calls:
        first = firsts[len(call.body["messages"])]
        said = max((n for n, one in enumerate(first) if one["role"] == "assistant"), default=-1)
        assert call.body["messages"][: said + 1] == first[: said + 1]


async def shown(graph: Any, way: str, given: Any) -> list[Any]:
    """What a user sees under ``stream_mode="messages"``."""
    if way == "sync":
        return [message for message, _ in graph.stream(given, stream_mode="messages")]
    return [message async for message, _ in graph.astream(given, stream_mode="messages")]


@both_ways
async def test_one_answer_is_streamed_by_an_agent(clients: Clients, way: str) -> None:
    guard = guard_for(3)
    with serving(answer) as server:
        messages = await shown(agent_for(server, clients, guard), way, ASKED)
        assert len(server.calls) == 8
    said = [one for one in messages if isinstance(one, AIMessage | AIMessageChunk) and one.content]
    assert [one.content for one in said] == [code_of("vault")]
    assert sum(bool(getattr(one, "tool_calls", None)) for one in messages) == 1


@both_ways
async def test_one_answer_is_streamed_by_a_graph_with_a_chain(clients: Clients, way: str) -> None:
    guard = guard_for(3)
    with serving() as server:
        chain = ensemble_chain(chat(ChatOpenAI, server, clients), guard, stop="all")

        def ask(state: MessagesState) -> Any:
            return {"messages": [chain.invoke(state["messages"])]}

        async def aask(state: MessagesState) -> Any:
            return {"messages": [await chain.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask if way == "sync" else aask)
        graph.add_edge(START, "ask")
        messages = await shown(graph.compile(), way, {"messages": [("user", TEXT)]})
        assert len(server.calls) == 4
    assert [one.content for one in messages] == [KEY]


@both_ways
async def test_without_ensemble_an_agent_asks_once(clients: Clients, way: str) -> None:
    guard = guard_for(3)
    with serving() as server:
        agent = create_agent(chat(ChatOpenAI, server, clients), middleware=[PhaseGuardMiddleware(guard)])
        state = await asked(agent, way, {"messages": [("user", TEXT)]})
        assert len(server.calls) == 1
    assert "phaseguard" not in state["messages"][-1].response_metadata
    assert PASSAGE in server.calls[0].texts[-1]
