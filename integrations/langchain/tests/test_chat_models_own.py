"""Guarded chat models: all but the messages is the model's own."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, ParrotFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.tracers._streaming import _V2StreamingCallbackHandler
from langchain_phaseguard import ChatPhaseGuard

from phaseguard import PhaseGuard
from phaseguard.testing import Fault, ScriptedEngine, Server

from .case import (
    KEY,
    MODEL,
    PASSAGE,
    QUERY,
    asked,
    both_ways,
    chat,
    every_kind,
    every_way,
    guard_for,
    phase_of,
    rag,
    serving,
)
from .server import Clients


@every_kind
async def test_usage_and_callbacks_are_the_model_s_own_and_come_once(
    clients: Clients, make: Any, plain: Any
) -> None:
    seen: list[str] = []
    given: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: Any, **more: Any) -> None:
            seen.append("start")
            given.append(messages[0][0].content)

        def on_llm_end(self, response: Any, **more: Any) -> None:
            seen.append("end")

        def on_llm_error(self, error: Any, **more: Any) -> None:
            seen.append("error")

    text = f"{PASSAGE} \n\n\n\n{QUERY}"
    with serving() as server:
        model = make(server, clients, guard_for(1), callbacks=[Handler()], stream_usage=True)
        for way in ("sync", "async", "stream", "astream"):
            said = await asked(model, way, text)
            assert said.usage_metadata["input_tokens"] > 0
            assert said.usage_metadata["output_tokens"] > 0
    assert seen == ["start", "end"] * 4
    assert set(given) == {text}, "callbacks show what was given"


@every_kind
async def test_events_stream_once(clients: Clients, make: Any, plain: Any) -> None:
    guard = guard_for(2)
    with serving() as server:
        chain = rag(make(server, clients, guard), guard)
        events = [event async for event in chain.astream_events(QUERY, version="v2")]
        assert phase_of(server.calls[0]) == 2
    kinds = [event["event"] for event in events]
    assert (kinds.count("on_chat_model_start"), kinds.count("on_chat_model_end")) == (1, 1)
    parts = [event["data"]["chunk"].content for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(parts) == KEY
    assert len(parts) > 1


@every_kind
def test_a_cache_tells_guards_from_each_other(clients: Clients, make: Any, plain: Any) -> None:
    cache = InMemoryCache()
    with serving() as server:
        models = [
            chat(plain, server, clients, cache=cache),
            make(server, clients, guard_for(1), cache=cache),
            make(server, clients, guard_for(2), cache=cache),
        ]
        for model in models * 2:
            model.invoke(f"{PASSAGE}\n\n{QUERY}")
        assert len(server.calls) == 3
        make(server, clients, guard_for(2), cache=cache).invoke(f"{PASSAGE}\n\n{QUERY}")
        assert len(server.calls) == 3, "a guard of the same choices is the same"


@every_kind
def test_a_rate_limiter_limits(clients: Clients, make: Any, plain: Any) -> None:
    class Counting(InMemoryRateLimiter):
        asked = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            self.asked += 1
            return True

    limiter = Counting()
    with serving() as server:
        model = make(server, clients, guard_for(1), rate_limiter=limiter)
        model.invoke(QUERY)
        list(model.stream(QUERY))
    assert limiter.asked == 2


class _Slow(BaseChatModel):
    """Cannot stream."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        return ParrotFakeChatModel()._generate(messages, stop, run_manager, **kwargs)

    @property
    def _llm_type(self) -> Literal["slow"]:
        return "slow"


@every_way
async def test_a_model_that_cannot_stream(way: str) -> None:
    said = await asked(ChatPhaseGuard(_Slow(), PhaseGuard()), way, QUERY)
    assert said.content == QUERY


def test_parameters_of_the_model_are_the_wrapper_s() -> None:
    cache, limiter = InMemoryCache(), InMemoryRateLimiter()
    inner = FakeMessagesListChatModel(
        responses=[AIMessage("")], cache=cache, rate_limiter=limiter, tags=["a"], metadata={"b": 1}
    )
    model = ChatPhaseGuard(inner, PhaseGuard())
    assert (model.cache, model.rate_limiter, model.tags) == (cache, limiter, ["a"])
    assert (model.metadata or {})["b"] == 1


@every_kind
async def test_fallbacks_are_guarded_too(clients: Clients, make: Any, plain: Any) -> None:
    guard = guard_for(3)
    broken = Server(ScriptedEngine(KEY), models=(MODEL,), faults=lambda _: Fault("status", code=500))
    with broken as first, serving() as second:
        model = make(first, clients, guard).with_fallbacks([make(second, clients, guard)])
        assert (await asked(rag(model, guard), "async", QUERY)).content == KEY
        assert [phase_of(call) for call in (*first.calls, *second.calls)] == [3, 3]


@every_kind
@pytest.mark.parametrize("streaming", [True, False, None])
async def test_streaming_is_on_or_off_as_for_the_model_itself(
    clients: Clients, make: Any, plain: Any, streaming: bool | None
) -> None:
    class Handler(BaseCallbackHandler):
        tokens = 0

        def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
            self.tokens += 1

    def made(model: Any) -> dict[str, int]:
        handler = Handler()
        assert model.invoke(QUERY, config={"callbacks": [handler]}).content == KEY
        return {"tokens": handler.tokens, "parts": len(list(model.stream(QUERY)))}

    options = {} if streaming is None else {"streaming": streaming}
    with serving() as server:
        given = made(chat(plain, server, clients, **options))
        assert made(make(server, clients, guard_for(1), **options)) == given
        said = await make(server, clients, guard_for(1), **options).ainvoke(QUERY)
        sent = [bool(call.body.get("stream")) for call in server.calls]
    assert said.content == KEY
    assert sent[:2] == sent[2:4]


@every_kind
def test_a_model_that_must_not_be_cached_is_not(clients: Clients, make: Any, plain: Any) -> None:
    before = get_llm_cache()
    set_llm_cache(InMemoryCache())
    try:
        with serving() as server:
            model = make(server, clients, guard_for(1), cache=False)
            model.invoke(QUERY)
            model.invoke(QUERY)
            assert len(server.calls) == 2
    finally:
        set_llm_cache(before)


@every_kind
def test_the_usage_of_several_prompts_is_summed(clients: Clients, make: Any, plain: Any) -> None:
    prompts: list[Any] = [[HumanMessage(QUERY)], [HumanMessage(QUERY)]]
    with serving() as server:
        given = chat(plain, server, clients).generate(prompts).llm_output
        guarded = make(server, clients, guard_for(1)).generate(prompts).llm_output
    assert given["token_usage"]["total_tokens"] > 0
    assert guarded == given


class _OnlyAsync(_Slow):
    """Streams to async callers alone."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for part in ("A", "-17"):
            yield ChatGenerationChunk(message=AIMessageChunk(part))


@every_way
async def test_a_model_that_streams_to_async_callers_alone(way: str) -> None:
    given = (await asked(_OnlyAsync(), way, QUERY)).content
    assert (await asked(ChatPhaseGuard(_OnlyAsync(), PhaseGuard()), way, QUERY)).content == given


@both_ways
async def test_a_wrapper_can_be_told_not_to_stream(way: str) -> None:
    model = ChatPhaseGuard(_OnlyAsync(), PhaseGuard(), disable_streaming=True)
    said = await asked(model, "stream" if way == "sync" else "astream", QUERY)
    assert said.content == QUERY


def test_texts_are_read_as_the_model_inside_reads_them() -> None:
    inner = _Slow(custom_get_token_ids=lambda text: [len(text)])
    model = ChatPhaseGuard(inner, PhaseGuard())
    assert (model.get_token_ids("code"), model.get_num_tokens("code")) == ([4], 1)


@both_ways
@pytest.mark.parametrize("inner", [_Slow, _OnlyAsync, ParrotFakeChatModel])
async def test_handlers_of_the_event_protocol_hear_what_they_would(inner: Any, way: str) -> None:
    class Handler(BaseCallbackHandler, _V2StreamingCallbackHandler):
        run_inline = True
        heard = 0

        def on_stream_event(self, *args: Any, **kwargs: Any) -> None:
            self.heard += 1

    heard = []
    for model in (inner(), ChatPhaseGuard(inner(), PhaseGuard())):
        handler = Handler()
        said = await asked(model, way, QUERY, config={"callbacks": [handler]})
        heard.append((said.content, handler.heard))
    assert heard[0] == heard[1]


@pytest.mark.parametrize("way", ["async", "astream"])
async def test_aligning_does_not_hold_up_the_event_loop(way: str) -> None:
    threads: list[int] = []
    guard = PhaseGuard(on_report=lambda _: threads.append(threading.get_ident()))
    await asked(ChatPhaseGuard(ParrotFakeChatModel(), guard), way, QUERY)
    assert threads != [threading.get_ident()]
    assert len(threads) == 1
