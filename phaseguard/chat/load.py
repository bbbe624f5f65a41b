"""Renderers by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phaseguard.chat.base import Renderer
from phaseguard.chat.deepseek import DeepSeekRenderer
from phaseguard.chat.jinja import JinjaRenderer
from phaseguard.chat.plain import PlainRenderer
from phaseguard.chat.recipe import DEEPSEEK_NAMES
from phaseguard.errors import InputError, RenderError, did_you_mean

RENDERER_NAMES = (*DEEPSEEK_NAMES, "jinja", "plain")
_TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json")
_NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def load_renderer(
    name_or_object: str | Renderer,
    *,
    reasoning: str = "off",
    prefix_tokens: int = 0,
    template: str | os.PathLike[str] | None = None,
    special_tokens: Sequence[str] = (),
) -> Renderer:
    """Return the renderer of that name; an object that is one already comes back as it is.

    Args:
        name_or_object: ``plain``, ``deepseek-v4``, ``deepseek-v4.1``, ``jinja`` with ``template=``,
            ``jinja:PATH`` for a local tokenizer folder, or your own renderer.
        reasoning: mode for payloads that do not say (DeepSeek: off, low, high, max).
        prefix_tokens: tokens that stand before the rendered text, such as a BOS that the engine adds.
        template: for ``jinja``, the template's text, or the path of a tokenizer folder or template file.
        special_tokens: for ``jinja``, spellings that are one token each, besides the tokenizer's own.

    Raises:
        InputError: for an unknown name or mode; lists near ones.

    >>> load_renderer("plain", prefix_tokens=1)
    PlainRenderer(prefix_tokens=1)
    """
    if not isinstance(name_or_object, str):
        if isinstance(name_or_object, Renderer):
            return name_or_object
        kind = type(name_or_object).__name__
        raise InputError(f"A renderer is a name, or an object with name and render(), not {kind}.")
    if prefix_tokens < 0:
        raise InputError(f"prefix_tokens={prefix_tokens} must not be negative.")
    name, _, path = name_or_object.partition(":")
    if name == "jinja":
        given = template if template is not None else path
        if not str(given):
            raise InputError(
                "The jinja renderer needs template=: its text, or the path of a tokenizer folder."
            )
        return jinja_renderer(given, special_tokens, reasoning=reasoning, prefix_tokens=prefix_tokens)
    if template is not None or special_tokens:
        raise InputError(f"template= and special_tokens= are for 'jinja', not for {name_or_object!r}.")
    if name_or_object == "plain":
        return PlainRenderer(prefix_tokens)
    if name_or_object in DEEPSEEK_NAMES:
        return DeepSeekRenderer(name_or_object, reasoning, prefix_tokens)  # type: ignore[arg-type]
    raise InputError(f"Unknown chat encoding {name_or_object!r}. {did_you_mean(name, RENDERER_NAMES)}")


def jinja_renderer(
    template: str | os.PathLike[str],
    special_tokens: Sequence[str] = (),
    *,
    reasoning: str = "off",
    prefix_tokens: int = 0,
) -> JinjaRenderer:
    """A renderer from a template's text, a template file, ``tokenizer_config.json``, or a tokenizer folder.

    A folder also gives the spellings of its special and added tokens, and the BOS and EOS.

    Raises:
        InputError: when the file or folder holds no chat template.
    """
    text = os.fspath(template)
    if "{" in text or "\n" in text:
        return JinjaRenderer(text, tuple(special_tokens), reasoning=reasoning, prefix_tokens=prefix_tokens)
    path = Path(text).expanduser()
    if not path.exists():
        raise InputError(f"There is no chat template {path}: give its text, a file, or a tokenizer folder.")
    folder = path if path.is_dir() else path.parent
    config = _json(folder / "tokenizer_config.json") or {}
    templates = _templates(path, config)
    if "default" not in templates:
        raise InputError(
            f"{path} holds no chat template: add chat_template.jinja, or give the template's text."
        )
    named = {key: _spelling(config.get(key)) for key in _NAMED_TOKENS}
    return JinjaRenderer(
        templates["default"],
        tuple(dict.fromkeys([*special_tokens, *filter(None, named.values()), *_added(folder, config)])),
        bos_token=named["bos_token"],
        eos_token=named["eos_token"],
        prefix_tokens=prefix_tokens,
        tool_template=templates.get("tool_use"),
        reasoning=reasoning,
    )


def _templates(path: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """Templates by name; a file of its own wins over the configuration, as in transformers."""
    if path.is_file() and path.suffix != ".json":
        return {"default": _read(path)}
    folder = path if path.is_dir() else path.parent
    given = config.get("chat_template")
    for name in _TEMPLATE_FILES:
        file = folder / name
        if file.is_file():
            given = _read(file) if file.suffix == ".jinja" else (_json(file) or {}).get("chat_template")
            break
    if isinstance(given, str):
        return {"default": given}
    if isinstance(given, list):
        return {item["name"]: item["template"] for item in given if {"name", "template"} <= item.keys()}
    return {}


def _added(folder: Path, config: Mapping[str, Any]) -> list[str]:
    """Spellings of all added tokens: the template writes them, and each is one token."""
    decoder = config.get("added_tokens_decoder") or {}
    found = [_spelling(token) for token in decoder.values()]
    found += [_spelling(token) for token in config.get("additional_special_tokens") or ()]
    found += [
        _spelling(token) for token in (_json(folder / "tokenizer.json") or {}).get("added_tokens") or ()
    ]
    return [spelling for spelling in found if spelling]


def _spelling(token: Any) -> str:
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise InputError(f"{path} cannot be read: {fault}. Check the path and that it is UTF-8.") from fault


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        data = json.loads(_read(path))
    except json.JSONDecodeError as fault:
        raise RenderError(f"{path} is not JSON: {fault}. Correct it, or give the template's text.") from fault
    return data if isinstance(data, dict) else None
