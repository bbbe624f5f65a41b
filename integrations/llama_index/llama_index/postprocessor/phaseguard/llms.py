"""Guarded LLMs: any one wrapped, so that the final messages are aligned."""

# ruff: noqa: D102 - the methods are those of LlamaIndex's LLM

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.generic_utils import (
    async_stream_completion_response_to_chat_response,
    completion_response_to_chat_response,
    stream_completion_response_to_chat_response,
)
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
from llama_index.postprocessor.phaseguard.prompts import aligned_messages, aligned_text

from phaseguard import PhaseGuard

# what LlamaIndex asks of an LLM before it calls it, so the wrapper has to answer as the LLM inside
_OF_THE_LLM = (
    "callback_manager",
    "completion_to_prompt",
    "messages_to_prompt",
    "output_parser",
    "pydantic_program_mode",
    "query_wrapper_prompt",
    "system_prompt",
)


class Guarded:
    """The calls of an LLM, with what it is sent aligned first; events are those of the LLM inside."""

    llm: LLM
    guard: PhaseGuard

    def __init__(self, llm: LLM, guard: PhaseGuard, **kwargs: Any) -> None:
        own = {name: getattr(llm, name) for name in _OF_THE_LLM}
        super().__init__(**{**own, **kwargs, "llm": llm, "guard": guard})

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "callback_manager":  # query engines and Settings assign it, and the LLM inside calls it
            self.llm.callback_manager = value

    @property
    def metadata(self) -> LLMMetadata:
        return self.llm.metadata

    def _messages(self, messages: Sequence[ChatMessage], options: dict[str, Any]) -> list[ChatMessage]:
        return aligned_messages(self.guard, messages, self.metadata.model_name, options)

    def _text(self, prompt: str) -> str:
        """A chat model is sent it as one user message, a completion model as it is."""
        if self.metadata.is_chat_model:
            (message,) = self._messages([ChatMessage(prompt)], {})
            return message.content or ""
        return aligned_text(self.guard, prompt, self.metadata.model_name)

    def _formatted(self, prompt: str, *, formatted: bool) -> str:
        return prompt if formatted else self.llm.completion_to_prompt(prompt)  # type: ignore[misc]

    def _joined(self, messages: Sequence[ChatMessage]) -> str:
        return str(self.llm.messages_to_prompt(messages))  # type: ignore[misc]

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if not self.metadata.is_chat_model:
            said = self.complete(self._joined(messages), formatted=True, **kwargs)
            return completion_response_to_chat_response(said)
        return self.llm.chat(self._messages(messages, kwargs), **kwargs)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        if not self.metadata.is_chat_model:
            said = self.stream_complete(self._joined(messages), formatted=True, **kwargs)
            return stream_completion_response_to_chat_response(said)
        return self.llm.stream_chat(self._messages(messages, kwargs), **kwargs)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if not self.metadata.is_chat_model:
            said = await self.acomplete(self._joined(messages), formatted=True, **kwargs)
            return completion_response_to_chat_response(said)
        # in a thread: a long prompt would hold up the event loop
        aligned = await asyncio.to_thread(self._messages, messages, kwargs)
        return await self.llm.achat(aligned, **kwargs)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        if not self.metadata.is_chat_model:
            said = await self.astream_complete(self._joined(messages), formatted=True, **kwargs)
            return async_stream_completion_response_to_chat_response(said)
        aligned = await asyncio.to_thread(self._messages, messages, kwargs)
        return await self.llm.astream_chat(aligned, **kwargs)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        aligned = self._text(self._formatted(prompt, formatted=formatted))
        return self.llm.complete(aligned, formatted=True, **kwargs)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        aligned = self._text(self._formatted(prompt, formatted=formatted))
        return self.llm.stream_complete(aligned, formatted=True, **kwargs)

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        aligned = await asyncio.to_thread(self._text, self._formatted(prompt, formatted=formatted))
        return await self.llm.acomplete(aligned, formatted=True, **kwargs)

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        aligned = await asyncio.to_thread(self._text, self._formatted(prompt, formatted=formatted))
        return await self.llm.astream_complete(aligned, formatted=True, **kwargs)


class PhaseGuardLLM(Guarded, LLM):
    """Any LLM, with its final messages aligned.

    A completion model (``metadata.is_chat_model`` is False) is sent aligned text; see the README.

    Args:
        llm: the LLM.
        guard: the application's guard; left out of serialized forms.
    """

    llm: SerializeAsAny[LLM]
    guard: PhaseGuard = Field(exclude=True)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardLLM"


class PhaseGuardFunctionCallingLLM(Guarded, FunctionCallingLLM):
    """The same for an LLM that calls tools, as agents need it."""

    llm: SerializeAsAny[FunctionCallingLLM]
    guard: PhaseGuard = Field(exclude=True)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardFunctionCallingLLM"

    def _prepare_chat_with_tools(self, tools: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self.llm._prepare_chat_with_tools(tools, *args, **kwargs)

    def _validate_chat_with_tools_response(self, response: Any, tools: Any, **kwargs: Any) -> ChatResponse:
        return self.llm._validate_chat_with_tools_response(response, tools, **kwargs)

    def get_tool_calls_from_response(self, response: Any, *args: Any, **kwargs: Any) -> Any:
        """As the LLM inside reads them."""
        return self.llm.get_tool_calls_from_response(response, *args, **kwargs)


def guard_llm(llm: LLM, guard: PhaseGuard) -> LLM:
    """A guarded LLM: it aligns what it is about to send.

    One of the OpenAI family (``OpenAI``, ``OpenAILike``, ``DeepSeek`` and classes derived from them) becomes
    a copy that aligns the very body it sends. Any other is wrapped; one that calls tools stays one.

    Args:
        llm: the LLM; it is not changed.
        guard: the application's guard.

    >>> from llama_index.core.llms.mock import MockLLM
    >>> guard_llm(MockLLM(), PhaseGuard(unknown_model="ignore")).complete("The code is A-17.   ").text
    'The code is A-17.'
    """
    openai = sys.modules.get("llama_index.llms.openai.base")  # whoever has an LLM of it has loaded it
    if openai is not None and isinstance(llm, openai.OpenAI):
        from llama_index.postprocessor.phaseguard.openai import guarded_copy  # noqa: PLC0415

        return guarded_copy(llm, guard)
    if isinstance(llm, FunctionCallingLLM):
        return PhaseGuardFunctionCallingLLM(llm=llm, guard=guard)
    return PhaseGuardLLM(llm=llm, guard=guard)
