"""LangChain's messages and tools as an OpenAI-style payload, and aligned contents back in the messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.runnables import RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.utils.function_calling import convert_to_openai_tool


def to_payload(
    messages: Sequence[BaseMessage],
    *,
    tools: Iterable[Any] = (),
    response_format: Any = None,
    model: str | None = None,
) -> dict[str, Any]:
    """What an OpenAI-compatible endpoint would be sent; one entry a message.

    >>> from langchain_core.messages import HumanMessage
    >>> to_payload([HumanMessage("hi")], model="deepseek-v4-flash")["messages"]
    [{'role': 'user', 'content': 'hi'}]
    """
    payload: dict[str, Any] = {"messages": [_to_openai(message) for message in messages]}
    if converted := [_to_openai_tool(tool) for tool in tools]:
        payload["tools"] = converted
    if response_format is not None:
        payload["response_format"] = as_sent(response_format)
    if model is not None:
        payload["model"] = model
    return payload


def as_sent(response_format: Any) -> Any:
    """A response format as it goes over the wire: the OpenAI client writes a class as its schema."""
    if not isinstance(response_format, type):
        return response_format
    from openai.lib._parsing import type_to_response_format_param  # noqa: PLC0415 - there is no public one

    return type_to_response_format_param(response_format)


def name_of(model: Any) -> str | None:
    """The name that a chat model asks for, in whatever it is wrapped, or None."""
    while (inner := _inside(model)) is not None:
        model = inner
    for name in ("model_name", "model"):
        if isinstance(value := getattr(model, name, None), str):
            return value
    return None


def options_of(runnable: Any) -> dict[str, Any]:
    """What is bound to a chat model, in however many layers; with fallbacks, to the one that is asked first.

    >>> from langchain_core.language_models.fake_chat_models import ParrotFakeChatModel
    >>> options_of(ParrotFakeChatModel().bind(stop=["."]).with_retry().with_config(tags=["a"]))
    {'stop': ['.']}
    """
    bound: dict[str, Any] = {}
    while (inner := _inside(runnable)) is not None:
        if isinstance(runnable, RunnableBindingBase):
            bound = {**runnable.kwargs, **bound}
        runnable = inner
    return bound


def _inside(runnable: Any) -> Any:
    """What a runnable is wrapped around, or None."""
    if isinstance(runnable, RunnableBindingBase):
        return runnable.bound
    return runnable.runnable if isinstance(runnable, RunnableWithFallbacks) else None


def _to_openai_tool(tool: Any) -> Mapping[str, Any]:
    if isinstance(tool, Mapping) and not {"function", "name", "title"} & set(tool):
        return tool  # a provider's own, such as a web search: there is nothing to convert
    return convert_to_openai_tool(tool)


def _to_openai(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, AIMessage):  # never edited; its blocks have forms that only providers know
        message = message.model_copy(update={"content": message.text})
    form: Literal["string", "block"] = "string" if isinstance(message.content, str) else "block"
    return convert_to_openai_messages(message, text_format=form)


def with_contents(messages: Sequence[BaseMessage], aligned: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """Copies of the messages with the aligned texts; a message whose text did not change is the same object.

    >>> from langchain_core.messages import HumanMessage
    >>> with_contents([HumanMessage("hi")], [{"role": "user", "content": "ho"}])[0].content
    'ho'
    """
    return [_with_content(one, made["content"]) for one, made in zip(messages, aligned, strict=True)]


def _with_content(message: BaseMessage, aligned: Any) -> BaseMessage:
    old = message.content
    if isinstance(message, AIMessage):
        return message
    if isinstance(old, str):
        new: Any = old if aligned is None else aligned
    else:
        texts = iter(block["text"] for block in aligned or () if block.get("type") == "text")
        new = [_with_text(block, texts) for block in old]
    return message if new == old else message.model_copy(update={"content": new})


def _with_text(block: str | dict[str, Any], texts: Any) -> str | dict[str, Any]:
    if isinstance(block, str):
        return str(next(texts, block))
    return {**block, "text": next(texts, block["text"])} if block.get("type") == "text" else block
