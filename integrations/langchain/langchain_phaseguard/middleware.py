"""``PhaseGuardMiddleware``: agents of ``create_agent`` whose model calls are aligned (extra ``agents``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import OutputToolBinding, ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from langchain_phaseguard.chat_models import ChatPhaseGuard, _name_of
from langchain_phaseguard.mixin import PhaseGuardMixin
from langchain_phaseguard.payloads import to_payload, with_contents
from langchain_phaseguard.requests import current_request, mark
from phaseguard import PhaseGuard


class PhaseGuardMiddleware(AgentMiddleware):
    """Aligns system prompt and messages right before the model is called.

    It must be the **last** middleware: one behind it may change what was aligned, and nothing tells. Where the
    order is not yours, wrap the model (:class:`~langchain_phaseguard.ChatPhaseGuard`): that is always last.
    What it aligns is not kept in the agent's state; each turn is aligned from what precedes it, so earlier
    messages come out the same and prompt caches hit. A model that is guarded already is left alone.

    Args:
        guard: the application's guard.
    """

    def __init__(self, guard: PhaseGuard) -> None:
        super().__init__()
        self.guard = guard

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Align, then call the model."""
        return handler(self._aligned(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The same without blocking."""
        return await handler(self._aligned(request))

    def _aligned(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if isinstance(request.model, ChatPhaseGuard | PhaseGuardMixin):
            return request
        system = [] if request.system_message is None else [request.system_message]
        messages: list[BaseMessage] = [*system, *request.messages]
        running = current_request()
        if retrieved := list(_retrieved(request.messages)):
            mark(self.guard, retrieved, None, running)
        payload = to_payload(messages, tools=_tools(request), model=_name_of(request.model))
        aligned = with_contents(
            messages, self.guard.align_payload(payload, request=running).prompt["messages"]
        )
        changes: dict[str, Any] = {"messages": aligned[len(system) :]}
        if system:
            changes["system_message"] = (
                SystemMessage(content=aligned[0].content) if aligned[0] is not system[0] else system[0]
            )
        return request.override(**changes)


def _tools(request: ModelRequest[Any]) -> list[Any]:
    """Those bound for the call: the agent adds one for each schema of a structured answer."""
    form = request.response_format
    if not isinstance(form, ToolStrategy):
        return list(request.tools)
    answers = [OutputToolBinding.from_schema_spec(spec).tool for spec in form.schema_specs]
    return [*request.tools, *answers]


def _retrieved(messages: Iterable[BaseMessage]) -> Iterable[str]:
    """Texts of the documents that retriever tools of this turn left as artifacts."""
    for message in messages:
        if isinstance(message, ToolMessage) and isinstance(message.artifact, list):
            yield from (one.page_content for one in message.artifact if isinstance(one, Document))
