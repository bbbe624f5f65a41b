"""Guarded LLMs: events, copies, clients and errors are those of the LLM itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import (
    PhaseGuardDeepSeek,
    PhaseGuardOpenAI,
    PhaseGuardOpenAILike,
    guard_llm,
)
from openai import OpenAI as Client
from pydantic import PrivateAttr

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server

from .support import (
    KINDS,
    MESSAGES,
    MODEL,
    SYSTEM,
    TEXT,
    Clients,
    chats,
    check_strong,
    completions,
    make_llm,
    plain_llm,
)


class Heard(BaseEventHandler):
    """Counts events."""

    _seen: list[str] = PrivateAttr(default_factory=list)

    def handle(self, event: Any, **kwargs: Any) -> None:
        self._seen.append(type(event).__name__)


@pytest.fixture
def heard() -> Iterator[Heard]:
    root = get_dispatcher()
    handler = Heard()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


@pytest.mark.parametrize("kind", KINDS)
async def test_one_event_a_call(
    kind: str, heard: Heard, guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    llm = make_llm(kind, guard, server.url, clients)
    await chats(llm)
    counts = {name: heard._seen.count(name) for name in ("LLMChatStartEvent", "LLMChatEndEvent")}
    assert counts == {"LLMChatStartEvent": 4, "LLMChatEndEvent": 4}
    heard._seen.clear()
    await completions(llm)
    assert heard._seen.count("LLMCompletionStartEvent") == heard._seen.count("LLMCompletionEndEvent") == 4
    assert not any(name.startswith("LLMChat") for name in heard._seen)


def test_a_callback_manager_reaches_the_llm_inside(guard: PhaseGuard) -> None:
    inner, manager = MockLLM(), CallbackManager()
    llm = guard_llm(inner, guard)
    llm.callback_manager = manager
    assert llm.callback_manager is inner.callback_manager is manager


def test_a_guarded_copy_leaves_the_llm_alone(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    llm = plain_llm(server.url, clients)
    made = guard_llm(llm, guard)
    assert type(made) is PhaseGuardOpenAILike
    assert type(llm) is OpenAILike
    assert not hasattr(llm, "guard")
    llm.chat(MESSAGES)
    assert server.calls[0].texts == (SYSTEM, TEXT)
    assert type(guard_llm(made, guard)) is PhaseGuardOpenAILike


def test_any_class_of_the_family_becomes_a_guarded_one(guard: PhaseGuard) -> None:
    class Own(OpenAILike):
        """A class of an application."""

    made = guard_llm(Own(model=MODEL, api_key="none"), guard)
    assert isinstance(made, Own)
    assert isinstance(made, PhaseGuardOpenAI)
    assert type(made) is type(guard_llm(Own(model="b", api_key="none"), guard))
    assert type(guard_llm(OpenAI(api_key="none"), guard)) is PhaseGuardOpenAI


@pytest.mark.parametrize("cls", [PhaseGuardDeepSeek, PhaseGuardOpenAI, PhaseGuardOpenAILike])
def test_serialized_forms_leave_the_guard_out(cls: Any, guard: PhaseGuard) -> None:
    model = MODEL if cls is not PhaseGuardOpenAI else "gpt-4o"
    llm = cls(model=model, api_key="none", guard=guard, temperature=0.5)
    form = llm.to_dict()
    assert form["class_name"] == cls.__name__
    assert "guard" not in form
    assert cls.from_dict(form, guard=guard, api_key="none").temperature == 0.5


def test_clients_of_ones_own(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    client = Client(base_url=server.url, api_key="none", http_client=clients.sync)
    llm = plain_llm(server.url, clients, PhaseGuardOpenAILike, guard=guard, openai_client=client)
    llm.chat(MESSAGES)
    check_strong(server.calls)
    assert llm._get_client() is llm._get_client()


def test_clients_that_are_not_reused(guard: PhaseGuard, server: Server) -> None:
    llm = PhaseGuardOpenAILike(
        guard=guard, model=MODEL, api_base=server.url, api_key="none", is_chat_model=True, reuse_client=False
    )
    llm.chat(MESSAGES)
    check_strong(server.calls)


def test_errors_of_the_endpoint_are_its_own(guard: PhaseGuard, clients: Clients) -> None:
    import openai

    with Server(ScriptedEngine("A"), models=("other",)) as server:
        for kind in KINDS:
            llm = make_llm(kind, guard, server.url, clients)
            calls: list[Callable[[], Any]] = [
                lambda llm=llm: llm.chat(MESSAGES),
                lambda llm=llm: list(llm.stream_chat(MESSAGES)),
            ]
            for call in calls:
                with pytest.raises(openai.NotFoundError):
                    call()


MISSING = """
import sys
for name in ("llama_index.llms.openai_like", "llama_index.llms.openai", "llama_index.llms.deepseek"):
    sys.modules[name] = None
import llama_index.postprocessor.phaseguard as pg
for name in ("PhaseGuardOpenAILike", "PhaseGuardDeepSeek", "PhaseGuardOpenAI"):
    try:
        getattr(pg, name)
    except ImportError as fault:
        print(fault)
print(hasattr(pg, "Nothing"), "openai" in sys.modules)
"""


def test_what_is_missing_is_named_when_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=True)
    like, deep, plain, last = done.stdout.splitlines()
    assert "pip install 'llama-index-postprocessor-phaseguard[openai-like]'" in like
    assert "phaseguard[deepseek]'" in deep
    assert "phaseguard[openai-like]'" in plain
    assert last == "False False"
