"""Every response mode of a query engine, over HTTP: the answer stands at the strong phase on the wire."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings
from llama_index.core.schema import QueryBundle
from llama_index.postprocessor.phaseguard import PhaseGuardPostprocessor

from phaseguard import PhaseGuard
from phaseguard.errors import PassageNotFoundError
from phaseguard.testing import Server, assert_phases

from .support import (
    CODE,
    KINDS,
    MODEL,
    NODES,
    PASSAGE,
    QUERY,
    STRONG,
    Clients,
    check_strong,
    index,
    make_llm,
    phase,
    plain_llm,
    with_code,
)

MODES = {
    "accumulate": 2,
    "compact": 1,
    "compact_accumulate": 1,
    "refine": 2,
    "simple_summarize": 1,
    "tree_summarize": 1,
}
STREAMED = ("compact", "refine", "simple_summarize", "tree_summarize")


def engine(llm: Any, guard: PhaseGuard, mode: str, **more: Any) -> Any:
    return index().as_query_engine(
        llm=llm, response_mode=mode, node_postprocessors=[PhaseGuardPostprocessor(guard)], **more
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_sync(kind: str, mode: str, guard: PhaseGuard, server: Server, clients: Clients) -> None:
    answer = engine(make_llm(kind, guard, server.url, clients), guard, mode).query(QUERY)
    assert "It is found." in str(answer)
    assert len(server.calls) == MODES[mode]
    check_strong(server.calls)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
async def test_async(kind: str, mode: str, guard: PhaseGuard, server: Server, clients: Clients) -> None:
    answer = await engine(make_llm(kind, guard, server.url, clients), guard, mode).aquery(QUERY)
    assert "It is found." in str(answer)
    check_strong(server.calls)


@pytest.mark.parametrize("mode", STREAMED)
@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
def test_streaming(kind: str, mode: str, guard: PhaseGuard, server: Server, clients: Clients) -> None:
    llm = make_llm(kind, guard, server.url, clients)
    answer = engine(llm, guard, mode, streaming=True).query(QUERY)
    assert "".join(answer.response_gen) == "It is found."
    check_strong(server.calls)


@pytest.mark.parametrize("mode", STREAMED)
@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
async def test_async_streaming(
    kind: str, mode: str, guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    llm = make_llm(kind, guard, server.url, clients)
    answer = await engine(llm, guard, mode, streaming=True).aquery(QUERY)
    assert "".join([piece async for piece in answer.async_response_gen()]) == "It is found."
    check_strong(server.calls)


@pytest.mark.parametrize("mode", ["context_only", "no_text"])
def test_modes_that_ask_nothing(
    mode: str, guard: PhaseGuard, server: Server, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = make_llm("openai-like", guard, server.url, clients)
    monkeypatch.setattr(Settings, "_llm", llm)  # these modes take the one of the settings, and do not use it
    answer = engine(llm, guard, mode).query(QUERY)
    assert not server.calls
    texts = [scored.node.get_content() for scored in answer.source_nodes]
    assert texts == ["The reading room opens at nine.\n\nVisitors sign the book.", NODES[1]]


def test_without_the_guard_some_mode_has_it_elsewhere(server: Server, clients: Clients) -> None:
    llm = plain_llm(server.url, clients)
    for mode in MODES:
        index().as_query_engine(llm=llm, response_mode=mode).query(QUERY)
    found = with_code(server.calls)
    assert {phase(call) for call in found} - {STRONG}
    with pytest.raises(AssertionError, match="expected phase"):
        check_strong(found)


def test_a_list_as_context_is_marked_by_lines(server: Server, clients: Clients) -> None:
    """simple_summarize sends the repr of a list: a passage's line ends come as two characters."""
    told: list[Any] = []
    guard = PhaseGuard(MODEL, strong={STRONG}, on_report=told.append)
    engine(make_llm("openai-like", guard, server.url, clients), guard, "simple_summarize").query(QUERY)
    (call,) = server.calls
    text = call.texts[-1]
    assert r"archivist.\n\nThe code" in text
    with pytest.raises(PassageNotFoundError):
        assert_phases(call, NODES[1], {STRONG}, MODEL)
    (report,) = told
    assert {passage.why for passage in report.passages} == {"marked"}
    assert PASSAGE in {passage.text for passage in report.passages}


def test_metadata_stand_in_front_of_the_text(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    made = index(metadata={"file": "vault.md", "page": 3}).as_query_engine(
        llm=make_llm("openai-like", guard, server.url, clients),
        node_postprocessors=[PhaseGuardPostprocessor(guard)],
    )
    made.query(QUERY)
    assert "file: vault.md\npage: 3\n\nNotes of the archivist." in server.calls[0].texts[-1]
    check_strong(server.calls)


@pytest.mark.parametrize("prefix", ["", "a", "One line.\n", "Two words and more of them: "])
def test_whatever_stands_in_front(prefix: str, guard: PhaseGuard, server: Server, clients: Clients) -> None:
    template = PromptTemplate(prefix + "{context_str}\n\n{query_str}")
    llm = make_llm("openai-like", guard, server.url, clients, system_prompt="Be brief.")
    engine(llm, guard, "compact", text_qa_template=template).query(QUERY)
    assert server.calls[0].texts[0] == "Be brief."
    check_strong(server.calls)


def test_a_context_that_does_not_fit_is_cut_into_several_calls(
    guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    """The packer joins stripped texts, cuts them at blanks, and lets the pieces overlap."""
    filler = ["The room is quiet, and the book of visitors lies open. " * 12 for _ in range(6)]
    llm = make_llm("openai-like", guard, server.url, clients, context_window=1100, max_tokens=64)
    index([*filler, NODES[1]]).as_query_engine(
        llm=llm, response_mode="compact", node_postprocessors=[PhaseGuardPostprocessor(guard)]
    ).query(QUERY)
    assert len(server.calls) > 1
    check_strong(server.calls)


async def test_a_bundle_without_embedding(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    made = engine(make_llm("openai-like", guard, server.url, clients), guard, "compact")
    await made.aquery(QueryBundle(QUERY))
    check_strong(server.calls, CODE)
