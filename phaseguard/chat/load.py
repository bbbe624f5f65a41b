"""Renderers by name."""

from __future__ import annotations

from typing import Any

from phaseguard.chat.base import Renderer
from phaseguard.chat.deepseek import DeepSeekRenderer
from phaseguard.chat.plain import PlainRenderer
from phaseguard.chat.recipe import DEEPSEEK_NAMES
from phaseguard.errors import InputError, did_you_mean

RENDERER_NAMES = (*DEEPSEEK_NAMES, "jinja", "plain")


def load_renderer(
    name_or_object: str | Renderer,
    *,
    reasoning: str = "off",
    prefix_tokens: int = 0,
    template: Any = None,
) -> Renderer:
    """Return the renderer of that name; an object that is one already comes back as it is.

    Args:
        name_or_object: ``plain``, ``deepseek-v4``, ``deepseek-v4.1``, ``jinja`` with ``template=``,
            ``jinja:PATH`` for a local tokenizer folder, or your own renderer.
        reasoning: mode for payloads that do not say (DeepSeek: off, low, high, max).
        prefix_tokens: tokens that stand before the rendered text, such as a BOS that the engine adds.
        template: for ``jinja``, the template's text, or the path of a tokenizer folder or template file.

    Raises:
        InputError: for an unknown name or mode; lists near ones.

    >>> load_renderer("plain", prefix_tokens=1)
    PlainRenderer(prefix_tokens=1)
    """
    if not isinstance(name_or_object, str):
        if isinstance(name_or_object, Renderer):
            return name_or_object
        raise InputError(
            f"A renderer is a name, or an object with name and render(), not {type(name_or_object).__name__}."
        )
    if prefix_tokens < 0:
        raise InputError(f"prefix_tokens={prefix_tokens} must not be negative.")
    name, _, path = name_or_object.partition(":")
    if name == "plain":
        return PlainRenderer(prefix_tokens)
    if name in DEEPSEEK_NAMES:
        return DeepSeekRenderer(name, reasoning, prefix_tokens)  # type: ignore[arg-type]
    raise InputError(f"Unknown chat encoding {name_or_object!r}. {did_you_mean(name, RENDERER_NAMES)}")
