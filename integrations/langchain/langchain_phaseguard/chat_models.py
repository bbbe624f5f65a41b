"""``ChatPhaseGuard``: any chat model, with aligned messages.

It sees tools and formats, but not a provider's own conversion of messages;
:mod:`langchain_phaseguard.openai` and :mod:`langchain_phaseguard.deepseek` see that too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableMap, RunnableSequence
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field, model_validator

from langchain_phaseguard.payloads import name_of, to_payload, with_contents
from langchain_phaseguard.requests import current_request, is_as_is
from phaseguard import PhaseGuard

# what the outer model must do in the inner one's place, since the inner one's ``invoke`` is not called
_TAKEN_OVER = (
    "cache",
    "callbacks",
    "custom_get_token_ids",
    "disable_streaming",
    "metadata",
    "output_version",
    "profile",
    "rate_limiter",
    "tags",
    "verbose",
)


class ChatPhaseGuard(BaseChatModel):
    """Aligns the messages of every call to a chat model; all else is the model's own.

    Streaming, tools, structured output, usage, callbacks (once), cache and rate limiter work as they do
    without it. Callbacks and traces show the messages as they were given; a cache tells guarded calls from
    others.

    Args:
        model: the chat model.
        guard: the application's guard.

    >>> from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel
    >>> model = ChatPhaseGuard(ParrotFakeChatModel(), PhaseGuard())
    >>> model.invoke("The code is A-17.").content
    'The code is A-17.'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: BaseChatModel
    guard: PhaseGuard = Field(exclude=True)

    def __init__(self, model: BaseChatModel, guard: PhaseGuard, **kwargs: Any) -> None:
        super().__init__(model=model, guard=guard, **kwargs)

    @model_validator(mode="before")
    @classmethod
    def _take_over(cls, values: dict[str, Any]) -> dict[str, Any]:
        inner = values.get("model")
        own = {name: value for name in _TAKEN_OVER if (value := getattr(inner, name, None)) is not None}
        return {**own, **values}

    @property
    def _llm_type(self) -> str:
        return f"phaseguard-{self.model._llm_type}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**self.model._identifying_params, "phaseguard": repr(self.guard)}

    @property
    def model_name(self) -> str | None:
        """The name of the model inside, where it has one."""
        return name_of(self.model)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.model._get_ls_params(stop=stop, **kwargs)

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        return f"{self.model._get_llm_string(stop=stop, **kwargs)}---{self.guard!r}"

    def _combine_llm_outputs(self, llm_outputs: list[Any]) -> dict[str, Any]:
        return self.model._combine_llm_outputs(llm_outputs)

    def get_token_ids(self, text: str) -> list[int]:
        """As the model inside reads a text."""
        return self.model.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """As the model inside counts."""
        return self.model.get_num_tokens(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        """As the model inside counts."""
        return self.model.get_num_tokens_from_messages(messages, tools)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools in the form that the model inside gives them."""
        bound: Any = self.model.bind_tools(tools, **kwargs)
        return self.bind(**bound.kwargs)

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """What the model inside does for structured output, with this model in its place."""
        made = self.model.with_structured_output(schema, include_raw=include_raw, **kwargs)
        placed: Runnable[LanguageModelInput, Any] = self._in_place(made)
        return placed

    def _in_place(self, runnable: Any) -> Any:
        """The same runnable, its calls to the model inside made to this one."""
        if runnable is self.model:
            return self
        if isinstance(runnable, RunnableBinding):
            return runnable.model_copy(update={"bound": self._in_place(runnable.bound)})
        if isinstance(runnable, RunnableSequence):
            steps = [self._in_place(step) for step in runnable.steps]
            return RunnableSequence(*steps, name=runnable.name)
        if isinstance(runnable, RunnableMap):
            return RunnableMap({name: self._in_place(step) for name, step in runnable.steps__.items()})
        return runnable

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        """As the model inside would, by what it can and its ``streaming``, unless this one must not."""
        call = {**kwargs, "async_api": async_api, "run_manager": run_manager}
        may = super()._should_stream(**{**call, "stream": True})
        return may and bool(self.model._should_stream(**call))

    def _should_use_protocol_streaming(
        self, *, async_api: bool, run_manager: Any = None, **kwargs: Any
    ) -> bool:
        """Only where the model inside streams the other way too: that is what is translated."""
        call = {**kwargs, "async_api": async_api, "run_manager": run_manager}
        can = self._should_stream(**{"stream": True, **call})
        return can and super()._should_use_protocol_streaming(**call)

    def _aligned(
        self,
        messages: list[BaseMessage],
        run: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
        options: dict[str, Any],
    ) -> list[BaseMessage]:
        if is_as_is():
            return messages
        payload = to_payload(
            messages,
            tools=options.get("tools") or (),
            response_format=options.get("response_format"),
            model=options.get("model") or self.model_name,
        )
        request = current_request(None if run is None else run.run_id)
        return with_contents(messages, self.guard.align_payload(payload, request=request).prompt["messages"])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        aligned = self._aligned(messages, run_manager, kwargs)
        return self.model._generate(aligned, stop=stop, run_manager=run_manager, **kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        # in a thread: a long prompt would hold up the event loop
        aligned = await run_in_executor(None, self._aligned, messages, run_manager, kwargs)
        return await self.model._agenerate(aligned, stop=stop, run_manager=run_manager, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        aligned = self._aligned(messages, run_manager, kwargs)
        yield from self.model._stream(aligned, stop=stop, run_manager=run_manager, **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        aligned = await run_in_executor(None, self._aligned, messages, run_manager, kwargs)
        async for chunk in self.model._astream(aligned, stop=stop, run_manager=run_manager, **kwargs):
            yield chunk
