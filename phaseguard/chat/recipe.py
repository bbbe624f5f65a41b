"""The calls to deepseek-recipe, DeepSeek's own encoder, with its faults put into our words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from phaseguard.chat.base import Message
from phaseguard.chat.payload import surrogate_fault
from phaseguard.errors import MissingExtraError, RenderError

DEEPSEEK_NAMES = ("deepseek-v4", "deepseek-v4.1")


class EncoderRefusedError(RenderError):
    """The encoder refused a payload; the message holds its own words."""


def convert(version: str, messages: Sequence[Message], keys: Mapping[str, Any]) -> Any:
    """Render with the encoder of ``version`` and return its RenderedPrompt.

    Raises:
        EncoderRefusedError: in place of whatever the encoder raises.
        RenderError: for a lone surrogate.
        MissingExtraError: when deepseek-recipe is not installed.
    """
    recipe = _recipe()
    encoder, options = _encoder(version)
    body = {"model": version, "messages": [dict(message) for message in messages], **keys}
    try:
        request = recipe.ChatCompletionRequest(body).convert(options)
        return encoder.render_conversation(request.conversation)
    except UnicodeEncodeError as fault:
        raise RenderError(surrogate_fault(messages) or f"The payload is not valid text: {fault}.") from fault
    except Exception as fault:  # the encoder raises several kinds of its own
        raise EncoderRefusedError(str(fault)) from fault


def explain(
    version: str, messages: Sequence[Message], keys: Mapping[str, Any], fault: EncoderRefusedError
) -> RenderError:
    """Say which message, or which key of the payload, the encoder refuses.

    The message at fault stands right behind the longest beginning that the encoder takes.
    """
    words = str(fault).removeprefix("invalid request body: ").rstrip(".")
    if not _renders(version, [{"role": "user", "content": "json"}], keys):
        return RenderError(
            f"The encoder of {version} refuses {', '.join(map(repr, keys))} of the payload: {words}. "
            "Correct that value, or drop it."
        )
    good = next((n for n in range(len(messages) - 1, 0, -1) if _renders(version, messages[:n], keys)), 0)
    if "json" in words and "word" in words:
        return RenderError(f"{words}. Say in the system or user text that the answer is JSON.")
    return RenderError(
        f"The encoder of {version} refuses message {good} ({messages[good]['role']}): {words}. "
        "Correct that message, or the ones that must follow it."
    )


def image_spelling() -> str:
    """How the encoder spells the placeholder of an image."""
    return str(_recipe().SpecialToken.Image.default_str())


def _renders(version: str, messages: Sequence[Message], keys: Mapping[str, Any]) -> bool:
    try:
        convert(version, messages, keys)
    except RenderError:
        return False
    return True


@cache
def _recipe() -> ModuleType:
    try:
        import deepseek_recipe  # noqa: PLC0415 - a native extension that other renderers do without
    except ImportError as fault:
        raise MissingExtraError(
            "DeepSeek's chat encoder is not installed: pip install 'deepseek-recipe>=0.2,<0.3'. It has no "
            "wheel for Windows: use WSL there, or render the request yourself and align it with chat='plain'."
        ) from fault
    return deepseek_recipe


@cache
def _encoder(version: str) -> tuple[Any, Any]:
    recipe = _recipe()
    v4 = version == "deepseek-v4"
    target = recipe.ModelVersion.DeepseekV4Pro if v4 else recipe.ModelVersion.DeepseekV41Flash
    encoder = recipe.DeepseekV4Encoding() if v4 else recipe.DeepseekV41Encoding()
    return encoder, recipe.ConversionOptions().with_model_versions_by_name({version: target})
