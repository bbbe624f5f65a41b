"""DeepSeek V4 and V4.1, rendered by DeepSeek's own encoder (package deepseek-recipe)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from phaseguard.chat.base import Message, Piece, Rendered
from phaseguard.chat.payload import check_messages
from phaseguard.chat.recipe import DEEPSEEK_NAMES, EncoderRefusedError, convert, explain, image_spelling
from phaseguard.chat.skeleton import locate_contents
from phaseguard.errors import InputError, RenderError, did_you_mean
from phaseguard.text import Span

Reasoning = Literal["off", "low", "high", "max"]
_ROLES = frozenset({"system", "user", "assistant", "tool", "latest_reminder"})
_BLOCKS = ("text", "image_url", "file")
# The keys of a payload that the encoder turns into text; all others leave the request as it is.
_PROMPT_KEYS = ("tools", "tool_choice", "response_format")
_REASONING_KEYS = ("thinking", "reasoning_effort")


@dataclass(frozen=True, slots=True)
class DeepSeekRenderer:
    r"""Renders OpenAI-style payloads for DeepSeek V4 or V4.1; token index 0 is the BOS.

    Reasoning modes (the text in front of the system prompt, and so every phase, depends on them):

    ======  ===========================  ====================================  =====================
    mode    payload keys                 V4: text behind BOS                   V4.1: text behind BOS
    ======  ===========================  ====================================  =====================
    off     ``thinking: disabled``       none; answer opens ``</think>``       none
    low     ``enabled``, effort ``low``  none; answer opens ``<think>``        ``Effort: 50`` line
    high    ``enabled``, ``high``        "Absolute maximum ...", 79 tokens     ``Effort: 75`` line
    max     ``enabled``, ``max``         "Beyond maximum ...", 92 tokens       ``Effort: 100`` line
    ======  ===========================  ====================================  =====================

    ``medium`` and ``xhigh`` equal ``high``, ``minimal`` equals ``low``. ``thinking`` or
    ``reasoning_effort`` in a payload win over ``reasoning``, with a note.

    What the text in front of a message depends on:

    - V4 moves all system messages to the front and joins them (``\n\n``): a later system message moves
      every message behind it. V4.1 leaves them where they are. Empty ones vanish.
    - ``tools`` and ``response_format`` are appended to the (first) system prompt.
    - Neighbouring user messages and tool results are joined by ``\n\n`` into one user turn; tool results
      are put in the order of the calls, and a call must have all its results.
    - Earlier reasoning is kept when the payload has tools and thinking is on, and dropped otherwise: it
      does not change with later turns. Only a message continued with ``prefix`` keeps its own.
    - ``tool_choice="required"`` and the mode's ``<think>`` or ``</think>`` change the request's end only.

    So a message's place depends on what comes later in one case alone: V4 with a system message behind it.

    Attributes:
        version: ``deepseek-v4`` or ``deepseek-v4.1``; also the renderer's name.
        reasoning: mode for payloads that do not say.
        prefix_tokens: tokens that an engine puts in front of the encoder's BOS; usually 0.

    >>> DeepSeekRenderer("deepseek-v4").render([{"role": "user", "content": "hi"}], {}).text
    '<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>'
    """

    version: str
    reasoning: Reasoning = "off"
    prefix_tokens: int = 0

    def __post_init__(self) -> None:
        if self.version not in DEEPSEEK_NAMES:
            hint = did_you_mean(str(self.version), DEEPSEEK_NAMES)
            raise InputError(f"Unknown DeepSeek encoding {self.version!r}. {hint}")
        if self.reasoning not in get_args(Reasoning):
            hint = did_you_mean(str(self.reasoning), get_args(Reasoning))
            raise InputError(f"Unknown reasoning mode {self.reasoning!r}. {hint}")

    @property
    def name(self) -> str:
        """The version."""
        return self.version

    def render(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Rendered:
        """Render with the official encoder, and map each text to the request.

        Raises:
            RenderError: when the encoder refuses the payload; says which message is at fault.
            MissingExtraError: when deepseek-recipe is not installed.
        """
        check_messages(messages, _ROLES, _BLOCKS)
        keys, notes = self._keys(options)
        try:
            prompt = convert(self.version, messages, keys)
        except EncoderRefusedError as fault:
            raise explain(self.version, messages, keys, fault) from fault.__cause__
        text: str = prompt.prompt
        specials = tuple(Span(start, end) for start, end in prompt.special_ranges)
        layout = locate_contents(messages, lambda ms: str(convert(self.version, ms, keys).prompt), text)
        _check_plain(layout.pieces, specials)
        known_until = None
        if prompt.image_sources:
            known_until = _first_image_end(text, specials)
            notes.append("How many tokens an image takes is not known here: no index behind the first is.")
        elif any(_has_images(message) for message in messages):
            notes.append("DeepSeek V4 sees the words '[Unsupported Image]' in place of an image.")
        notes += layout.notes
        return Rendered(text, specials, layout.pieces, self.prefix_tokens, known_until, tuple(notes))

    def unstable(
        self,
        messages: Sequence[Message],
        options: Mapping[str, Any],  # noqa: ARG002 - one signature for all renderers
        among: Collection[int] | None = None,
    ) -> tuple[int, ...]:
        """See :func:`phaseguard.chat.unstable_messages`; no rendering is needed here."""
        if self.version != "deepseek-v4":
            return ()
        last = max((n for n, m in enumerate(messages) if m["role"] == "system" and _has_text(m)), default=0)
        chosen = range(last) if among is None else sorted(k for k in set(among) if k < last)
        return tuple(k for k in chosen if messages[k]["role"] != "system" and _has_text(messages[k]))

    def _keys(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The payload's keys that matter, and notes on those that win over the renderer's own."""
        keys = {key: options[key] for key in _PROMPT_KEYS if options.get(key) is not None}
        own: dict[str, Any] = {"thinking": {"type": "disabled"}}
        if self.reasoning != "off":
            own = {"thinking": {"type": "enabled"}, "reasoning_effort": self.reasoning}
        given = {key: options[key] for key in _REASONING_KEYS if options.get(key) is not None}
        notes: list[str] = []
        if given and given != own:
            said = ", ".join(f"{key}={value!r}" for key, value in given.items())
            notes.append(f"The payload's {said} wins over the reasoning mode {self.reasoning!r}.")
        if options.get("chat_template_kwargs"):
            notes.append("'chat_template_kwargs' is for Jinja templates and has no effect here.")
        return keys | (given or own), notes


def _has_text(message: Message) -> bool:
    content = message.get("content") or ""
    return bool(content) and (isinstance(content, str) or any(b.get("text", "image") for b in content))


def _has_images(message: Message) -> bool:
    content = message.get("content") or ""
    return not isinstance(content, str) and any(block["type"] != "text" for block in content)


def _first_image_end(text: str, specials: Sequence[Span]) -> int:
    spelling = image_spelling()
    return next((span.end for span in specials if span.of(text) == spelling), 0)


def _check_plain(pieces: Sequence[Piece], specials: Sequence[Span]) -> None:
    """Raise when the encoder reads a special token inside a message's own text."""
    rest = iter(specials)
    special = next(rest, None)
    for piece in pieces:
        while special is not None and special.end <= piece.request.start:
            special = next(rest, None)
        if special is not None and special.start < piece.request.end:
            raise RenderError(
                f"The encoder reads a special token in the text of message {piece.message}: change it."
            )
