"""Compressor and transformer, alone and in LangChain's own retrievers and pipelines."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    ChatPhaseGuard,
    PhaseGuardDocumentCompressor,
    PhaseGuardDocumentTransformer,
    PhaseGuardRetriever,
    guard_documents,
)

from phaseguard import PhaseGuard
from phaseguard.errors import InputError

from .case import (
    KEY,
    PROMPT,
    QUERY,
    Store,
    asked,
    both_ways,
    chat,
    documents,
    every_phase,
    guard_for,
    packed,
    phase_of,
    serving,
)
from .server import Clients

UNTIDY = Document("One. \n\n\n\nTwo.", id="a", metadata={"relevance_score": 0.5, "of": {"page": 1}})


async def made(step: Any, way: str, given: list[Document]) -> list[Document]:
    """What a compressor or a transformer makes."""
    if isinstance(step, PhaseGuardDocumentCompressor):
        if way == "sync":
            return list(step.compress_documents(given, QUERY))
        return list(await step.acompress_documents(given, QUERY))
    if way == "sync":
        return list(step.transform_documents(given, query=QUERY))
    return list(await step.atransform_documents(given, query=QUERY))


def steps(guard: PhaseGuard) -> list[Any]:
    return [PhaseGuardDocumentCompressor(guard=guard), PhaseGuardDocumentTransformer(guard)]


@both_ways
@pytest.mark.parametrize("number", [0, 1])
async def test_copies_are_tidy_and_the_given_ones_stay(number: int, way: str) -> None:
    step = steps(PhaseGuard())[number]
    given = [UNTIDY.model_copy(deep=True), *documents()]
    before = deepcopy(given)
    out = await made(step, way, given)
    assert out[0].page_content == "One.\n\nTwo."
    assert [(one.id, one.metadata) for one in out] == [(one.id, one.metadata) for one in before]
    out[0].metadata["of"]["page"] = 99
    assert given == before
    assert await made(step, way, []) == []
    assert await made(step, way, given) == await made(step, way, given), "a second call changes nothing"


@every_phase
@pytest.mark.parametrize("pipeline", [False, True])
@both_ways
async def test_in_a_compression_retriever_marks_are_found(
    clients: Clients, way: str, pipeline: bool, strong: int
) -> None:
    guard = guard_for(strong)
    compressor: Any = PhaseGuardDocumentCompressor(guard=guard)
    if pipeline:
        transformer = PhaseGuardDocumentTransformer(guard)
        compressor = DocumentCompressorPipeline(transformers=[transformer, compressor])
    retriever = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=Store(found=documents())
    )
    with serving() as server:
        model = ChatPhaseGuard(chat(ChatOpenAI, server, clients), guard)
        chain = {"context": retriever | packed, "input": lambda query: query} | PROMPT | model
        said = await asked(chain | StrOutputParser(), way, QUERY)
        (call,) = server.calls
    assert said == KEY
    assert phase_of(call) == strong


@both_ways
@pytest.mark.parametrize("number", [0, 1])
async def test_metadata_that_cannot_be_copied_are_shared(number: int, way: str) -> None:
    lock = threading.Lock()
    given = Document("A-17. ", metadata={"lock": lock, "of": {"page": [1]}})
    (out,) = await made(steps(PhaseGuard())[number], way, [given])
    assert out.metadata == {"lock": lock, "of": {"page": [1]}}
    assert out.metadata["of"]["page"] is not given.metadata["of"]["page"]


def test_a_number_of_marks_below_zero_is_refused() -> None:
    for kind, own in (
        (PhaseGuardDocumentCompressor, {}),
        (PhaseGuardRetriever, {"retriever": Store(found=[])}),
    ):
        with pytest.raises(ValueError, match="greater than or equal to 0"):
            kind(guard=PhaseGuard(), top=-1, **own)
    with pytest.raises(InputError, match="top=-1"):
        PhaseGuardDocumentTransformer(PhaseGuard(), top=-1)
    with pytest.raises(InputError, match="top=-1"):
        guard_documents(PhaseGuard(), top=-1)
