"""LLMs of the OpenAI family whose requests are aligned as they are sent (extra ``openai-like``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.llms.openai.base import OpenAI
from llama_index.postprocessor.phaseguard.prompts import aligned_text

from phaseguard import PhaseGuard


class PhaseGuardOpenAI(OpenAI):
    """``OpenAI(guard=..., ...)``; put in front of a class derived from ``OpenAI``, it guards that one.

    Its clients are wrapped by ``guard.wrap``, so what is aligned is the body itself: messages as LlamaIndex
    converts them, tools, response format and ``additional_kwargs``. A stream is asked for when it is made,
    where the marks of the request are known, and not when it is read, which may be in another thread.
    Completions have no chat encoding: see the README.

    Attributes:
        guard: the application's guard; left out of serialized forms.
    """

    guard: PhaseGuard = Field(exclude=True)
    _wrapped: dict[type, tuple[Any, Any]] = PrivateAttr(default_factory=dict)

    def _get_client(self) -> Any:
        return self._guarded(super()._get_client())

    def _get_aclient(self) -> Any:
        return self._guarded(super()._get_aclient())

    def _guarded(self, client: Any) -> Any:
        if not self.reuse_client:
            return self.guard.wrap(client)
        known, guarded = self._wrapped.get(type(client), (None, None))
        if known is not client:
            guarded = self.guard.wrap(client)
            self._wrapped[type(client)] = client, guarded
        return guarded

    def _stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        stream = super()._stream_chat(messages, **kwargs)
        first = [response for response in (next(stream, None),) if response is not None]
        return (response for response in chain(first, stream))

    async def _astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        stream = await super()._astream_chat(messages, **kwargs)
        first = await anext(stream, None)

        async def responses() -> ChatResponseAsyncGen:
            if first is not None:
                yield first
            async for response in stream:
                yield response

        return responses()

    def _text(self, prompt: str) -> str:
        return aligned_text(self.guard, prompt, self.metadata.model_name)

    def _complete(self, prompt: str, **kwargs: Any) -> CompletionResponse:
        return super()._complete(self._text(prompt), **kwargs)

    def _stream_complete(self, prompt: str, **kwargs: Any) -> CompletionResponseGen:
        return super()._stream_complete(self._text(prompt), **kwargs)

    async def _acomplete(self, prompt: str, **kwargs: Any) -> CompletionResponse:
        return await super()._acomplete(await asyncio.to_thread(self._text, prompt), **kwargs)

    async def _astream_complete(self, prompt: str, **kwargs: Any) -> CompletionResponseAsyncGen:
        return await super()._astream_complete(await asyncio.to_thread(self._text, prompt), **kwargs)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardOpenAI"


def guarded_copy(llm: OpenAI, guard: PhaseGuard) -> PhaseGuardOpenAI:
    """A copy of an LLM of the OpenAI family that is guarded; it shares the clients.

    >>> made = guarded_copy(OpenAI(api_key="none", system_prompt="Be brief."), PhaseGuard())
    >>> isinstance(made, OpenAI), made.system_prompt
    (True, 'Be brief.')
    """
    copy: Any = llm.model_copy()
    copy.__class__ = _guarded_class(type(llm))
    copy.guard, copy._wrapped = guard, {}
    return copy


@cache
def _guarded_class(base: type[OpenAI]) -> type[PhaseGuardOpenAI]:
    """The ready class for one, else a new class, as ``guard.wrap`` makes one for a client."""
    if issubclass(base, PhaseGuardOpenAI):
        return base
    made = [PhaseGuardOpenAI, *PhaseGuardOpenAI.__subclasses__()]
    ready = next((one for one in made if one.__bases__[-1] is base), None)
    return ready or type(f"PhaseGuard{base.__name__}", (PhaseGuardOpenAI, base), {"__module__": __name__})
