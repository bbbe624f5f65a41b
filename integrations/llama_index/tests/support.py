"""LLMs of every guarded kind on a loopback server, and checks of what reached it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from llama_index.core import SummaryIndex
from llama_index.core.llms import LLM
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
