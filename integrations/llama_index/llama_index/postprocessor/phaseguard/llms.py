"""Guarded LLMs: any one wrapped, so that the final messages are aligned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.bridge.pydantic import Field, SerializeAsAny
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM
from llama_index.postprocessor.phaseguard.messages import aligned

from phaseguard import PhaseGuard


class _Guarded:
    """The calls of an LLM, with what it is sent aligned first; events are those of the LLM inside."""

    llm: LLM
    guard: PhaseGuard

    @property
    def metadata(self) -> LLMMetadata:
        return self.llm.metadata

    def _messages(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> list[ChatMessage]:
        return aligned(self.guard, messages, self.llm.metadata.model_name, options)

    def _text(self, prompt: str) -> str:
        """A chat model is sent it as one user message, a completion model as it is."""
        payload: Any = prompt
        if self.llm.metadata.is_chat_model:
            (message,) = self._messages([ChatMessage(prompt)], {})
            return message.content or ""
        return str(self.guard.align(payload).prompt)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.llm.chat(self._messages(messages, kwargs), **kwargs)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return self.llm.stream_chat(self._messages(messages, kwargs), **kwargs)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return await self.llm.achat(self._messages(messages, kwargs), **kwargs)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return await self.llm.astream_chat(self._messages(messages, kwargs), **kwargs)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return self.llm.complete(self._text(prompt), formatted=formatted, **kwargs)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        return self.llm.stream_complete(self._text(prompt), formatted=formatted, **kwargs)

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return await self.llm.acomplete(self._text(prompt), formatted=formatted, **kwargs)

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        return await self.llm.astream_complete(self._text(prompt), formatted=formatted, **kwargs)


class PhaseGuardLLM(_Guarded, LLM):
    """Any LLM, with its final messages aligned.

    Args:
        llm: the LLM.
        guard: the application's guard.
    """

    llm: SerializeAsAny[LLM]
    guard: PhaseGuard = Field(exclude=True)

    def __init__(self, llm: LLM, guard: PhaseGuard, **kwargs: Any) -> None:
        super().__init__(llm=llm, guard=guard, **kwargs)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardLLM"


class PhaseGuardFunctionCallingLLM(_Guarded, FunctionCallingLLM):
    """The same for an LLM that calls tools, as agents need it."""

    llm: SerializeAsAny[FunctionCallingLLM]
    guard: PhaseGuard = Field(exclude=True)

    def __init__(self, llm: FunctionCallingLLM, guard: PhaseGuard, **kwargs: Any) -> None:
        super().__init__(llm=llm, guard=guard, **kwargs)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardFunctionCallingLLM"

    def _prepare_chat_with_tools(self, tools: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self.llm._prepare_chat_with_tools(tools, *args, **kwargs)

    def _validate_chat_with_tools_response(self, response: Any, tools: Any, **kwargs: Any) -> ChatResponse:
        return self.llm._validate_chat_with_tools_response(response, tools, **kwargs)

    def get_tool_calls_from_response(self, response: Any, **kwargs: Any) -> Any:
        """As the LLM inside reads them."""
        return self.llm.get_tool_calls_from_response(response, **kwargs)


def guard_llm(llm: LLM, guard: PhaseGuard) -> PhaseGuardLLM | PhaseGuardFunctionCallingLLM:
    """Wrap an LLM: one that calls tools stays one.

    >>> from llama_index.core.llms.mock import MockLLM
    >>> guard_llm(MockLLM(), PhaseGuard()).complete("The code is A-17.").text
    'The code is A-17.'
    """
    if isinstance(llm, FunctionCallingLLM):
        return PhaseGuardFunctionCallingLLM(llm, guard)
    return PhaseGuardLLM(llm, guard)
