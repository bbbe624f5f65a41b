"""What a request has to fulfil, and the error that says which it does not."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.testing.completion import Completion
from phaseguard.testing.wire import Refusal

MOST_TOP = 20  # the most alternatives a place that OpenAI gives


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every request.

    Attributes:
        models: that may be asked; ``key``: that must be sent, or None; ``context``: most tokens, or None.
    """

    models: tuple[str, ...]
    key: str | None
    context: int | None

    def check_key(self, authorization: str | None) -> None:
        """Refuse with 401 what comes without the key."""
        if self.key is None:
            return
        given = (authorization or "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.key.encode()):
            said = "Incorrect API key provided." if given else "You didn't provide an API key."
            raise Refusal(401, said, "invalid_api_key")

    def check_model(self, model: object) -> None:
        """Refuse with 404 a model that is not served."""
        if not isinstance(model, str) or not model:
            raise Refusal(400, "You must provide a model parameter.", param="model")
        if model not in self.models:
            said = f"The model `{model}` does not exist or you do not have access to it."
            raise Refusal(404, said, "model_not_found", param="model")


def check_body(body: object) -> None:
    """Refuse with 400 what is no JSON object."""
    if not isinstance(body, dict):
        raise Refusal(400, "The body of the request is no JSON object.")


def check_chat(body: Mapping[str, Any]) -> None:
    """Refuse with 400 what is no chat request."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise Refusal(400, "'messages' must be a list of at least one message.", param="messages")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        said = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        raise Refusal(400, said, param="top_logprobs")
    _check_count(body, "top_logprobs", MOST_TOP)
    _check_numbers(body)


def check_legacy(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The prompts of a legacy completion; refuse with 400 what is none."""
    given = body.get("prompt")
    prompts = [given] if isinstance(given, str) else given
    if not isinstance(prompts, list) or not prompts or not all(isinstance(p, str) for p in prompts):
        raise Refusal(400, "'prompt' must be a string or a list of strings.", param="prompt")
    if body.get("stream") and len(prompts) > 1:
        raise Refusal(400, "This server streams one prompt at a time.", param="prompt")
    _check_count(body, "logprobs", MOST_TOP)
    _check_numbers(body)
    return tuple(prompts)


def _check_numbers(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise Refusal(400, "This server gives one choice: leave n at 1.", param="n")
    for name in ("max_tokens", "max_completion_tokens"):
        _check_count(body, name)


def _check_count(body: Mapping[str, Any], name: str, most: int | None = None) -> None:
    given = body.get(name)
    whole = isinstance(given, int) and not isinstance(given, bool)
    if given is not None and not (whole and 0 <= given <= (given if most is None else most)):
        limit = "from 0" if most is None else f"from 0 to {most}"
        raise Refusal(400, f"{name!r} must be a whole number {limit}.", param=name)


def check_context(completions: Sequence[Completion], body: Mapping[str, Any], context: int | None) -> None:
    """Refuse with 400 a prompt that does not fit with the answer that it asks for."""
    if context is None:
        return
    answer = body.get("max_completion_tokens", body.get("max_tokens")) or 0
    for completion in completions:
        prompt = completion.prompt_tokens
        if prompt is not None and prompt + answer > context:
            said = (
                f"This model's maximum context length is {context} tokens. However, you requested "
                f"{prompt + answer} tokens ({prompt} in the messages, {answer} in the completion). "
                "Please reduce the length of the messages or completion."
            )
            raise Refusal(400, said, "context_length_exceeded", param="messages")
