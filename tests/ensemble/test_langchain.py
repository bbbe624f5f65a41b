"""The adapter for LangChain: a real chat model over HTTP, and what a Runnable may return."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from phaseguard.ensemble import Answer, Ensemble
from phaseguard.ensemble.langchain import async_langchain_ask, langchain_ask
from phaseguard.errors import InputError
from phaseguard.testing import Completion, ScriptedEngine, Server, ToolCall
from tests.ensemble.scripted import COMMON, PROMPT, WHERE
from tests.testing.clients import MODEL

SAID = Completion("A17", tokens=("A", "17"), logprobs=(-0.1, -0.2), prompt_tokens=90, cached_tokens=64)
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
TOOL = {"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}


@contextmanager
def chat(server: Server, **more: Any) -> Iterator[ChatOpenAI]:
    with httpx.Client() as http:
        yield ChatOpenAI(
            base_url=server.url, api_key="any", model=MODEL, max_retries=0, http_client=http, **more
        )


def ask(runnable: Any, prompt: Any = PROMPT, **config: Any) -> Answer:
    """What both functions say, which has to be the same."""
    one = langchain_ask(runnable, **config)(prompt)
    other = asyncio.run(_awaited(async_langchain_ask(runnable, **config), prompt))
    kept = ("text", "probability", "tokens", "prompt_tokens", "cached_tokens")
    assert [getattr(one, name) for name in kept] == [getattr(other, name) for name in kept]
    return one


async def _awaited(function: Any, prompt: Any) -> Answer:
    answer: Answer = await function(prompt)
    return answer


def returning(value: Any) -> Any:
    return RunnableLambda(lambda _: value)


@pytest.mark.parametrize(
    ("prompt", "messages", "more"),
    [
        (PROMPT, [{"role": "user", "content": PROMPT}], {}),
        (MESSAGES, MESSAGES, {}),
        (
            {"messages": MESSAGES, "tools": [TOOL], "temperature": 0, "stream": True},
            MESSAGES,
            {"tools": [TOOL], "temperature": 0},
        ),
    ],
)
def test_what_is_sent_and_what_is_read(prompt: Any, messages: Any, more: Any) -> None:
    with Server(ScriptedEngine(SAID)) as server, chat(server, logprobs=True) as model:
        answer = langchain_ask(model)(prompt)
        (call,) = server.calls
    assert call.body["messages"] == messages
    assert {key: call.body.get(key) for key in more} == more
    assert (answer.text, answer.tokens, answer.prompt_tokens, answer.cached_tokens) == ("A17", 2, 90, 64)
    assert answer.probability == pytest.approx(0.7408, abs=1e-4)
    assert isinstance(answer.raw, AIMessage)


def test_an_ensemble_asks_every_layout_through_a_chain() -> None:
    with Server(ScriptedEngine("A17")) as server, chat(server) as model:
        verdict = Ensemble(langchain_ask(model | StrOutputParser()), **COMMON, stop="all").ask(
            PROMPT, **WHERE
        )
        assert (verdict.answer, verdict.support) == ("A17", 4)
        assert len({call.texts for call in server.calls}) == 4


def test_tool_calls_are_ballots_by_value() -> None:
    written = ['{"door": 2, "code": "A17"}', '{"code":"A17","door":2.0}', '{"door": 3}', '{"door": ']
    engine = ScriptedEngine([Completion(None, tool_calls=(ToolCall("open", one),)) for one in written])
    with Server(engine) as server, chat(server) as model:
        verdict = Ensemble(langchain_ask(model), **COMMON, stop="all").ask(PROMPT, **WHERE)
    assert (verdict.answer, verdict.support, verdict.counted) == ('[["open",{"code":"A17","door":2}]]', 2, 4)
    assert verdict.votes[3].answer == '[["open","{\\"door\\": "]]', "arguments that are no JSON stay a string"


def test_structured_output_is_a_ballot_by_value() -> None:
    class Code(BaseModel):
        code: str
        door: int

    engine = ScriptedEngine(
        ['{"door": 2, "code": "A17"}', '{"code":"A17",\n"door":2}', '{"code":"B","door":2}']
    )
    with Server(engine) as server, chat(server) as model:
        structured = model.with_structured_output(Code, method="json_schema")
        verdict = Ensemble(langchain_ask(structured), **COMMON, layouts=3, stop="all").ask(PROMPT, **WHERE)
    assert (json.loads(verdict.answer or ""), verdict.support) == ({"code": "A17", "door": 2}, 2)
    assert isinstance(verdict.votes[0].reply, Answer)
    assert verdict.votes[0].reply.raw == Code(code="A17", door=2)


def test_calls_carry_the_caller_s_config_and_are_not_streamed() -> None:
    seen: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, **more: Any) -> None:
            seen.append((more["tags"], more["metadata"]))

    ask(returning("A17"), callbacks=[Handler()], tags=["mine"], metadata={"user": 1})
    assert seen == [(["mine", "nostream"], {"user": 1})] * 2


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("A17", "A17"),
        (AIMessage("A17"), "A17"),
        (AIMessage([{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "A"}, "17"]), "A17"),
        ({"code": "A17"}, '{"code": "A17"}'),
        (["A", "17"], '["A", "17"]'),
    ],
)
def test_what_a_runnable_may_return(result: Any, text: str) -> None:
    assert ask(returning(result)).text == text


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (17, "The Runnable returned int"),
        (None, "The Runnable returned NoneType"),
        ({"code": object()}, "no JSON"),
        (AIMessage([{"type": "reasoning", "text": "Hm."}]), "has no text"),
        (AIMessage("", additional_kwargs={"refusal": "I cannot."}), r"The model refused: I cannot\."),
        (AIMessage([{"type": "refusal", "refusal": "I cannot."}]), r"The model refused: I cannot\."),
    ],
)
def test_what_is_no_answer_says_so(result: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        langchain_ask(returning(result))(PROMPT)


def test_an_error_of_the_endpoint_is_a_missing_ballot() -> None:
    with Server(ScriptedEngine(["A17"])) as server, chat(server) as model:
        verdict = Ensemble(langchain_ask(model), **COMMON, stop="all").ask(PROMPT, **WHERE)
    assert (verdict.answer, verdict.counted) == ("A17", 1)
    assert "Error code: 400" in str(verdict.votes[3].error)
