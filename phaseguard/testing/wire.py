"""Bodies of OpenAI's API: completions, legacy completions, models, errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phaseguard.testing.completion import Completion, Echo

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """What every body of one answer says.

    Attributes:
        number: of the call; ``model``: that was asked for; ``created``: Unix time in seconds.
    """

    number: int
    model: str
    created: int

    def body(self, kind: str, prefix: str = "chatcmpl") -> Json:
        """The keys in front."""
        made = {"id": f"{prefix}-{self.number}", "object": kind, "created": self.created}
        return made | {"model": self.model}


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818 - what the server answers, not what went wrong with it
    """An answer that is an error in OpenAI's form."""

    status: int
    message: str
    code: str | None = None
    kind: str = "invalid_request_error"
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Json:
        """The error's body."""
        said = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": said}


def chat(head: Head, completion: Completion, request: Mapping[str, Any]) -> Json:
    """The body of ``/v1/chat/completions``."""
    message: Json = {"role": "assistant", "content": completion.text, "refusal": None}
    if completion.tool_calls:
        message["tool_calls"] = tool_calls(completion, head.number)
    choice = {
        "index": 0,
        "message": message,
        "logprobs": chat_logprobs(completion, request),
        "finish_reason": completion.finished,
    }
    return head.body("chat.completion") | {"choices": [choice], "usage": usage([completion])}


def tool_calls(completion: Completion, number: int) -> list[Json]:
    """Its tool calls; ids are unique to the call."""
    return [
        {
            "id": f"call_{number}_{n}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for n, call in enumerate(completion.tool_calls)
    ]


def chat_logprobs(completion: Completion, request: Mapping[str, Any]) -> Json | None:
    """Log probabilities as chat completions give them, when they are asked for and known."""
    if not request.get("logprobs") or completion.logprobs is None:
        return None
    most = request.get("top_logprobs") or 0
    top = completion.top or ({},) * len(completion.logprobs)
    content = [
        _token(token, logprob) | {"top_logprobs": [_token(*pair) for pair in _best(ranked, most)]}
        for token, logprob, ranked in zip(completion.tokens or (), completion.logprobs, top, strict=True)
    ]
    return {"content": content, "refusal": None}


def _token(token: str, logprob: float) -> Json:
    # JSON has no infinity; OpenAI writes the least that it gives
    return {"token": token, "logprob": max(logprob, -9999.0), "bytes": list(token.encode())}


def _best(ranked: Mapping[str, float], most: int) -> list[tuple[str, float]]:
    return sorted(ranked.items(), key=lambda pair: -pair[1])[:most]


def legacy(head: Head, completions: Sequence[Completion], request: Mapping[str, Any]) -> Json:
    """The body of ``/v1/completions``, one choice a prompt."""
    choices = [legacy_choice(n, completion, request) for n, completion in enumerate(completions)]
    return head.body("text_completion", "cmpl") | {"choices": choices, "usage": usage(completions)}


def legacy_choice(number: int, completion: Completion, request: Mapping[str, Any]) -> Json:
    """One choice of a legacy completion; with ``echo`` its text starts with the prompt."""
    echo = completion.echo if request.get("echo") else None
    return {
        "index": number,
        "text": ("".join(echo.tokens) if echo else "") + (completion.text or ""),
        "logprobs": _legacy_logprobs(completion, echo, request),
        "finish_reason": completion.finished,
    }


def _legacy_logprobs(completion: Completion, echo: Echo | None, request: Mapping[str, Any]) -> Json | None:
    most = request.get("logprobs")
    if most is None or completion.logprobs is None:
        return None
    tokens = [*(echo.tokens if echo else ()), *(completion.tokens or ())]
    ranked: list[Mapping[str, float] | None] = []
    if echo:
        ranked += echo.top or [None] * len(echo.tokens)
    ranked += completion.top or [None] * len(completion.logprobs)
    offsets = [0]
    for token in tokens[:-1]:
        offsets.append(offsets[-1] + len(token))
    return {
        "tokens": tokens,
        "token_logprobs": [*(echo.logprobs if echo else ()), *completion.logprobs],
        "top_logprobs": [None if top is None else dict(_best(top, most)) for top in ranked] if most else None,
        "text_offset": offsets[: len(tokens)],
    }


def usage(completions: Sequence[Completion]) -> Json | None:
    """Tokens of all of them; None when one does not know its prompt's."""
    if any(completion.prompt_tokens is None for completion in completions):
        return None
    prompt = _total(completion.prompt_tokens for completion in completions)
    answer = _total(completion.completion_tokens for completion in completions)
    made: Json = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    if any(completion.cached_tokens is not None for completion in completions):
        cached = _total(completion.cached_tokens for completion in completions)
        made["prompt_tokens_details"] = {"cached_tokens": cached}
    return made


def _total(counts: Iterable[int | None]) -> int:
    return sum(count or 0 for count in counts)


def models(names: Iterable[str]) -> Json:
    """The body of ``/v1/models``."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "phaseguard"} for name in names]
    return {"object": "list", "data": listed}
