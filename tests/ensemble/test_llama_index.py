"""The adapter for LlamaIndex: a real LLM over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from llama_index.core.llms import MockLLM
from llama_index.llms.openai_like import OpenAILike

from phaseguard.ensemble import Answer, Ensemble
from phaseguard.ensemble.llama_index import async_llama_index_ask, llama_index_ask
from phaseguard.errors import AllCallsFailedError, InputError
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall
from tests.ensemble.scripted import COMMON, PROMPT, WHERE
from tests.testing.clients import MODEL

SAID = Completion("A17", tokens=("A", "17"), logprobs=(-0.1, -0.2), prompt_tokens=90, cached_tokens=64)
CALL = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Open it."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "Opened.", "tool_call_id": "c1"},
    {"role": "user", "content": PROMPT},
]


def asked(server: Server, prompt: Any, *, chat: bool = True, **options: Any) -> Answer:
    """What both functions say over HTTP, which has to be the same."""

    async def both() -> list[Answer]:
        with httpx.Client() as plain:
            async with httpx.AsyncClient() as awaited:
                llm = OpenAILike(
                    model=MODEL, api_base=server.url, api_key="any", is_chat_model=chat, max_retries=0,
                    http_client=plain, async_http_client=awaited, additional_kwargs=options,
                )  # fmt: skip
                one = await asyncio.to_thread(llama_index_ask(llm), prompt)
                return [one, await async_llama_index_ask(llm)(prompt)]

    one, other = asyncio.run(both())
    kept = ("text", "probability", "tokens", "prompt_tokens", "cached_tokens")
    assert [getattr(one, name) for name in kept] == [getattr(other, name) for name in kept]
    return one


@pytest.mark.parametrize(
    ("prompt", "messages", "more"),
    [
        (PROMPT, [{"role": "user", "content": PROMPT}], {}),
        (MESSAGES, MESSAGES, {}),
        (
            {"messages": MESSAGES, "tools": [TOOL], "temperature": 0.5, "stream": True},
            MESSAGES,
            {"tools": [TOOL], "temperature": 0.5},
        ),
    ],
)
def test_what_is_sent_and_what_is_read(prompt: Any, messages: Any, more: Any) -> None:
    with Server(ScriptedEngine(SAID)) as server:
        answer = asked(server, prompt, logprobs=True)
        for call in server.calls:
            assert call.body["messages"] == messages
            assert {key: call.body.get(key) for key in more} == more
    assert (answer.text, answer.tokens, answer.prompt_tokens, answer.cached_tokens) == ("A17", 2, 90, 64)
    assert answer.probability == pytest.approx(0.7408, abs=1e-4)


def test_blocks_of_text_and_images_are_passed_on() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    blocks = [{"type": "text", "text": "Which "}, image, {"type": "text", "text": "code?"}]
    with Server(ScriptedEngine("A17")) as server:
        asked(server, [{"role": "user", "content": blocks}])
        assert server.calls[0].body["messages"] == [{"role": "user", "content": blocks}]
    with pytest.raises(InputError, match="'input_audio' cannot be passed"):
        llama_index_ask(MockLLM())([{"role": "user", "content": [{"type": "input_audio"}]}])


def test_a_string_goes_to_a_completing_model_as_it_is() -> None:
    with Server(ScriptedEngine(replace(SAID, top=({"B": -0.01}, {"17": -0.2})))) as server:
        answer = asked(server, PROMPT, chat=False, logprobs=1)
        assert [(call.path, call.body["prompt"]) for call in server.calls] == [
            ("/v1/completions", PROMPT)
        ] * 2
    assert (answer.text, answer.tokens) == ("A17", 2)
    assert answer.probability == pytest.approx(0.7408, abs=1e-4)


def test_tool_calls_are_an_answer() -> None:
    engine = ScriptedEngine(Completion(None, tool_calls=(ToolCall("open", '{"door": 2, "code": "A17"}'),)))
    with Server(engine) as server:
        assert asked(server, PROMPT).text == '[["open",{"code":"A17","door":2}]]'


def test_an_ensemble_asks_every_layout_and_any_llm() -> None:
    verdict = Ensemble(llama_index_ask(MockLLM()), **COMMON, stop="all").ask(PROMPT, **WHERE)
    said = [vote.answer for vote in verdict.votes]
    assert len(said) == verdict.counted == 4
    assert all("The code is A17." in (one or "") for one in said), "it repeats the prompt"
    assert verdict.votes[0].reply is not None
    assert verdict.votes[0].reply.probability is None


def test_an_error_of_the_endpoint_is_a_missing_ballot() -> None:
    with Server(ScriptedEngine([])) as server, httpx.Client() as http:
        llm = OpenAILike(
            model=MODEL,
            api_base=server.url,
            api_key="any",
            is_chat_model=True,
            max_retries=0,
            http_client=http,
        )
        with pytest.raises(AllCallsFailedError, match="BadRequestError"):
            Ensemble(llama_index_ask(llm), **COMMON).ask(PROMPT, **WHERE)
