"""Ensembles: several layouts of one prompt are asked, one answer comes back. Off unless asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.messages.ai import add_usage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableLambda

from langchain_phaseguard.payloads import name_of, options_of, to_payload, with_contents
from langchain_phaseguard.requests import as_is, current_request
from phaseguard import Ensemble, PhaseGuard, Verdict
from phaseguard.ensemble import Vote
from phaseguard.ensemble.langchain import async_langchain_ask, langchain_ask
from phaseguard.errors import InputError

_OF_THE_GUARD = ("profile", "strong", "level", "pads", "isolate", "repeat", "tokenizer", "ask_model")


def ensemble_chain(
    model: Runnable[LanguageModelInput, Any], guard: PhaseGuard, *, layouts: int = 4, **options: Any
) -> Runnable[LanguageModelInput, AIMessage]:
    r"""A chat model that is asked several layouts of each prompt, whose answers vote.

    Earlier turns are sent as the guard sends them, so that prompt caches hit; what the last turn added is
    laid out several times. Text is compared as text, tool calls by name and arguments. Calls carry the tag
    ``nostream``: a graph shows the one answer when the vote is over.

    Args:
        model: a chat model, guarded or not, with tools or formats bound where they are needed.
        guard: the application's guard.
        layouts: most layouts, each one call.
        options: ``stop``, ``rule``, ``budget``, ``timeout`` and what else :class:`phaseguard.Ensemble` takes;
            ``timeout`` with async calls alone.

    Returns:
        A Runnable to the winner's message: its ``usage_metadata`` is the sum over all calls, its
        ``response_metadata["phaseguard"]`` the verdict in short. A prompt that cannot be aligned is sent
        once.

    Raises:
        InputError: for a Runnable that is no chat model, and for options that do not fit.
        AllCallsFailedError: on invoking, when no call gave an answer.

    >>> from langchain_core.language_models.fake_chat_models import FakeListChatModel
    >>> chain = ensemble_chain(FakeListChatModel(responses=["A-17"]), PhaseGuard(), stop="all")
    >>> chain.invoke("The code is A-17.\n\nWhich code?").response_metadata["phaseguard"]["support"]
    4
    """
    inner, bound = _chat_model(model), options_of(model)
    polls = Polls(guard, {"layouts": layouts, **options})

    def question(given: LanguageModelInput) -> Question:
        messages = _messages(given)
        payload = to_payload(
            messages,
            tools=bound.get("tools") or (),
            response_format=bound.get("response_format"),
            model=bound.get("model") or name_of(inner),
        )
        return polls.question(messages, payload, current_request())

    def ask(given: LanguageModelInput, config: RunnableConfig) -> AIMessage:
        return question(given).ask(model.invoke, **config).message

    async def aask(given: LanguageModelInput, config: RunnableConfig) -> AIMessage:
        return (await question(given).aask(model.ainvoke, **config)).message

    return RunnableLambda(ask, aask, name="phaseguard_ensemble")


class Polls:
    """Asks as a guard would send, and several layouts of it.

    Args:
        guard: the application's guard.
        options: of :class:`phaseguard.Ensemble`, but for those that the guard decides.

    Raises:
        InputError: for options that do not fit.
    """

    def __init__(self, guard: PhaseGuard, options: Mapping[str, Any]) -> None:
        if taken := [name for name in _OF_THE_GUARD if name in options]:
            raise InputError(f"{', '.join(taken)}: the guard decides this; leave it out.")
        if options.get("report_ties"):
            raise InputError("report_ties: a chain needs an answer; see agreement in its response_metadata.")
        self.guard, self.options = guard, dict(options)
        self.ensemble(None, str)

    def ensemble(self, model: str | None, ask: Callable[[Any], Any]) -> Ensemble:
        """An ensemble that lays out as the guard aligns for a model.

        Raises:
            InputError: for options that do not fit.
        """
        guard = self.guard
        other = (guard.models or {}).get(model or "")
        own: dict[str, Any] = {"strong": guard.strong, "tokenizer": guard.tokenizer} if other is None else {}
        try:
            return Ensemble(
                ask,
                profile=guard.profile if other is None else other,
                level=guard.level,
                pads=guard.pads,
                isolate=guard.isolate,
                repeat=guard.repeat,
                **own,
                **self.options,
            )
        except TypeError as fault:
            raise InputError(f"There is no such option of an ensemble: {fault}.") from fault

    def question(
        self, messages: Sequence[BaseMessage], payload: Mapping[str, Any], request: UUID | None
    ) -> Question:
        """A prompt to ask.

        Args:
            messages: of the prompt.
            payload: the same, as an endpoint is sent it.
            request: the key that marks were made with.
        """
        aligned = self.guard.align_payload(payload, request=request)
        said = [n for n, one in enumerate(payload["messages"]) if one["role"] == "assistant"]
        frozen = said[-1] + 1 if said else 0
        keys = [passage.text for passage in aligned.report.passages if passage.message >= frozen]
        where = {"frozen": frozen, "key_passages": list(dict.fromkeys(keys))}
        return Question(self, tuple(messages), aligned.prompt, where if aligned.report.verified else None)


@dataclass(frozen=True)
class Elected:
    """The answer of a vote.

    Attributes:
        message: the winner's, with the usage of all calls and the verdict in short.
        ballot: the same as its call returned it; None when a second opinion took its place.
    """

    message: AIMessage
    ballot: AIMessage | None

    @classmethod
    def of(cls, verdict: Verdict) -> Elected:
        """Find the winner's message in a verdict."""
        vote = None if verdict.second else _winner(verdict)
        ballot = None if vote is None or vote.reply is None else vote.reply.raw
        usage = None
        for each in (*verdict.votes, *verdict.unused):
            told = None if each.reply is None else getattr(each.reply.raw, "usage_metadata", None)
            usage = add_usage(usage, told) if usage or told else None
        message = AIMessage(verdict.answer) if ballot is None else ballot
        metadata = {**message.response_metadata, "phaseguard": _short(verdict, vote)}
        update = {"usage_metadata": usage, "response_metadata": metadata}
        return cls(message.model_copy(update=update), ballot)


def _winner(verdict: Verdict) -> Vote:
    """The vote of the strongest layout that gave the answer."""
    won = next(one for one in verdict.outcome.candidates if one.group.answer == verdict.answer)
    return next(one for one in verdict.votes if one.layout == won.group.ballots[0].layout)


def _short(verdict: Verdict, vote: Vote | None) -> dict[str, Any]:
    """A verdict in JSON."""
    return {
        "answer": verdict.answer,
        "support": verdict.support,
        "counted": verdict.counted,
        "agreement": verdict.agreement,
        "confidence": verdict.confidence.value,
        "confidence_kind": verdict.confidence.kind,
        "ended": verdict.ended,
        "calls": verdict.cost.calls,
        "phase": None if vote is None else vote.phase,
    }


@dataclass(frozen=True)
class Question:
    """One prompt that is asked.

    Attributes:
        polls: how; ``messages``: as given; ``payload``: as the guard sends it.
        where: what is key in it; None where it cannot be laid out, and is asked once.
    """

    polls: Polls
    messages: tuple[BaseMessage, ...]
    payload: Mapping[str, Any]
    where: Mapping[str, Any] | None

    def ask(self, call: Callable[[list[BaseMessage], RunnableConfig], AIMessage], **config: Any) -> Elected:
        """Ask one layout after the other; ``call`` is given messages, and a config with its tags."""
        calls = _Calls(self.messages, call)
        if self.where is None:
            only = calls.invoke(self.payload["messages"], cast("RunnableConfig", config))
            return Elected(only, only)
        made = self.polls.ensemble(self.payload.get("model"), langchain_ask(calls, **config))
        return Elected.of(made.ask(self.payload, **self.where))

    async def aask(
        self, call: Callable[[list[BaseMessage], RunnableConfig], Awaitable[AIMessage]], **config: Any
    ) -> Elected:
        """The same, several layouts at once."""
        calls = _Calls(self.messages, call)
        if self.where is None:
            only = await calls.ainvoke(self.payload["messages"], cast("RunnableConfig", config))
            return Elected(only, only)
        made = self.polls.ensemble(self.payload.get("model"), async_langchain_ask(calls, **config))
        return Elected.of(await made.aask(self.payload, **self.where))


@dataclass(frozen=True)
class _Calls:
    """What ``langchain_ask`` invokes: the contents of a layout go into the messages as they were given."""

    messages: Sequence[BaseMessage]
    call: Callable[[list[BaseMessage], RunnableConfig], Any]

    def invoke(self, contents: Sequence[Mapping[str, Any]], config: RunnableConfig, **_: Any) -> Any:
        """Call the model with one layout."""
        with as_is():
            return self.call(with_contents(self.messages, contents), config)

    async def ainvoke(self, contents: Sequence[Mapping[str, Any]], config: RunnableConfig, **_: Any) -> Any:
        """The same without blocking."""
        with as_is():
            return await self.call(with_contents(self.messages, contents), config)


def _chat_model(model: Any) -> BaseChatModel:
    """The chat model inside."""
    inner = model
    while isinstance(inner, RunnableBinding):
        inner = inner.bound
    if not isinstance(inner, BaseChatModel):
        raise InputError(
            f"{type(inner).__name__} is no chat model: make the ensemble of the model, and put parsers and "
            "fallbacks behind it."
        )
    return inner


def _messages(given: LanguageModelInput) -> list[BaseMessage]:
    if isinstance(given, PromptValue):
        return given.to_messages()
    return [HumanMessage(given)] if isinstance(given, str) else convert_to_messages(given)
