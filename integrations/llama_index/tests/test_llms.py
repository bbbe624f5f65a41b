"""Guarded LLMs: what every call sends, what it returns, and what stays as it was."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, LLMMetadata, TextBlock
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import (
    PhaseGuardDeepSeek,
    PhaseGuardLLM,
    PhaseGuardOpenAI,
    PhaseGuardOpenAILike,
    guard_llm,
)
from openai import OpenAI as Client
from pydantic import BaseModel, PrivateAttr

from phaseguard import PhaseGuard, load_profile
from phaseguard.errors import InputError, PhaseGuardWarning
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall, assert_phases

from .support import CODE, KINDS, MODEL, PASSAGE, QUERY, STRONG, Clients, check_strong, make_llm, plain_llm

TEXT = f"The reading room opens at nine.\n\n{PASSAGE}\n\n{QUERY}"
SYSTEM = "Be brief, in JSON."
MESSAGES = [ChatMessage(SYSTEM, role="system"), ChatMessage(TEXT)]
TOOL = {
    "type": "function",
    "function": {
        "name": "open",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}},
    },
}


async def _last(stream: AsyncIterator[Any]) -> Any:
    return [said async for said in stream][-1]


async def _chats(llm: Any, **options: Any) -> dict[str, str]:
    return {
        "chat": llm.chat(MESSAGES, **options).message.content,
        "stream": list(llm.stream_chat(MESSAGES, **options))[-1].message.content,
        "achat": (await llm.achat(MESSAGES, **options)).message.content,
        "astream": (await _last(await llm.astream_chat(MESSAGES, **options))).message.content,
    }


async def _completions(llm: Any, text: str = TEXT) -> dict[str, str]:
    return {
        "complete": llm.complete(text).text,
        "stream": list(llm.stream_complete(text))[-1].text,
        "acomplete": (await llm.acomplete(text)).text,
        "astream": (await _last(await llm.astream_complete(text))).text,
    }


@pytest.mark.parametrize("options", [{}, {"tools": [TOOL]}, {"response_format": {"type": "json_object"}}])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_chat_is_aligned(
    kind: str, options: dict[str, Any], guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    said = await _chats(make_llm(kind, guard, server.url, clients), **options)
    assert set(said.values()) == {"It is found."}
    check_strong(server.calls)
    assert len(server.calls) == 4
    assert all(call.body.get(key) == value for call in server.calls for key, value in options.items())
    assert len({call.texts for call in server.calls}) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_every_completion_of_a_chat_model_is_aligned(
    kind: str, guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    said = await _completions(make_llm(kind, guard, server.url, clients))
    assert set(said.values()) == {"It is found."}
    check_strong(server.calls)
    assert {call.path for call in server.calls} == {"/v1/chat/completions"}


@pytest.mark.parametrize("kind", ["copy", "openai-like", "wrapped"])
async def test_a_completion_model_is_aligned_where_its_encoding_is_plain(
    kind: str, server: Server, clients: Clients
) -> None:
    profile = load_profile(MODEL).with_(chat="plain", prefix_offset=1)
    guard = PhaseGuard(profile, strong={STRONG})
    llm = make_llm(kind, guard, server.url, clients, is_chat_model=False)
    await _completions(llm)
    await _chats(llm)
    assert len(server.calls) == 8
    for call in server.calls:
        assert call.path == "/v1/completions"
        assert_phases(call, CODE, {STRONG}, profile)


@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
async def test_a_completion_model_is_only_normalized_where_its_encoding_is_unknown(
    kind: str, server: Server, clients: Clients
) -> None:
    llm = make_llm(kind, PhaseGuard(MODEL), server.url, clients, is_chat_model=False)
    with pytest.warns(PhaseGuardWarning, match="is_chat_model=True"):
        await _completions(llm, "Two blanks.  \n\n\n\nThe end.")
    assert {call.texts for call in server.calls} == {("Two blanks.\n\nThe end.",)}
    strict = make_llm(
        kind, PhaseGuard(MODEL, unknown_model="raise"), server.url, clients, is_chat_model=False
    )
    with pytest.raises(InputError, match="chat='plain'"):
        strict.complete("A")


def test_a_profile_of_another_model_decides_for_its_completions(server: Server, clients: Clients) -> None:
    plain = load_profile(MODEL).with_(chat="plain").with_strong({STRONG})
    guard = PhaseGuard("llama-3", models={MODEL: plain})
    for kind in ("openai-like", "wrapped"):
        make_llm(kind, guard, server.url, clients, is_chat_model=False).complete(TEXT)
    assert len(server.calls) == 2
    for call in server.calls:
        assert_phases(call, CODE, {STRONG}, plain)


def test_what_the_class_adds_to_the_body_counts(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    """Tools in additional_kwargs stand in front of the messages; only the layer that sees them is exact."""
    more = {"additional_kwargs": {"tools": [TOOL], "extra_body": {"user": "u"}}}
    make_llm("openai-like", guard, server.url, clients, **more).chat(MESSAGES)
    check_strong(server.calls)
    assert server.calls[0].body["tools"] == [TOOL]
    assert server.calls[0].body["user"] == "u"


@pytest.mark.parametrize("kind", KINDS)
def test_settings_of_the_llm_hold(kind: str, guard: PhaseGuard, server: Server, clients: Clients) -> None:
    llm = make_llm(kind, guard, server.url, clients, system_prompt="Be exact.")
    assert llm.predict(PromptTemplate("{text}"), text=TEXT) == "It is found."
    assert server.calls[0].texts[0] == "Be exact."
    check_strong(server.calls)
    assert llm.metadata.model_name == MODEL
    assert llm.metadata.is_function_calling_model


class Out(BaseModel):
    """The code."""

    code: str


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("kind", ["copy", "openai-like", "wrapped"])
async def test_structured_output(kind: str, structured: bool, guard: PhaseGuard, clients: Clients) -> None:
    def answer(body: Any) -> Completion:
        said = f'{{"code": "{CODE}"}}'
        if body.get("tools"):
            return Completion(None, (ToolCall("Out", said),))
        return Completion(said)

    with Server(ScriptedEngine(answer, profile=MODEL), models=(MODEL,)) as server:
        llm = make_llm(kind, guard, server.url, clients, should_use_structured_outputs=structured)
        template = PromptTemplate("{text}")
        assert llm.structured_predict(Out, template, text=TEXT).code == CODE
        assert (await llm.astructured_predict(Out, template, text=TEXT)).code == CODE
        assert list(llm.stream_structured_predict(Out, template, text=TEXT))[-1].code == CODE
        assert llm.as_structured_llm(Out).chat(MESSAGES).raw.code == CODE
        check_strong(server.calls)
        assert len(server.calls) == 4
        key = "response_format" if structured and kind != "wrapped" else "tools"
        assert all(call.body.get(key) for call in server.calls)


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
    await _chats(llm)
    counts = {name: heard._seen.count(name) for name in ("LLMChatStartEvent", "LLMChatEndEvent")}
    assert counts == {"LLMChatStartEvent": 4, "LLMChatEndEvent": 4}
    heard._seen.clear()
    await _completions(llm)
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


@pytest.mark.parametrize("kind", ["openai-like", "wrapped"])
def test_a_stream_read_in_another_thread_knows_the_marks(
    kind: str, guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    both = f"The code of the desk is DISTRACTING-1111.\n\nSay {CODE}.\n\nWhich code?"
    guard.mark([f"Say {CODE}."], query="Which code?")
    stream = make_llm(kind, guard, server.url, clients).stream_chat([ChatMessage(both)])
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(piece.delta or "" for piece in stream))
    reader.start()
    reader.join()
    assert "".join(said) == "It is found."
    check_strong(server.calls)


def test_images_and_several_texts(guard: PhaseGuard, server: Server, clients: Clients) -> None:
    image = ImageBlock(url="https://example.com/a.png", detail="low")
    pictured = [ChatMessage(blocks=[TextBlock(text=TEXT), image])]
    split = [ChatMessage(blocks=[TextBlock(text=TEXT[:40]), TextBlock(text=TEXT[40:])])]
    for kind in ("openai-like", "wrapped"):
        llm = make_llm(kind, guard, server.url, clients)
        llm.chat(pictured)
        llm.chat(split)
    check_strong(server.calls)
    assert [call.texts[-1] for call in server.calls[:2]] == [call.texts[-1] for call in server.calls[2:]]
    assert pictured[0].blocks[0].text == TEXT


class Nameless(MockLLM):
    """A chat model that does not say its name."""

    _sent: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    def chat(self, messages: Any, **kwargs: Any) -> Any:
        self._sent.append(messages[-1].content)
        return super().chat(messages, **kwargs)


def test_any_llm_can_be_wrapped(guard: PhaseGuard) -> None:
    llm = guard_llm(Nameless(), guard)
    assert type(llm) is PhaseGuardLLM
    llm.chat(MESSAGES)
    assert_phases(
        {
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": llm.llm._sent[0]},
            ]
        },
        CODE,
        {STRONG},
        MODEL,
    )


def test_an_unknown_model_is_only_normalized(clients: Clients) -> None:
    with Server(ScriptedEngine("A"), models=("gpt-5",)) as server:
        for kind in ("openai-like", "wrapped"):
            llm = make_llm(kind, PhaseGuard(MODEL), server.url, clients, model="gpt-5")
            with pytest.warns(PhaseGuardWarning, match="gpt-5"):
                llm.chat([ChatMessage("Two. \n\n\n\nOne.")])
        assert {call.texts for call in server.calls} == {("Two.\n\nOne.",)}


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
