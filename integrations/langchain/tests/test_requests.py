"""Marks travel from retrieval to the model within a request, never to another one, and end with it."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, CallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langchain_openai import ChatOpenAI
from langchain_phaseguard import ChatPhaseGuard, PhaseGuardChatOpenAI, PhaseGuardRetriever
from langchain_phaseguard.requests import _ROOTS, current_request

from phaseguard import PhaseGuard, Report
from phaseguard.testing import Call, phases_on_wire

from .case import MODEL, PROMPT, asked, chat, every_phase, every_way, guard_for, packed, serving
from .server import Clients

ROOM = re.compile(r"room (\d+)")


def notes(query: str) -> list[Document]:
    """What the question points at is another line than what retrieval found."""
    room = ROOM.findall(query)[0]
    return [
        Document(f"Visitors of room {room} ask at the desk which key they may use.\n\nThey get none."),
        Document(f"Turn left twice, then hum TUNE-{room}77 to the porter."),
    ]


def chain_of(model: Any, guard: PhaseGuard) -> Any:
    """Marks the second document alone, which no word of the question points at."""
    marking = PhaseGuardRetriever(RunnableLambda(lambda query: notes(query)[1:]), guard)
    parts = {
        "context": RunnableParallel(unmarked=RunnableLambda(notes), marked=marking)
        | (lambda found: packed([*found["unmarked"][:1], *found["marked"]])),
        "input": RunnablePassthrough(),
    }
    return parts | PROMPT | model


def question(room: int) -> str:
    return f"Which key may visitors of room {room} use at the desk?"


def key_of(call: Call) -> tuple[str, int]:
    """The tune in a request, and its phase."""
    room = ROOM.findall(call.texts[-1])[0]
    (place,) = phases_on_wire(call, f"TUNE-{room}77", MODEL)
    return room, place.phase


@pytest.mark.parametrize("kind", ["wrapper", "mixin"])
@every_phase
@every_way
async def test_marks_are_found_through_a_chain(clients: Clients, way: str, strong: int, kind: str) -> None:
    reports: list[Report] = []
    guard = guard_for(strong, on_report=reports.append)
    with serving() as server:
        if kind == "wrapper":
            model: Any = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        else:
            model = chat(PhaseGuardChatOpenAI, server, clients, guard=guard)
        await asked(chain_of(model, guard), way, question(4))
        assert [key_of(call) for call in server.calls] == [("4", strong)]
    assert {passage.why for report in reports for passage in report.passages} == {"marked"}


@pytest.mark.parametrize("kind", ["wrapper", "mixin"])
async def test_marks_are_found_in_a_batch_that_streams(clients: Clients, kind: str) -> None:
    """A handler that wants tokens makes the model stream, which is told no run."""
    guard = guard_for(3)
    handler = _Tokens()
    with serving() as server:
        if kind == "wrapper":
            model: Any = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        else:
            model = chat(PhaseGuardChatOpenAI, server, clients, guard=guard)
        await chain_of(model, guard).abatch([question(4), question(5)], {"callbacks": [handler]})
        assert sorted(key_of(call) for call in server.calls) == [("4", 3), ("5", 3)]
        assert all(call.body["stream"] for call in server.calls)


class _Tokens(AsyncCallbackHandler, _StreamingCallbackHandler):
    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        return output

    def tap_output_iter(self, run_id: Any, output: Any) -> Any:
        return output


@pytest.mark.parametrize("way", ["batch", "abatch", "threads", "tasks"])
async def test_concurrent_requests_do_not_share_marks(clients: Clients, way: str) -> None:
    reports: list[Report] = []
    guard = guard_for(2, on_report=reports.append)
    questions = [question(room) for room in range(10, 34)]
    with serving() as server:
        chain = chain_of(ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard), guard)
        if way == "batch":
            chain.batch(questions)
        elif way == "abatch":
            await chain.abatch(questions)
        elif way == "threads":
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(chain.invoke, questions))
        else:
            await asyncio.gather(*map(chain.ainvoke, questions))
        found = sorted(key_of(call) for call in server.calls)
    assert found == [(str(room), 2) for room in range(10, 34)]
    assert [len(report.passages) for report in reports] == [1] * 24


def test_a_request_does_not_see_marks_of_another_even_with_the_same_texts(clients: Clients) -> None:
    reports: list[Report] = []
    guard = guard_for(1, on_report=reports.append)
    with serving() as server:
        model = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        marked = chain_of(model, guard)
        other = {"context": RunnableLambda(notes) | packed, "input": RunnablePassthrough()} | PROMPT | model
        marked.invoke(question(5))
        other.invoke(question(6))
    assert [passage.why for passage in reports[0].passages] == ["marked"]
    assert "marked" not in {passage.why for passage in reports[1].passages}


@every_way
async def test_the_end_of_a_request_forgets_its_marks(clients: Clients, way: str) -> None:
    guard, roots = guard_for(1), []
    with serving() as server:
        model = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        seen = chain_of(model, guard) | RunnableLambda(
            lambda said: (roots.append(current_request()), said)[1]
        )
        await asked(seen, way, question(7))
        (call,) = server.calls
    assert roots[0] is not None
    assert guard.marked(dict(call.body), request=roots[0]) == ()
    assert (_ROOTS._parents, _ROOTS._marked) == ({}, {}), "nothing is remembered of runs that ended"


def test_marks_are_there_until_the_end_and_errors_end_too() -> None:
    guard, seen = guard_for(1), []
    marking = PhaseGuardRetriever(RunnableLambda(notes), guard)

    def fail(found: list[Document]) -> None:
        root = current_request()
        seen.append((root, guard.marked(packed(found), request=root)))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        (marking | RunnableLambda(fail)).invoke(question(8))
    ((root, during),) = seen
    assert len(during) == 2
    assert guard.marked(packed(notes(question(8))), request=root) == ()
    assert (_ROOTS._parents, _ROOTS._marked) == ({}, {})


def test_requests_whose_end_is_not_seen_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller's own tracing gives them a parent that no handler is told the end of."""
    monkeypatch.setattr("langchain_phaseguard.requests._MOST_MARKED", 3)
    guard, text = PhaseGuard(), "The code is A-17."
    retriever = PhaseGuardRetriever(RunnableLambda(lambda _: [Document(text)]), guard)
    parents = [uuid4() for _ in range(6)]
    for parent in parents:
        retriever.invoke("code?", config={"callbacks": CallbackManager([], parent_run_id=parent)})
    marked = [bool(guard.marked(text, request=parent)) for parent in parents]
    assert marked == [False] * 3 + [True] * 3
    for parent in parents:
        _ROOTS._drop(parent)


def test_a_guard_can_go_away() -> None:
    guard = guard_for(1)
    PhaseGuardRetriever(RunnableLambda(notes), guard).invoke(question(9))
    gone = weakref.ref(guard)
    del guard
    gc.collect()
    assert gone() is None


@every_phase
def test_outside_of_a_chain_marks_count_by_their_question(clients: Clients, strong: int) -> None:
    guard = guard_for(strong)
    with serving() as server:
        model = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        found = PhaseGuardRetriever(RunnableLambda(lambda query: notes(query)[1:]), guard).invoke(question(3))
        context = packed([*notes(question(3))[:1], *found])
        model.invoke(PROMPT.invoke({"context": context, "input": question(3)}))
        (call,) = server.calls
    assert key_of(call)[0] == "3"
