"""Asking through an ``openai`` client, or another with ``chat.completions.create``; none is imported here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from phaseguard.ensemble.votes import Answer
from phaseguard.errors import InputError
from phaseguard.voting import answer_probability


def openai_ask(client: Any, **options: Any) -> Callable[[Any], Answer]:
    """A function for :class:`phaseguard.ensemble.Ensemble` that asks chat completions.

    Args:
        client: an ``openai.OpenAI`` client for any base URL; retries and timeouts are its own.
        options: what each request says besides its messages, such as ``model`` and ``temperature``; they go
            before what a payload says. ``logprobs=True`` gives answers a probability, where the endpoint
            offers that.

    Returns:
        A function from a string, messages or a payload to an answer, whose ``raw`` is the completion.

    >>> from types import SimpleNamespace as S
    >>> reply = S(choices=[S(message=S(content="42"), logprobs=None)], usage=None)
    >>> client = S(chat=S(completions=S(create=lambda **request: reply)))
    >>> openai_ask(client, model="deepseek-v4-flash")("What is 6 x 7?").text
    '42'
    """

    def ask(prompt: Any) -> Answer:
        return _answer(client.chat.completions.create(**_request(prompt, options)))

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
        return _answer(await client.chat.completions.create(**_request(prompt, options)))

    return ask


def _request(prompt: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(prompt, str):
        return {**options, "messages": [{"role": "user", "content": prompt}]}
    if isinstance(prompt, Mapping):
        return {**prompt, **options}
    return {**options, "messages": prompt}


def _answer(completion: Any) -> Answer:
    """The first choice of a completion.

    Raises:
        InputError: when it has none, or no text.
    """
    choices = getattr(completion, "choices", None)
    if not choices:
        raise InputError("The completion has no choices: see what the endpoint says of this request.")
    text = choices[0].message.content
    if not isinstance(text, str):
        raise InputError("The completion has no text: its message may be a refusal or a tool call.")
    usage = getattr(completion, "usage", None)
    return Answer(
        text,
        probability=_probability(choices[0]),
        tokens=getattr(usage, "completion_tokens", None),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        cached_tokens=_cached(usage),
        raw=completion,
    )


def _probability(choice: Any) -> float | None:
    """Of the whole text; None where the endpoint gave no log probabilities."""
    tokens = getattr(getattr(choice, "logprobs", None), "content", None)
    return answer_probability([token.logprob for token in tokens]) if tokens else None


def _cached(usage: Any) -> int | None:
    """As OpenAI says it, or as DeepSeek does."""
    details = getattr(usage, "prompt_tokens_details", None)
    cached: int | None = getattr(details, "cached_tokens", None)
    return getattr(usage, "prompt_cache_hit_tokens", None) if cached is None else cached
