"""Asking through an ``openai`` client, or another with ``chat.completions.create``; none is imported here."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from phaseguard.ensemble.payloads import options_of
from phaseguard.ensemble.said import cached_tokens, probability, said, token_logprobs
from phaseguard.ensemble.votes import Answer
from phaseguard.errors import InputError


def openai_ask(client: Any, **options: Any) -> Callable[[Any], Answer]:
    """A function for :class:`phaseguard.ensemble.Ensemble` that asks chat completions.

    Args:
        client: an ``openai.OpenAI`` client for any base URL; retries and timeouts are its own. Fields that it
            does not name go into ``extra_body``.
        options: what each request says besides its messages, such as ``model`` and ``temperature``; they go
            before what a payload says; its ``stream`` is left out. ``logprobs=True`` gives answers a
            probability, where the endpoint offers that. A class as ``response_format`` is asked for with
            ``parse``.

    Returns:
        A function from a string, messages or a payload to an answer, whose ``raw`` is the completion. Tool
        calls are an answer too, see :func:`phaseguard.ensemble.said.said`; a refusal is a failed call.

    >>> from types import SimpleNamespace as S
    >>> reply = S(choices=[S(message=S(content="42"), logprobs=None)], usage=None)
    >>> client = S(chat=S(completions=S(create=lambda **request: reply)))
    >>> openai_ask(client, model="deepseek-v4-flash")("What is 6 x 7?").text
    '42'
    """

    def ask(prompt: Any) -> Answer:
        request = _request(prompt, options)
        method = _method(client, request)
        return _answer(method(**_fitting(method, request)))

    return ask


def async_openai_ask(client: Any, **options: Any) -> Callable[[Any], Awaitable[Answer]]:
    """The same for an ``openai.AsyncOpenAI`` client.

    >>> import asyncio
    >>> from types import SimpleNamespace as S
    >>> async def create(**request):
    ...     return S(choices=[S(message=S(content=request["model"]), logprobs=None)], usage=None)
    >>> client = S(chat=S(completions=S(create=create)))
    >>> asyncio.run(async_openai_ask(client, model="deepseek-v4-flash")("Which model are you?")).text
    'deepseek-v4-flash'
    """

    async def ask(prompt: Any) -> Answer:
        request = _request(prompt, options)
        method = _method(client, request)
        return _answer(await method(**_fitting(method, request)))

    return ask


def _request(prompt: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(prompt, str):
        return {**options, "messages": [{"role": "user", "content": prompt}]}
    if isinstance(prompt, Mapping):
        return {**options_of(prompt), **options, "messages": prompt["messages"]}
    return {**options, "messages": prompt}


def _method(client: Any, request: Mapping[str, Any]) -> Callable[..., Any]:
    """``create`` refuses a class as ``response_format``, which is for ``parse``."""
    completions = client.chat.completions
    method: Callable[..., Any] = completions.create
    return completions.parse if isinstance(request.get("response_format"), type) else method


def _fitting(method: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    """Fields that the client does not name, such as a provider's own, go where it takes any."""
    named = inspect.signature(method).parameters
    if "extra_body" not in named:
        return request
    fields = {name: value for name, value in request.items() if name not in named}
    known = {name: value for name, value in request.items() if name in named}
    return known | {"extra_body": {**fields, **(request.get("extra_body") or {})} or None}


def _answer(completion: Any) -> Answer:
    """The first choice of a completion.

    Raises:
        InputError: when it has none, or it says nothing.
    """
    choices = getattr(completion, "choices", None)
    if not choices:
        raise InputError("The completion has no choices: see what the endpoint says of this request.")
    message = choices[0].message
    text = said(message.content, _calls(message), getattr(message, "refusal", None))
    usage = getattr(completion, "usage", None)
    return Answer(
        text,
        probability=probability(token_logprobs(choices[0])),
        tokens=getattr(usage, "completion_tokens", None),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        cached_tokens=cached_tokens(usage),
        raw=completion,
    )


def _calls(message: Any) -> list[tuple[str, object]]:
    """Name and arguments of each tool call; a custom tool takes text."""
    found: list[tuple[str, object]] = []
    for call in getattr(message, "tool_calls", None) or ():
        if (function := getattr(call, "function", None)) is not None:
            found.append((function.name, function.arguments))
        else:
            found.append((call.custom.name, call.custom.input))
    return found
