"""LLMs of every guarded kind on a loopback server, and checks of what reached it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from llama_index.core import SummaryIndex
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.schema import TextNode
from llama_index.llms.deepseek import DeepSeek
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import (
    PhaseGuardDeepSeek,
    PhaseGuardFunctionCallingLLM,
    PhaseGuardOpenAILike,
    guard_llm,
)

from phaseguard import PhaseGuard
from phaseguard.testing import Call, assert_phases, phases_on_wire

MODEL = "deepseek-v4-flash"
STRONG = 2
CODE = "PROVOCATIVE-8417"
QUERY = "Which code opens the vault of the archive?"
PASSAGE = f"The code that opens the vault of the archive is {CODE}."
NODES = (
    "The reading room opens at nine. \n\n\n\nVisitors sign the book.",
    f"Notes of the archivist.\n\n{PASSAGE}\nIt changes in May.",
)
TEXT = f"The reading room opens at nine.\n\n{PASSAGE}\n\n{QUERY}"
SYSTEM = "Be brief, in JSON."
MESSAGES = [ChatMessage(SYSTEM, role="system"), ChatMessage(TEXT)]
KINDS = ("copy", "deepseek", "deepseek copy", "openai-like", "wrapped")


@dataclass(frozen=True)
class Clients:
    """HTTP clients that are closed behind the tests."""

    sync: httpx.Client
    asynchronous: httpx.AsyncClient


def plain_llm(url: str, clients: Clients, cls: Any = OpenAILike, **more: Any) -> Any:
    """An unguarded LLM."""
    given = {
        "model": MODEL,
        "api_base": url,
        "api_key": "none",
        "is_chat_model": True,
        "is_function_calling_model": True,
        "context_window": 100_000,
        "max_retries": 0,
        "http_client": clients.sync,
        "async_http_client": clients.asynchronous,
    }
    return cls(**(given | more))


def make_llm(kind: str, guard: PhaseGuard, url: str, clients: Clients, **more: Any) -> LLM:
    """A guarded LLM."""
    if kind == "openai-like":
        return plain_llm(url, clients, PhaseGuardOpenAILike, guard=guard, **more)
    if kind == "deepseek":
        return plain_llm(url, clients, PhaseGuardDeepSeek, guard=guard, **more)
    inner = plain_llm(url, clients, DeepSeek if kind == "deepseek copy" else OpenAILike, **more)
    return PhaseGuardFunctionCallingLLM(inner, guard) if kind == "wrapped" else guard_llm(inner, guard)


def index(texts: Sequence[str] = NODES, **more: Any) -> SummaryIndex:
    """An index that retrieves every text."""
    return SummaryIndex([TextNode(text=text, **more) for text in texts])


def with_code(calls: Sequence[Call]) -> list[Call]:
    """The calls that hold the code."""
    return [call for call in calls if any(CODE in text for text in call.texts)]


def check_strong(calls: Sequence[Call], passage: str = CODE) -> None:
    """At least one call holds the passage, and in each it stands at the strong phase."""
    found = with_code(calls)
    assert found
    for call in found:
        assert_phases(call, passage, {STRONG}, MODEL)


def phase(call: Call, passage: str = CODE) -> int:
    (place,) = phases_on_wire(call, passage, MODEL)
    return place.phase


async def last(stream: AsyncIterator[Any]) -> Any:
    return [said async for said in stream][-1]


async def chats(llm: Any, **options: Any) -> dict[str, str]:
    return {
        "chat": llm.chat(MESSAGES, **options).message.content,
        "stream": list(llm.stream_chat(MESSAGES, **options))[-1].message.content,
        "achat": (await llm.achat(MESSAGES, **options)).message.content,
        "astream": (await last(await llm.astream_chat(MESSAGES, **options))).message.content,
    }


async def completions(llm: Any, text: str = TEXT) -> dict[str, str]:
    return {
        "complete": llm.complete(text).text,
        "stream": list(llm.stream_complete(text))[-1].text,
        "acomplete": (await llm.acomplete(text)).text,
        "astream": (await last(await llm.astream_complete(text))).text,
    }
