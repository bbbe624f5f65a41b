"""Jinja chat templates, rendered the way transformers renders them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from phaseguard.errors import MissingExtraError, RenderError

_CONTINUE = "CONTINUE_FINAL_MESSAGE_TAG "


def render_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    variables: Mapping[str, Any],
    *,
    go_on: bool = False,
    own: bool = False,
) -> str:
    """Render one conversation.

    Args:
        template: the template's text.
        messages: the conversation, plain data.
        variables: everything else the template sees: tools, documents, add_generation_prompt, bos_token, ...
        go_on: end behind the last message's text, so that the model continues it.
        own: use jinja2 alone even when transformers is there.

    Raises:
        RenderError: what the template or jinja2 objects to.
        MissingExtraError: when jinja2 is missing.
    """
    data = [plain({k: v for k, v in message.items() if v is not None}) for message in messages]
    try:
        their = None if own else _transformers()
        if their is not None:
            texts, _ = their([data], chat_template=template, continue_final_message=go_on, **variables)
            return str(texts[0])
        return _render_alone(template, data, plain(variables), go_on)
    except MissingExtraError:
        raise
    except Exception as fault:  # a template is a program, and may fail in any way
        raise RenderError(f"The chat template refuses the conversation: {fault}") from fault


def plain(value: Any) -> Any:
    """Rebuild a value out of plain JSON types; a template is untrusted code and must see no other object."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    return f"<{type(value).__name__}>"


def _render_alone(
    template: str, messages: list[dict[str, Any]], variables: dict[str, Any], go_on: bool
) -> str:
    for message in messages:
        reasoning = next(
            (message[key] for key in ("reasoning_content", "thinking", "reasoning") if message.get(key)), None
        )
        if reasoning is not None:
            message["reasoning_content"] = reasoning
            message.setdefault("thinking", reasoning)
    if go_on:
        _tag_last_text(messages[-1])
    text = str(
        _compiled(template).render(messages=messages, **{"tools": None, "documents": None, **variables})
    )
    if not go_on:
        return text
    at = text.rfind(_CONTINUE.strip())
    if at < 0:
        raise RenderError("The template drops the text that the model is to continue.")
    return text[:at] if text.startswith(_CONTINUE, at) else text[:at].rstrip()


def _tag_last_text(message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content + _CONTINUE
        return
    for block in reversed(content or []):
        if "text" in block:
            block["text"] += _CONTINUE
            return
    raise RenderError("The last message has no text that the model could continue.")


@cache
def _transformers() -> Callable[..., Any] | None:
    """Transformers' own function, or None when transformers or what it needs is missing."""
    if importlib.util.find_spec("transformers") is None:
        return None
    try:
        from transformers.utils.chat_template_utils import render_jinja_template  # noqa: PLC0415
    except ImportError:
        return None
    found: Callable[..., Any] = render_jinja_template
    return found


@cache
def _compiled(template: str) -> Any:
    return _environment().from_string(template)


@cache
def _environment() -> Any:
    try:
        from jinja2.exceptions import TemplateError  # noqa: PLC0415
        from jinja2.ext import Extension, loopcontrols  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415
    except ImportError as fault:
        raise MissingExtraError("Chat templates need jinja2: pip install 'phaseguard[jinja]'.") from fault

    class Generation(Extension):
        """Renders what stands between the generation tags, and nothing for the tags."""

        tags = {"generation"}  # noqa: RUF012 - as in jinja2's own extensions

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        # jinja2's own filter escapes HTML, which no model expects.
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def strftime_now(form: str) -> str:
        return datetime.now().astimezone().strftime(form)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return made
