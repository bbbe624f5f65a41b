"""What a model's message says, whichever client brought it: its tool calls, or its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from phaseguard.errors import InputError
from phaseguard.voting import answer_probability, calls_text


def said(text: Any, calls: Sequence[tuple[str, object]] = (), refusal: Any = None) -> str:
    """The answer that a message is.

    Tool calls come before text beside them: they are what an application acts on, and the text about them
    differs from call to call.

    Args:
        text: of the message, or None.
        calls: name and arguments of each tool call, see :func:`phaseguard.voting.calls_text`.
        refusal: what the model said in place of an answer, or None.

    Raises:
        InputError: when it holds neither, so that the call counts as a missing ballot.

    >>> said(None, [("look_up", '{"code": "A-17"}')])
    '[["look_up",{"code":"A-17"}]]'
    """
    if calls:
        return calls_text(calls)
    if refusal:
        raise InputError(f"The model refused: {refusal}")
    if not isinstance(text, str):
        raise InputError(
            "The reply has no text and no tool calls: see what the endpoint says of this request."
        )
    return text


def probability(logprobs: Iterable[float] | None) -> float | None:
    """Of the whole answer; None where the endpoint gave no log probabilities.

    >>> probability([]) is None
    True
    """
    known = list(logprobs or ())
    return answer_probability(known) if known else None


def token_logprobs(choice: Any) -> list[float]:
    """Those of the tokens of a choice of OpenAI's API, of a chat or a legacy completion; none if unknown.

    >>> from types import SimpleNamespace as S
    >>> token_logprobs(S(logprobs=S(content=[S(logprob=-0.1)])))
    [-0.1]
    """
    given = getattr(choice, "logprobs", None)
    content = getattr(given, "content", None)
    return (
        [token.logprob for token in content]
        if content
        else list(getattr(given, "token_logprobs", None) or ())
    )


def cached_tokens(usage: Any) -> int | None:
    """Tokens of a prompt that were read from a cache, as OpenAI says it or as DeepSeek does.

    >>> from types import SimpleNamespace as S
    >>> cached_tokens(S(prompt_cache_hit_tokens=64))
    64
    """
    details = getattr(usage, "prompt_tokens_details", None)
    cached: int | None = getattr(details, "cached_tokens", None)
    return getattr(usage, "prompt_cache_hit_tokens", None) if cached is None else cached


def block_text(content: Any) -> str | None:
    """The text of a content that is a string or a list of blocks; None when no block holds text.

    >>> block_text([{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "42"}, "!"])
    '42!'
    """
    if isinstance(content, str) or content is None:
        return content
    texts = [one if isinstance(one, str) else one.get("text") for one in content if _is_text(one)]
    return "".join(text for text in texts if text) if texts else None


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (
        isinstance(block, dict) and block.get("type") in ("text", "output_text")
    )
