"""``PhaseGuardMiddleware``: agents of ``create_agent`` whose model calls are aligned (extra ``agents``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from langchain_phaseguard.agents import Watched, mark_retrieved, messages_of, payload_of
from langchain_phaseguard.chat_models import ChatPhaseGuard
from langchain_phaseguard.ensembles import Elected, Polls
from langchain_phaseguard.mixin import PhaseGuardMixin
from langchain_phaseguard.payloads import with_contents
from langchain_phaseguard.requests import current_request
from phaseguard import PhaseGuard

_Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
_AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class PhaseGuardMiddleware(AgentMiddleware):
    """Aligns system prompt and messages right before the model is called.

    It must be the **last** middleware: one behind it may change what was aligned. Where the model is then
    sent something else, a :class:`~phaseguard.errors.PhaseGuardWarning` says so; a middleware behind that
    puts another model in place is not noticed. Where the order is not yours, wrap the model
    (:class:`~langchain_phaseguard.ChatPhaseGuard`): that is always last. A model that is guarded already is
    left alone.

    What is aligned is not kept in the agent's state; earlier turns are sent again as they were, so that
    prompt caches hit.

    Args:
        guard: the application's guard.
        ensemble: options of :func:`~langchain_phaseguard.ensemble_chain`, such as ``{"layouts": 4}``: each
            model call then asks several layouts with the same tools, and their answers vote. None asks once.

    Raises:
        InputError: for options of an ensemble that do not fit.
    """

    def __init__(self, guard: PhaseGuard, *, ensemble: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.guard = guard
        self._polls = None if ensemble is None else Polls(guard, {"layouts": 4, **ensemble})

    def wrap_model_call(self, request: ModelRequest[Any], handler: _Handler) -> ModelResponse[Any]:
        """Align, then call the model."""
        mark_retrieved(self.guard, request.messages)
        if self._polls is not None:
            ballots = _Ballots(request)
            question = self._polls.question(messages_of(request), payload_of(request), current_request())
            elected = question.ask(lambda *layout: ballots.keep(handler(ballots.cast(*layout))))
            return ballots.response(elected)
        if isinstance(request.model, ChatPhaseGuard | PhaseGuardMixin):
            return handler(request)
        watched = self._aligned(request)
        response = handler(watched.request)
        watched.witness.tell()
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: _AsyncHandler
    ) -> ModelResponse[Any]:
        """The same without blocking: a long prompt is aligned in a thread."""
        mark_retrieved(self.guard, request.messages)
        if self._polls is not None:
            ballots = _Ballots(request)
            given = messages_of(request), payload_of(request), current_request()
            question = await run_in_executor(None, self._polls.question, *given)

            async def call(messages: Sequence[BaseMessage], config: RunnableConfig) -> AIMessage:
                return ballots.keep(await handler(ballots.cast(messages, config)))

            return ballots.response(await question.aask(call))
        if isinstance(request.model, ChatPhaseGuard | PhaseGuardMixin):
            return await handler(request)
        watched = await run_in_executor(None, self._aligned, request)
        response = await handler(watched.request)
        watched.witness.tell()
        return response

    def _aligned(self, request: ModelRequest[Any]) -> Watched:
        aligned = self.guard.align_payload(payload_of(request), request=current_request())
        return Watched.of(request, with_contents(messages_of(request), aligned.prompt["messages"]))


@dataclass
class _Ballots:
    """The calls that one model call becomes."""

    request: ModelRequest[Any]
    watched: list[Watched] = field(default_factory=list)
    responses: list[ModelResponse[Any]] = field(default_factory=list)

    def cast(self, messages: Sequence[BaseMessage], config: RunnableConfig) -> ModelRequest[Any]:
        """The request with one layout."""
        self.watched.append(Watched.of(self.request, messages, config.get("tags") or ()))
        return self.watched[-1].request

    def keep(self, response: ModelResponse[Any]) -> AIMessage:
        """The message that votes."""
        self.responses.append(response)
        return _answer(response)

    def response(self, elected: Elected) -> ModelResponse[Any]:
        """What the winner's call returned, its message with the verdict."""
        for watched in self.watched:
            watched.witness.tell()
        for response in self.responses:
            if (answer := _answer(response)) is elected.ballot:
                result = [elected.message if one is answer else one for one in response.result]
                return replace(response, result=result)
        return ModelResponse(result=[elected.message])


def _answer(response: ModelResponse[Any]) -> AIMessage:
    return next(message for message in response.result if isinstance(message, AIMessage))
