"""Guarded LLMs: what every call sends, and what it returns."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, LLMMetadata, TextBlock
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.postprocessor.phaseguard import (
    PhaseGuardLLM,
    guard_llm,
)
from pydantic import BaseModel, PrivateAttr

from phaseguard import PhaseGuard, load_profile
from phaseguard.errors import InputError, PhaseGuardWarning
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall, assert_phases

from .support import (
    CODE,
    KINDS,
    MESSAGES,
    MODEL,
    STRONG,
    SYSTEM,
    TEXT,
    Clients,
    chats,
    check_strong,
    completions,
    make_llm,
)

TOOL = {
    "type": "function",
    "function": {
        "name": "open",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}},
    },
}


@pytest.mark.parametrize("options", [{}, {"tools": [TOOL]}, {"response_format": {"type": "json_object"}}])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_chat_is_aligned(
    kind: str, options: dict[str, Any], guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    said = await chats(make_llm(kind, guard, server.url, clients), **options)
    assert set(said.values()) == {"It is found."}
    check_strong(server.calls)
    assert len(server.calls) == 4
    assert all(call.body.get(key) == value for call in server.calls for key, value in options.items())
    assert len({call.texts for call in server.calls}) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_every_completion_of_a_chat_model_is_aligned(
    kind: str, guard: PhaseGuard, server: Server, clients: Clients
) -> None:
    said = await completions(make_llm(kind, guard, server.url, clients))
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
    await completions(llm)
    await chats(llm)
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
        await completions(llm, "Two blanks.  \n\n\n\nThe end.")
    assert {call.texts for call in server.calls} == {("Two blanks.\n\nThe end.",)}
    strict = make_llm(
        kind, PhaseGuard(MODEL, unknown_model="raise"), server.url, clients, is_chat_model=False
    )
    with pytest.raises(InputError, match="chat='plain'"):
        strict.complete("A")


def test_a_profile_of_another_model_decides_for_itscompletions(server: Server, clients: Clients) -> None:
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
