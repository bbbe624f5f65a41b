"""Asking through a LangChain chat model or Runnable; LangChain itself is not imported here."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from phaseguard.ensemble.payloads import options_of
from phaseguard.ensemble.said import block_text, probability, said
from phaseguard.ensemble.votes import Answer
from phaseguard.errors import InputError

NO_STREAM = "nostream"  # LangGraph shows no tokens of calls with this tag: ballots are no answer yet


def langchain_ask(runnable: Any, **config: Any) -> Callable[[Any], Answer]:
    """A function for :class:`phaseguard.ensemble.Ensemble` that invokes a chat model or Runnable.

    Args:
        runnable: a chat model, or any Runnable that takes what it takes: one with structured output, with
            tools bound, or a chain that ends in a parser. Retries and timeouts are its own.
        config: entries of the ``RunnableConfig`` of each call, such as ``callbacks`` or ``metadata``; the tag
            ``nostream`` is added to ``tags``, so that a graph does not stream every ballot to its user.

    Returns:
        A function from a string, messages or a payload to an answer, whose ``raw`` is what the Runnable
        returned. What a payload says besides its messages is passed on as keywords. Tool calls and structured
        output are answers as JSON; a refusal is a failed call. The answer has a probability where the model
        was made with ``logprobs=True`` and the endpoint offers that.

    >>> from types import SimpleNamespace as S
    >>> model = S(invoke=lambda prompt, config: S(content=prompt.upper()))
    >>> langchain_ask(model)("a-17").text
    'A-17'
    """
    tagged = _tagged(config)

    def ask(prompt: Any) -> Answer:
        given, options = _parts(prompt)
        return _answer(runnable.invoke(given, config=tagged, **options))

    return ask


def async_langchain_ask(runnable: Any, **config: Any) -> Callable[[Any], Awaitable[Answer]]:
    """The same with ``ainvoke``.

    >>> import asyncio
    >>> from types import SimpleNamespace as S
    >>> async def ainvoke(prompt, config):
    ...     return S(content=str(config["tags"]))
    >>> asyncio.run(async_langchain_ask(S(ainvoke=ainvoke), tags=["mine"])("Hello")).text
    "['mine', 'nostream']"
    """
    tagged = _tagged(config)

    async def ask(prompt: Any) -> Answer:
        given, options = _parts(prompt)
        return _answer(await runnable.ainvoke(given, config=tagged, **options))

    return ask


def _tagged(config: Mapping[str, Any]) -> dict[str, Any]:
    return {**config, "tags": [*(config.get("tags") or ()), NO_STREAM]}


def _parts(prompt: Any) -> tuple[Any, dict[str, Any]]:
    """What is invoked, and what a payload says besides; chat models take OpenAI-style messages."""
    if not isinstance(prompt, Mapping):
        return prompt, {}
    return prompt["messages"], options_of(prompt)


def _answer(result: Any) -> Answer:
    """What a Runnable returned: a message, a string, or a structure.

    Raises:
        InputError: when it is none of them, or says nothing.
    """
    if isinstance(result, str):
        return Answer(result, raw=result)
    if hasattr(result, "content"):
        return _of_message(result)
    value = result.model_dump(mode="json") if hasattr(result, "model_dump") else result
    if not isinstance(value, Mapping | Sequence):
        raise InputError(
            f"The Runnable returned {type(result).__name__}: let it return a message, text or a structure."
        )
    try:
        return Answer(json.dumps(value, ensure_ascii=False), raw=result)
    except (TypeError, ValueError) as fault:
        raise InputError(f"The Runnable returned a structure that is no JSON: {fault}.") from fault


def _of_message(message: Any) -> Answer:
    usage = getattr(message, "usage_metadata", None) or {}
    details = usage.get("input_token_details") or {}
    return Answer(
        said(block_text(message.content), _calls(message), _refusal(message)),
        probability=probability(_logprobs(message)),
        tokens=usage.get("output_tokens"),
        prompt_tokens=usage.get("input_tokens"),
        cached_tokens=details.get("cache_read"),
        raw=message,
    )


def _calls(message: Any) -> list[tuple[str, object]]:
    """Tool calls, also those whose arguments are no JSON."""
    calls = [
        *(getattr(message, "tool_calls", None) or ()),
        *(getattr(message, "invalid_tool_calls", None) or ()),
    ]
    return [(call["name"], call["args"]) for call in calls]


def _refusal(message: Any) -> Any:
    """In a keyword, or a block of its own."""
    blocks = message.content if isinstance(message.content, list) else ()
    said_so = [block.get("refusal") for block in blocks if isinstance(block, dict)]
    return (getattr(message, "additional_kwargs", None) or {}).get("refusal") or next(
        filter(None, said_so), None
    )


def _logprobs(message: Any) -> list[float]:
    found = (getattr(message, "response_metadata", None) or {}).get("logprobs") or {}
    return [token["logprob"] for token in found.get("content") or ()]
