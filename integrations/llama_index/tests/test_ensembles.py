"""LLMs that ask several layouts: over HTTP, with tools, in a query, in a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.tools import FunctionTool
from llama_index.postprocessor.phaseguard import (
    PhaseGuardEnsembleFunctionCallingLLM,
    PhaseGuardPostprocessor,
    ensemble_llm,
)

from phaseguard import PhaseGuard, load_profile
from phaseguard.ensemble import Answer
from phaseguard.errors import InputError
from phaseguard.testing import Completion, Fault, ScriptedEngine, Server, ToolCall, phases_on_wire

from .support import CODE, MODEL, PASSAGE, QUERY, Clients, index, make_llm, plain_llm

# agents of LlamaIndex look through all attributes, deprecated ones of pydantic too
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

TEXT = f"The reading room opens at nine.\n\n{PASSAGE}\n\n{QUERY}"
WRONG = 1


def by_phase(body: Mapping[str, Any]) -> Completion:
    """Wrong at one phase, right at the others; a word longer where it is right."""
    (place,) = phases_on_wire(body, CODE, MODEL)
    return Completion(
        "a lie" if place.phase == WRONG else CODE.lower(), prompt_tokens=10, completion_tokens=3
    )


@pytest.fixture
def voting() -> Any:
    with Server(ScriptedEngine(by_phase), models=(MODEL,)) as server:
        yield server


async def test_every_call_votes(guard: PhaseGuard, voting: Server, clients: Clients) -> None:
    guard = PhaseGuard(MODEL, strong={WRONG})  # so that the first layout is wrong
    llm = ensemble_llm(plain_llm(voting.url, clients), guard, layouts=4, stop="all")
    assert type(llm) is PhaseGuardEnsembleFunctionCallingLLM
    messages = [ChatMessage(TEXT)]
    said = [
        llm.chat(messages),
        await llm.achat(messages),
        list(llm.stream_chat(messages))[-1],
        [piece async for piece in await llm.astream_chat(messages)][-1],
    ]
    assert [one.message.content for one in said] == [CODE.lower()] * 4
    for one in said:
        assert one.additional_kwargs["prompt_tokens"] == one.raw.usage.prompt_tokens == 40
        assert one.additional_kwargs["total_tokens"] == one.raw.usage.total_tokens == 52
        assert one.additional_kwargs["phaseguard"]["asked"] == 4
        assert one.additional_kwargs["phaseguard"]["support"] == 3
    assert [one.delta for one in said[2:]] == [CODE.lower()] * 2
    texts = [llm.complete(TEXT), await llm.acomplete(TEXT), list(llm.stream_complete(TEXT))[-1]]
    texts += [piece async for piece in await llm.astream_complete(TEXT)]
    assert [one.text for one in texts] == [CODE.lower()] * 4
    for start in range(0, 32, 4):
        asked = voting.calls[start : start + 4]
        phases = {place.phase for call in asked for place in phases_on_wire(call, CODE, MODEL)}
        assert phases == {0, 1, 2, 3}


async def test_a_query_engine_votes(guard: PhaseGuard, voting: Server, clients: Clients) -> None:
    llm = ensemble_llm(plain_llm(voting.url, clients), guard)
    engine = index([PASSAGE, "The reading room."]).as_query_engine(
        llm=llm, node_postprocessors=[PhaseGuardPostprocessor(guard)], response_mode="compact"
    )
    assert str(engine.query(QUERY)) == str(await engine.aquery(QUERY)) == CODE.lower()
    assert len(voting.calls) >= 4


async def test_completions_vote(clients: Clients) -> None:
    profile = load_profile(MODEL).with_(chat="plain")
    with Server(ScriptedEngine("A"), models=(MODEL,)) as server:
        inner = plain_llm(server.url, clients, is_chat_model=False)
        llm = ensemble_llm(inner, PhaseGuard(profile), stop="all")
        assert llm.complete(TEXT).text == (await llm.acomplete(TEXT)).text == "A"
        assert llm.chat([ChatMessage(TEXT)]).message.content == "A"
        assert (await llm.achat([ChatMessage(TEXT)])).message.content == "A"
        assert [call.path for call in server.calls] == ["/v1/completions"] * 16
        assert len({call.texts for call in server.calls[:4]}) == 4


def look_up(name: str) -> str:
    """Look something up."""
    return f"Notes.\n\nThe code that opens {name} is {CODE}."


async def test_an_agent_votes_on_tool_calls_and_answers(guard: PhaseGuard, clients: Clients) -> None:
    def answer(body: Mapping[str, Any]) -> Completion:
        if body["messages"][-1]["role"] == "user":
            return Completion(None, (ToolCall("look_up", '{"name": "vault"}'),))
        return Completion("It is found.")

    with Server(ScriptedEngine(answer, profile=MODEL), models=(MODEL,)) as server:
        llm = ensemble_llm(plain_llm(server.url, clients), guard, stop="all")
        agent = FunctionAgent(tools=[FunctionTool.from_defaults(look_up)], llm=llm)
        said = await agent.run("Which code opens the vault? Look into the notes.")
        assert str(said) == "It is found."
        last = [call for call in server.calls if call.body["messages"][-1]["role"] == "tool"]
        assert len({str(call.body["messages"][:-1]) for call in last}) == 1
        assert len(last) == len({call.texts for call in last}) == 4


def test_a_failed_call_is_a_missing_ballot(guard: PhaseGuard, clients: Clients) -> None:
    def faults(call: Any) -> Fault | None:
        return Fault.status(500) if call.number == 0 else None

    with Server(ScriptedEngine("A", profile=MODEL), models=(MODEL,), faults=faults) as server:
        llm = ensemble_llm(plain_llm(server.url, clients), guard)
        assert llm.chat([ChatMessage(TEXT)]).message.content == "A"


async def test_where_all_fail_the_error_is_the_llms_own(guard: PhaseGuard, clients: Clients) -> None:
    import openai

    with Server(ScriptedEngine("A"), models=("other",)) as server:
        llm = ensemble_llm(plain_llm(server.url, clients), guard)
        with pytest.raises(openai.NotFoundError):
            llm.chat([ChatMessage(TEXT)])
        with pytest.raises(openai.NotFoundError):
            await llm.achat([ChatMessage(TEXT)])


def test_a_prompt_that_cannot_be_aligned_is_asked_once(clients: Clients) -> None:
    with Server(ScriptedEngine("A"), models=("gpt-5",)) as server:
        inner = plain_llm(server.url, clients, model="gpt-5")
        llm = ensemble_llm(inner, PhaseGuard(MODEL, unknown_model="ignore"))
        assert llm.chat([ChatMessage("Two. \n\n\n\nOne.")]).message.content == "A"
        assert [call.texts for call in server.calls] == [("Two.\n\nOne.",)]


def test_wrong_arguments_are_told_at_once(guard: PhaseGuard, clients: Clients) -> None:
    for kind in ("openai-like", "wrapped"):
        with pytest.raises(InputError, match="the LLM itself"):
            ensemble_llm(make_llm(kind, guard, "http://127.0.0.1:9/v1", clients), guard)
    with pytest.raises(InputError, match="concurrency"):
        ensemble_llm(plain_llm("http://127.0.0.1:9/v1", clients), guard, concurrency=0)


def test_a_second_opinion_wins(guard: PhaseGuard, clients: Clients) -> None:
    def by_phase_alone(body: Mapping[str, Any]) -> str:
        return f"number {phases_on_wire(body, CODE, MODEL)[0].phase}"

    with Server(ScriptedEngine(by_phase_alone, profile=MODEL), models=(MODEL,)) as server:
        inner = plain_llm(server.url, clients)
        words = ensemble_llm(inner, guard, stop="all", on_disagreement=lambda verdict: "42")
        assert words.chat([ChatMessage(TEXT)]).message.content == words.complete(TEXT).text == "42"
        asked = Answer("43", raw=ChatResponse(message=ChatMessage("43", role="assistant")))
        answers = ensemble_llm(inner, guard, stop="all", on_disagreement=lambda verdict: asked)
        assert answers.chat([ChatMessage(TEXT)]).message.content == "43"
        assert answers.chat([ChatMessage(TEXT)]).additional_kwargs["phaseguard"]["support"] == 0


def test_a_guard_that_repeats_does_so_in_every_layout(voting: Server, clients: Clients) -> None:
    text = f"{PASSAGE}\n\n{'The reading room opens at nine. ' * 60}\n\n{QUERY}"
    with Server(ScriptedEngine(CODE), models=(MODEL,)) as server:
        llm = ensemble_llm(plain_llm(server.url, clients), PhaseGuard(MODEL, repeat=True), stop="all")
        llm.chat([ChatMessage(text)])
        assert [call.texts[-1].count(CODE) for call in server.calls] == [2] * 4
