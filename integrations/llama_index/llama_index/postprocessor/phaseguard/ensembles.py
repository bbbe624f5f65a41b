"""LLMs that ask several layouts of a prompt and answer with the one that won; off unless asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from llama_index.core.base.llms.generic_utils import chat_response_to_completion_response
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM
from llama_index.postprocessor.phaseguard.llms import Guarded, PhaseGuardFunctionCallingLLM, PhaseGuardLLM
from llama_index.postprocessor.phaseguard.messages import to_payload, with_contents
from llama_index.postprocessor.phaseguard.prompts import profile_for

from phaseguard import Ensemble, PhaseGuard, Verdict
from phaseguard.ensemble import Answer
from phaseguard.ensemble.llama_index import read_answer
from phaseguard.errors import AllCallsFailedError, InputError

_Response = TypeVar("_Response", ChatResponse, CompletionResponse)
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class _Question:
    """A prompt as one call would send it, and what layouts of its last turn are made of."""

    aligned: Mapping[str, Any]
    payload: Mapping[str, Any]
    where: Mapping[str, Any]
    can_vote: bool

    @classmethod
    def of(cls, guard: PhaseGuard, payload: Mapping[str, Any]) -> _Question:
        """Earlier turns stand as the guard sends them; what is key in the last one, the guard has found."""
        made = guard.align_payload(payload)
        messages, given = made.prompt["messages"], payload["messages"]
        said = [number for number, message in enumerate(given) if message["role"] == "assistant"]
        start = said[-1] + 1 if said else 0
        keys = [passage.text for passage in made.report.passages if passage.message >= start]
        where = {"key_passages": list(dict.fromkeys(keys)) or None, "frozen": start}
        last = {**payload, "messages": [*messages[:start], *given[start:]]}
        return cls(made.prompt, last, where, made.report.verified)


class _Voting(Guarded):
    """The calls of an LLM, each of them several layouts of one prompt.

    Attributes:
        options: keywords of :class:`phaseguard.Ensemble`.
    """

    options: dict[str, Any]

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if not self.metadata.is_chat_model:
            return super().chat(messages, **kwargs)

        def call(made: Any) -> ChatResponse:
            return self.llm.chat(with_contents(messages, made["messages"]), **kwargs)

        return self._asked(self._question(messages, kwargs), call)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if not self.metadata.is_chat_model:
            return await super().achat(messages, **kwargs)

        async def call(made: Any) -> ChatResponse:
            return await self.llm.achat(with_contents(messages, made["messages"]), **kwargs)

        return await self._aasked(await asyncio.to_thread(self._question, messages, kwargs), call)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        text = self._formatted(prompt, formatted=formatted)
        if self.metadata.is_chat_model:
            return chat_response_to_completion_response(self.chat([ChatMessage(text)], **kwargs))
        if profile_for(self.guard, self.metadata.model_name).chat != "plain":
            return super().complete(text, formatted=True, **kwargs)

        def call(made: Any) -> CompletionResponse:
            return self.llm.complete(made["messages"][0]["content"], formatted=True, **kwargs)

        return self._asked(self._question([ChatMessage(text)], {}), call)

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        text = self._formatted(prompt, formatted=formatted)
        if self.metadata.is_chat_model:
            return chat_response_to_completion_response(await self.achat([ChatMessage(text)], **kwargs))
        if profile_for(self.guard, self.metadata.model_name).chat != "plain":
            return await super().acomplete(text, formatted=True, **kwargs)

        async def call(made: Any) -> CompletionResponse:
            return await self.llm.acomplete(made["messages"][0]["content"], formatted=True, **kwargs)

        return await self._aasked(await asyncio.to_thread(self._question, [ChatMessage(text)], {}), call)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        yield _whole(self.chat(messages, **kwargs))

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return _awaited(_whole(await self.achat(messages, **kwargs)))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield _whole(self.complete(prompt, formatted=formatted, **kwargs))

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        return _awaited(_whole(await self.acomplete(prompt, formatted=formatted, **kwargs)))

    def _question(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> _Question:
        return _Question.of(self.guard, to_payload(messages, self.metadata.model_name, options))

    def _asked(self, question: _Question, call: Callable[[Any], _Response]) -> _Response:
        if not question.can_vote:
            return call(question.aligned)
        ensemble = self._ensemble(lambda made: read_answer(call(made)))
        try:
            return _winner(ensemble.ask(question.payload, **question.where))
        except AllCallsFailedError as fault:
            raise _own(fault) from fault

    async def _aasked(self, question: _Question, call: Callable[[Any], Awaitable[_Response]]) -> _Response:
        if not question.can_vote:
            return await call(question.aligned)

        async def ask(made: Any) -> Answer:
            return read_answer(await call(made))

        try:
            return _winner(await self._ensemble(ask).aask(question.payload, **question.where))
        except AllCallsFailedError as fault:
            raise _own(fault) from fault

    def _ensemble(self, ask: Any) -> Ensemble:
        guard, profile = self.guard, profile_for(self.guard, self.metadata.model_name)
        own: dict[str, Any] = {"profile": profile}
        own |= {name: getattr(guard, name) for name in ("level", "pads", "isolate", "repeat")}
        if profile is guard.profile:  # as for the guard itself, these two are of no other model
            own |= {"strong": guard.strong, "tokenizer": guard.tokenizer}
        return Ensemble(ask, **{**own, **self.options})


class PhaseGuardEnsembleLLM(_Voting, PhaseGuardLLM):
    """Any LLM, asked several layouts; see :func:`ensemble_llm`."""

    options: dict[str, Any] = Field(default_factory=dict, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardEnsembleLLM"


class PhaseGuardEnsembleFunctionCallingLLM(_Voting, PhaseGuardFunctionCallingLLM):
    """The same for an LLM that calls tools."""

    options: dict[str, Any] = Field(default_factory=dict, exclude=True)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardEnsembleFunctionCallingLLM"


def ensemble_llm(
    llm: LLM, guard: PhaseGuard, *, layouts: int = 4, **options: Any
) -> PhaseGuardEnsembleLLM | PhaseGuardEnsembleFunctionCallingLLM:
    """An LLM whose every call asks several layouts of its prompt, and answers with the one that won.

    Calls of tools are answers too. A response is that of the winner, with the tokens of all calls in
    ``additional_kwargs`` and ``raw.usage``, and the vote in ``additional_kwargs["phaseguard"]``; events tell
    of each call. A stream gives the answer in one piece, since it is known only after the vote. A prompt
    that the guard cannot align is asked once.

    Args:
        llm: the LLM itself, not a guarded one.
        guard: the application's guard.
        layouts: most layouts of a call.
        options: more keywords of :class:`phaseguard.Ensemble`, such as ``stop``, ``budget``, ``find_answer``.

    Raises:
        InputError: for a guarded LLM, which would align every layout anew, or an option that cannot be used.

    >>> from llama_index.core.llms.mock import MockLLM
    >>> made = ensemble_llm(MockLLM(), PhaseGuard(unknown_model="ignore"), layouts=2)
    >>> made.complete("The code is A-17.   ").text
    'The code is A-17.'
    """
    if isinstance(getattr(llm, "guard", None), PhaseGuard):
        raise InputError("ensemble_llm() takes the LLM itself: a guarded one aligns every layout anew.")
    options = {"layouts": layouts, **options}
    calls_tools = isinstance(llm, FunctionCallingLLM)
    made = (PhaseGuardEnsembleFunctionCallingLLM if calls_tools else PhaseGuardEnsembleLLM)(
        llm=llm, guard=guard, options=options
    )
    made._ensemble(str)  # options that cannot be used are told of now
    return made


def _own(fault: AllCallsFailedError) -> Exception:
    """What the LLM itself raised first."""
    return next((vote.error for vote in fault.votes if vote.error is not None), fault)


def _winner(verdict: Verdict) -> Any:
    """The response that won, with the usage of all."""
    replies = [vote.reply for vote in (*verdict.votes, *verdict.unused) if vote.reply is not None]
    told = {
        "asked": len(verdict.votes) + len(verdict.unused) + verdict.cancelled,
        "support": verdict.support,
        "counted": verdict.counted,
        "confidence": verdict.confidence.value,
        "ended": verdict.ended,
    }
    won = verdict.outcome.candidates[0].group
    for candidate in verdict.outcome.candidates:
        if candidate.answer == verdict.answer:
            won = candidate.group
    numbers = {ballot.layout for ballot in won.ballots}
    response = next(vote.reply.raw for vote in verdict.votes if vote.layout in numbers and vote.reply)
    if verdict.second is not None:
        response = _second(response, verdict.second)
    used = _used(replies)
    more = {**response.additional_kwargs, **used, "phaseguard": told}
    return response.model_copy(update={"additional_kwargs": more, "raw": _with_usage(response.raw, used)})


def _second(response: Any, opinion: Answer) -> Any:
    """The second opinion as a response: the caller's own, or its text in the place of the winner's."""
    if isinstance(opinion.raw, ChatResponse | CompletionResponse):
        return opinion.raw
    if isinstance(response, CompletionResponse):
        return response.model_copy(update={"text": opinion.text})
    message = ChatMessage(opinion.text, role=response.message.role)
    return response.model_copy(update={"message": message})


def _used(replies: Sequence[Answer]) -> dict[str, int]:
    """Tokens of all replies; empty where one does not say."""
    if any(reply.prompt_tokens is None or reply.tokens is None for reply in replies):
        return {}
    prompt, said = (sum(getattr(reply, name) for reply in replies) for name in ("prompt_tokens", "tokens"))
    return dict(zip(_COUNTS, (prompt, said, prompt + said), strict=True))


def _with_usage(raw: Any, used: Mapping[str, int]) -> Any:
    usage = getattr(raw, "usage", None)
    if not used or usage is None or not hasattr(usage, "model_copy"):
        return raw
    return raw.model_copy(update={"usage": usage.model_copy(update=dict(used))})


def _whole(response: _Response) -> _Response:
    """A response as the one piece of a stream."""
    said = response.text if isinstance(response, CompletionResponse) else response.message.content
    return response.model_copy(update={"delta": said or ""})


async def _awaited(response: Any) -> Any:
    yield response
