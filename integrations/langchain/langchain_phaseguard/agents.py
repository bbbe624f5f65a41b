"""What an agent's middleware knows of a model call: its payload, and what the model was really sent."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import AutoStrategy, OutputToolBinding, ProviderStrategy, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from langchain_phaseguard.payloads import name_of, options_of, to_payload
from langchain_phaseguard.requests import current_request, mark
from phaseguard import PhaseGuard
from phaseguard.errors import PhaseGuardWarning

_NOT_LAST = (
    "The model was sent another prompt than PhaseGuardMiddleware aligned: put it last in middleware=[...], "
    "or guard the model itself with ChatPhaseGuard."
)


def messages_of(request: ModelRequest[Any]) -> list[BaseMessage]:
    """The messages that the model is sent, the system message among them."""
    system = [] if request.system_message is None else [request.system_message]
    return [*system, *request.messages]


def payload_of(request: ModelRequest[Any]) -> dict[str, Any]:
    """The request as an endpoint is sent it, with what the agent adds for a structured answer."""
    bound = options_of(_bound(request))
    return to_payload(
        messages_of(request),
        tools=bound.get("tools") or (),
        response_format=bound.get("response_format"),
        model=bound.get("model") or name_of(request.model),
    )


def _bound(request: ModelRequest[Any]) -> Any:
    """The model with what the agent binds to it."""
    form, model = _strategy(request), request.model
    tools: list[Any] = list(request.tools)
    more = dict(request.model_settings)
    if isinstance(form, ProviderStrategy):
        more |= form.to_model_kwargs()
        if _is_openai(model):
            more["strict"] = True
        return model.bind_tools(tools, **more)
    if isinstance(form, ToolStrategy):
        tools += [OutputToolBinding.from_schema_spec(spec).tool for spec in form.schema_specs]
    return model.bind_tools(tools, **more) if tools else model.bind(**more)


def mark_retrieved(guard: PhaseGuard, messages: Sequence[BaseMessage]) -> None:
    """Mark the documents that retriever tools of this turn left as artifacts, where retrieval marked none."""
    request = current_request()
    for message in _of_this_turn(messages):
        found = list(_documents(message))
        if found and not guard.marked(str(message.text), request=request):
            mark(guard, found, None, request)


def _of_this_turn(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return
        yield message


def _documents(message: BaseMessage) -> Iterable[str]:
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    found = artifact if isinstance(artifact, Sequence) and not isinstance(artifact, str) else ()
    return (one.page_content for one in found if isinstance(one, Document))


def _strategy(request: ModelRequest[Any]) -> Any:
    """How a structured answer is asked for; a bare schema is left to what the model's profile offers."""
    form: Any = request.response_format
    if form is None or isinstance(form, ToolStrategy | ProviderStrategy):
        return form
    schema = form.schema if isinstance(form, AutoStrategy) else form
    profile = request.model.profile if isinstance(request.model, BaseChatModel) else None
    offered = (profile or {}).get("structured_output")
    return ProviderStrategy(schema=schema) if offered else ToolStrategy(schema=schema)


def _is_openai(model: Any) -> bool:
    own = any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__)
    return own and not getattr(model, "use_responses_api", False)


class Witness(BaseCallbackHandler):
    """Sees what the model is sent behind all middlewares.

    Attributes:
        changed: whether that was ever something else than expected.
    """

    run_inline = True

    def __init__(self, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> None:
        self._expected = (_texts(messages), _names(tools))
        self.changed = False

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the handler's signature
        messages: list[list[BaseMessage]],
        **kwargs: Any,
    ) -> None:
        """Compare."""
        tools = (kwargs.get("invocation_params") or {}).get("tools") or ()
        if any((_texts(one), _names(tools)) != self._expected for one in messages):
            self.changed = True

    def tell(self) -> None:
        """Warn when something behind the middleware changed the prompt."""
        if self.changed:
            warnings.warn(_NOT_LAST, PhaseGuardWarning, stacklevel=2)


def _texts(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, str(message.text)) for message in messages]


def _names(tools: Sequence[Any]) -> list[Any]:
    """Names of tools in any provider's form."""
    return [(tool.get("function") or tool).get("name") for tool in tools if isinstance(tool, Mapping)]


@dataclass(frozen=True)
class Watched:
    """A request with other messages, and a witness of what becomes of it."""

    request: ModelRequest[Any]
    witness: Witness

    @classmethod
    def of(
        cls, request: ModelRequest[Any], messages: Sequence[BaseMessage], tags: Sequence[str] = ()
    ) -> Watched:
        """Put ``messages`` in the place of the request's own, and ``tags`` on the model's run."""
        witness = Witness(messages, payload_of(request).get("tools") or ())
        model = _watched(request.model, witness, tags)
        changes: dict[str, Any] = {"model": model, "messages": list(messages)}
        if request.system_message is not None:
            changes |= {"system_message": messages[0], "messages": list(messages[1:])}
        return cls(request.override(**changes), witness)


def _watched(model: Any, witness: Witness, tags: Sequence[str]) -> Any:
    """A copy whose calls are seen and tagged, in whatever it is wrapped; what is unknown stays itself."""
    if isinstance(model, BaseChatModel):
        update = {"callbacks": _with(model.callbacks, witness), "tags": [*(model.tags or ()), *tags]}
        return model.model_copy(update=update)
    if isinstance(model, RunnableBindingBase):
        return model.model_copy(update={"bound": _watched(model.bound, witness, tags)})
    if isinstance(model, RunnableWithFallbacks):
        first, *others = [_watched(one, witness, tags) for one in (model.runnable, *model.fallbacks)]
        return model.model_copy(update={"runnable": first, "fallbacks": others})
    return model


def _with(callbacks: Any, witness: Witness) -> Any:
    if isinstance(callbacks, BaseCallbackManager):
        own = callbacks.copy()
        own.add_handler(witness, inherit=False)
        return own
    return [*(callbacks or ()), witness]
