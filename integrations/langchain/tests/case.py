"""One question over real HTTP: documents, what is asked, and where the answer stands on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import add, or_
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    ChatPhaseGuard,
    PhaseGuardChatDeepSeek,
    PhaseGuardChatOpenAI,
    PhaseGuardRetriever,
)

from phaseguard import PhaseGuard
from phaseguard.testing import Call, Completion, ScriptedEngine, Server, phases_on_wire

from .server import Clients

MODEL = "deepseek-v4-flash"
QUERY = "Which is the code of the vault?"
KEY = "PROVOCATIVE-8417"
PASSAGE = f"The code of the vault is {KEY}."
TEXTS = ("The code of the door is SPURIOUS-1203.", PASSAGE, "The code of the gate is NUGATORY-7788.")
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer from these notes, in JSON where a form is given:\n\n{context}"), ("human", "{input}")]
)
STRONG = range(4)  # every phase in turn: what stands there by chance would miss three of them


def guard_for(strong: int, **more: Any) -> PhaseGuard:
    return PhaseGuard(profile=MODEL, strong={strong}, **more)


def documents() -> list[Document]:
    return [
        Document(text, id=str(number), metadata={"score": 0.9 - number / 10, "of": {"page": number}})
        for number, text in enumerate(TEXTS)
    ]


def packed(found: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in found)


def rag(model: Any, guard: PhaseGuard, found: list[Document] | None = None) -> Any:
    """Retrieve, pack, ask: from a question to what ``model`` gives."""
    retriever = PhaseGuardRetriever(Store(found=documents() if found is None else found), guard)
    return {"context": retriever | packed, "input": RunnablePassthrough()} | PROMPT | model


class Store(BaseRetriever):
    """Hands out its own documents, as in-memory stores do."""

    found: list[Document]
    seen: list[Any] = []  # noqa: RUF012 - pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        self.seen.append((query, kwargs))
        return self.found[: kwargs.get("k", len(self.found))]


@contextmanager
def serving(answers: str | Callable[[Mapping[str, Any]], Completion | str] = KEY) -> Iterator[Server]:
    with Server(ScriptedEngine(answers, profile=MODEL), models=(MODEL, "fine-tuned")) as server:
        yield server


def chat(kind: type[BaseChatModel], server: Server, clients: Clients, **more: Any) -> Any:
    address = {"api_base" if issubclass(kind, ChatDeepSeek) else "base_url": server.url}
    return kind(
        **{"model": MODEL, "api_key": "none", "max_retries": 0, **address, **clients.arguments, **more}
    )


def wrapped(kind: type[BaseChatModel]) -> Callable[..., ChatPhaseGuard]:
    def make(server: Server, clients: Clients, guard: PhaseGuard, **more: Any) -> ChatPhaseGuard:
        return ChatPhaseGuard(chat(kind, server, clients, **more), guard)

    return make


def mixed(kind: type[BaseChatModel]) -> Callable[..., Any]:
    def make(server: Server, clients: Clients, guard: PhaseGuard, **more: Any) -> Any:
        return chat(kind, server, clients, guard=guard, **more)

    return make


KINDS = {
    "ChatPhaseGuard(ChatOpenAI)": (wrapped(ChatOpenAI), ChatOpenAI),
    "ChatPhaseGuard(ChatDeepSeek)": (wrapped(ChatDeepSeek), ChatDeepSeek),
    "PhaseGuardChatOpenAI": (mixed(PhaseGuardChatOpenAI), ChatOpenAI),
    "PhaseGuardChatDeepSeek": (mixed(PhaseGuardChatDeepSeek), ChatDeepSeek),
}
every_kind = pytest.mark.parametrize(("make", "plain"), KINDS.values(), ids=KINDS)
every_phase = pytest.mark.parametrize("strong", STRONG)


def phase_of(call: Call, text: str = KEY) -> int:
    """The only place of a text in what was sent."""
    (place,) = phases_on_wire(call, text, MODEL)
    return place.phase


async def asked(runnable: Any, way: str, *args: Any, **kwargs: Any) -> Any:
    """Invoke in one of the ways; streams are put together."""
    if way == "sync":
        return runnable.invoke(*args, **kwargs)
    if way == "async":
        return await runnable.ainvoke(*args, **kwargs)
    if way == "batch":
        return runnable.batch([args[0]], *args[1:], **kwargs)[0]
    if way == "abatch":
        return (await runnable.abatch([args[0]], *args[1:], **kwargs))[0]
    if way == "stream":
        parts = list(runnable.stream(*args, **kwargs))
    else:
        parts = [part async for part in runnable.astream(*args, **kwargs)]
    if not isinstance(parts[0], AIMessageChunk):  # a parsed answer grows; the last one is whole
        return reduce(or_, parts) if isinstance(parts[0], dict) else parts[-1]
    return reduce(add, parts)


both_ways = pytest.mark.parametrize("way", ["sync", "async"])
every_way = pytest.mark.parametrize("way", ["sync", "async", "batch", "abatch", "stream", "astream"])
