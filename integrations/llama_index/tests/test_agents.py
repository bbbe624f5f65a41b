"""Agents, chat engines and many queries at once: earlier turns stay, and marks never cross."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.postprocessor.phaseguard import PhaseGuardPostprocessor

from phaseguard import PhaseGuard
from phaseguard.testing import (
    Call,
    Completion,
    ScriptedEngine,
    Server,
    ToolCall,
    assert_phases,
    phases_on_wire,
)

from .support import (
    KINDS,
    MODEL,
    PASSAGE,
    QUERY,
    STRONG,
    Clients,
    check_strong,
    index,
    make_llm,
)

# agents of LlamaIndex look through all attributes, deprecated ones of pydantic too
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


def look_up(name: str) -> str:
    """Look something up in the archive."""
    return f"Notes on {name}.\n\nThe code that opens {name} is {name.upper()}-8417.\nIt changes in May."


def count(name: str) -> str:
    """Count the doors of a room."""
    return f"{name} has three doors."


def call_then_answer(body: Mapping[str, Any]) -> Completion:
    """Calls both tools in turn for every question, then answers."""
    since = [m["role"] for m in reversed(body["messages"])].index("user")
    asked = body["messages"][len(body["messages"]) - 1 - since]["content"]
    if since == 0 and body.get("tools"):
        return Completion(None, (ToolCall("look_up", json.dumps({"name": asked.split()[-1].strip("?")})),))
    if since == 2:
        return Completion(None, (ToolCall("count", json.dumps({"name": asked.split()[-1].strip("?")})),))
    return Completion("It is found.")


ROOMS = ("vault", "archive", "library", "kitchen", "cellar", "attic")


async def converse(agent: FunctionAgent) -> None:
    memory = ChatMemoryBuffer.from_defaults(token_limit=100_000)
    for room in ROOMS:
        await agent.run(f"Which code opens the {room}?", memory=memory)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_earlier_turns_stay_as_they_were_sent(
    kind: str, streaming: bool, guard: PhaseGuard, clients: Clients
) -> None:
    with Server(ScriptedEngine(call_then_answer, profile=MODEL), models=(MODEL,)) as server:
        llm = make_llm(kind, guard, server.url, clients)
        agent = FunctionAgent(
            tools=[FunctionTool.from_defaults(look_up), FunctionTool.from_defaults(count)],
            llm=llm,
            system_prompt="Use the tools. \n\n\n\nBe brief.",
            streaming=streaming,
        )
        await converse(agent)
        calls = server.calls
    assert len(calls) == 3 * len(ROOMS)
    assert_prefixes(calls)
    for turn, room in enumerate(ROOMS):
        for call in calls[3 * turn + 1 :]:
            assert_phases(call, f"{room.upper()}-8417", {STRONG}, MODEL)


def assert_prefixes(calls: tuple[Call, ...]) -> None:
    for old, new in pairwise(calls):
        assert new.body["messages"][: len(old.body["messages"])] == old.body["messages"]
        assert new.body["tools"] == old.body["tools"]


def test_the_check_of_prefixes_sees_a_change() -> None:
    body = {"messages": [{"role": "user", "content": "A"}], "tools": []}
    changed = {"messages": [{"role": "user", "content": "A "}, *body["messages"]], "tools": []}
    with pytest.raises(AssertionError):
        assert_prefixes((Call(0, "", body), Call(1, "", changed)))


async def test_a_query_engine_as_a_tool_marks_for_the_agent_inside_a_request(
    guard: PhaseGuard, clients: Clients
) -> None:
    """A tool runs in a task of its own, whose marks the agent does not see: a scope holds them together."""
    told: list[Any] = []
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=told.append)

    def answer(body: Mapping[str, Any]) -> Completion:
        if body.get("tools") and body["messages"][-1]["role"] == "user":
            return Completion(None, (ToolCall("archive", json.dumps({"input": QUERY})),))
        return Completion(PASSAGE)

    with Server(ScriptedEngine(answer, profile=MODEL), models=(MODEL,)) as server:
        llm = make_llm("openai-like", guard, server.url, clients)
        engine = index().as_query_engine(llm=llm, node_postprocessors=[PhaseGuardPostprocessor(guard)])
        tool = QueryEngineTool.from_defaults(engine, name="archive", description="The archive.")
        with guard.request():
            await FunctionAgent(tools=[tool], llm=llm).run("Open the vault.")
        assert len(server.calls) == 3
        check_strong(server.calls[1:])
    assert [{p.why for p in report.passages} for report in told[1:2]] == [{"marked"}]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_engine_with_history(streamed: bool, guard: PhaseGuard, clients: Clients) -> None:
    """The same context again is sent as it was."""
    told: list[Any] = []
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=told.append)

    def answer(body: Mapping[str, Any]) -> str:
        condensing = "standalone" in body["messages"][-1]["content"]
        return "Which secret word unlocks it?" if condensing else "It is found."

    with Server(ScriptedEngine(answer, profile=MODEL), models=(MODEL,)) as server:
        llm = make_llm("openai-like", guard, server.url, clients)
        engine = CondensePlusContextChatEngine.from_defaults(
            index().as_retriever(),
            llm=llm,
            memory=ChatMemoryBuffer.from_defaults(token_limit=100_000),
            node_postprocessors=[PhaseGuardPostprocessor(guard)],
        )
        for question in (QUERY, "And the other one?", "Is that all?"):
            with guard.request():
                if streamed:
                    assert "".join(engine.stream_chat(question).response_gen) == "It is found."
                else:
                    assert str(await engine.achat(question)) == "It is found."
        assert len(server.calls) == 5
        check_strong(server.calls)
    assert {passage.why for passage in told[0].passages} == {"marked"}


@pytest.mark.parametrize("scoped", [False, True])
def test_a_condensed_question_needs_a_scope(scoped: bool, clients: Clients) -> None:
    """Marks are made for the condensed question, which does not stand in the prompt."""
    told: list[Any] = []
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=told.append)
    said = [ChatMessage("Hello."), ChatMessage("Hello!", role="assistant")]
    with Server(ScriptedEngine("Which word?", profile=MODEL), models=(MODEL,)) as server:
        engine = CondensePlusContextChatEngine.from_defaults(
            index().as_retriever(),
            llm=make_llm("openai-like", guard, server.url, clients),
            memory=ChatMemoryBuffer.from_defaults(token_limit=100_000),
            node_postprocessors=[PhaseGuardPostprocessor(guard)],
        )
        with guard.request() if scoped else nullcontext():
            engine.chat(QUERY, chat_history=said)
        if scoped:
            check_strong(server.calls)
    assert ({passage.why for passage in told[-1].passages} == {"marked"}) is scoped


def _facts(number: int) -> list[str]:
    return [
        f"The code that opens vault {number} is PROVOCATIVE-{number}417.",
        f"The reading room {number} opens at nine, and {number * 7 + 11} visitors sign the book.",
    ]


class _Recorded:
    """The passages of every alignment, by the question that stands in its prompt."""

    def __init__(self) -> None:
        self.reports: list[Any] = []

    def check(self, numbers: range) -> None:
        texts = [[passage.text for passage in report.passages] for report in self.reports]
        assert sorted(texts) == sorted(_facts(number) for number in numbers)
        assert {passage.why for report in self.reports for passage in report.passages} == {"marked"}


def _engine(number: int, guard: PhaseGuard, llm: Any) -> Any:
    return index(_facts(number)).as_query_engine(
        llm=llm, node_postprocessors=[PhaseGuardPostprocessor(guard)]
    )


@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
async def test_marks_do_not_cross_between_tasks(kind: str, server: Server, clients: Clients) -> None:
    recorded = _Recorded()
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=recorded.reports.append)
    llm, numbers = make_llm(kind, guard, server.url, clients), range(1, 13)
    await asyncio.gather(*(_engine(n, guard, llm).aquery(f"Which code of {n}?") for n in numbers))
    recorded.check(numbers)
    for call in server.calls:
        for place in phases_on_wire(call, "PROVOCATIVE-", MODEL):
            assert place.phase == STRONG


def test_marks_do_not_cross_between_threads(server: Server, clients: Clients) -> None:
    """Two threads serve twelve users in turn, with the same question."""
    recorded = _Recorded()
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=recorded.reports.append)
    llm, numbers = make_llm("openai-like", guard, server.url, clients), range(1, 13)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: _engine(n, guard, llm).query("Which code?"), numbers))
    recorded.check(numbers)
