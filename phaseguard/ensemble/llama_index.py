"""Asking through a LlamaIndex LLM; LlamaIndex is loaded when a call is made, by those who have it."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from phaseguard.ensemble.payloads import options_of
from phaseguard.ensemble.said import cached_tokens, probability, said, token_logprobs
from phaseguard.ensemble.votes import Answer
from phaseguard.errors import InputError


def llama_index_ask(llm: Any, **options: Any) -> Callable[[Any], Answer]:
    """A function for :class:`phaseguard.ensemble.Ensemble` that asks ``llm.chat``.

    A string for an LLM that is no chat model goes to ``llm.complete`` as it is.

    Args:
        llm: a LlamaIndex ``LLM``; retries and timeouts are its own.
        options: keywords of each call; they go before what a payload says besides its messages.

    Returns:
        A function from a string, messages or a payload to an answer, whose ``raw`` is the response. Of
        content in blocks, text and images are passed on. Tool calls are an answer too; a refusal is a failed
        call. Tokens and the probability are known where the provider's own response is one of OpenAI's API.

    >>> from types import SimpleNamespace as S
    >>> model = S(metadata=S(is_chat_model=False), complete=lambda prompt: S(text=prompt.upper(), raw=None))
    >>> llama_index_ask(model)("a-17").text
    'A-17'
    """

    def ask(prompt: Any) -> Answer:
        if _completes(llm, prompt):
            return read_answer(llm.complete(prompt, **options))
        messages, more = _parts(prompt)
        return read_answer(llm.chat(messages, **{**more, **options}))

    return ask


def async_llama_index_ask(llm: Any, **options: Any) -> Callable[[Any], Awaitable[Answer]]:
    """The same with ``llm.achat`` and ``llm.acomplete``.

    >>> import asyncio
    >>> from types import SimpleNamespace as S
    >>> async def acomplete(prompt):
    ...     return S(text=prompt.upper(), raw=None)
    >>> model = S(metadata=S(is_chat_model=False), acomplete=acomplete)
    >>> asyncio.run(async_llama_index_ask(model)("a-17")).text
    'A-17'
    """

    async def ask(prompt: Any) -> Answer:
        if _completes(llm, prompt):
            return read_answer(await llm.acomplete(prompt, **options))
        messages, more = _parts(prompt)
        return read_answer(await llm.achat(messages, **{**more, **options}))

    return ask


def _completes(llm: Any, prompt: Any) -> bool:
    return isinstance(prompt, str) and not llm.metadata.is_chat_model


def _parts(prompt: Any) -> tuple[list[Any], dict[str, Any]]:
    """Messages as LlamaIndex wants them, and what a payload says besides."""
    if isinstance(prompt, str):
        return [_message({"role": "user", "content": prompt})], {}
    if isinstance(prompt, Mapping):
        return [_message(one) for one in prompt["messages"]], options_of(prompt)
    return [_message(one) for one in prompt], {}


def _message(given: Mapping[str, Any]) -> Any:
    """An OpenAI-style message as a ``ChatMessage``; keys besides role and content are kept beside it.

    ``llm.chat`` takes nothing but objects of that class. It is looked up by name, since no module of
    phaseguard imports a framework, and whoever has an LLM has loaded it already.
    """
    types = importlib.import_module("llama_index.core.base.llms.types")
    content = given.get("content")
    beside = {key: value for key, value in given.items() if key not in ("role", "content")}
    blocks = [_block(types, block) for block in content] if isinstance(content, list) else content
    return types.ChatMessage(role=given["role"], content=blocks, additional_kwargs=beside)


def _block(types: Any, block: Any) -> Any:
    if isinstance(block, str):
        return types.TextBlock(text=block)
    if block.get("type") == "text":
        return types.TextBlock(text=block["text"])
    if block.get("type") == "image_url":
        image = block["image_url"]
        return types.ImageBlock(url=image["url"], detail=image.get("detail"))
    raise InputError(
        f"A block of type {block.get('type')!r} cannot be passed to LlamaIndex: give text or images."
    )


def read_answer(response: Any) -> Answer:
    """A chat response, or a completion.

    Refusals and log probabilities are read from the provider's own response: LlamaIndex drops the former, and
    of the latter keeps the most probable tokens in place of those that were written.

    Raises:
        InputError: when it says nothing.
    """
    message = getattr(response, "message", None)
    text = response.text if message is None else message.content
    choice = next(iter(getattr(response.raw, "choices", None) or ()), None)
    usage = getattr(response.raw, "usage", None)
    return Answer(
        said(text, _calls(message), getattr(getattr(choice, "message", None), "refusal", None)),
        probability=probability(token_logprobs(choice)),
        tokens=getattr(usage, "completion_tokens", None),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        cached_tokens=cached_tokens(usage),
        raw=response,
    )


def _calls(message: Any) -> list[tuple[str, object]]:
    blocks = getattr(message, "blocks", None) or ()
    return [(block.tool_name, block.tool_kwargs) for block in blocks if hasattr(block, "tool_kwargs")]
