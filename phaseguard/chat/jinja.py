"""Any chat template in Jinja, given as text or taken from a local tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from phaseguard.chat.base import Message, Piece, Rendered
from phaseguard.chat.payload import check_messages, surrogate_fault
from phaseguard.chat.skeleton import locate_contents, stands_still, strips_blanks
from phaseguard.chat.template import plain, render_template
from phaseguard.errors import RenderError
from phaseguard.text import Span

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython"})
_BREAK = "\U0010fffd"


@dataclass(frozen=True, slots=True)
class JinjaRenderer:
    """Renders messages with a chat template, as transformers' ``apply_chat_template`` does.

    transformers' own function is used when it is installed, jinja2 alone otherwise. Options that count:
    ``tools``, ``documents``, ``chat_template_kwargs`` (as in vLLM: ``{"enable_thinking": False}``),
    ``add_generation_prompt`` (default True) and ``continue_final_message`` (default: the last message has a
    true ``prefix``). Tool call arguments given as JSON text become objects, as servers do it.

    What the text in front of a message depends on is the template's affair: :meth:`unstable` renders it.

    Attributes:
        template: the template's text.
        special_tokens: spellings that are one token each where the template writes them. The same
            spelling inside a message is plain text here; many servers read it as the token.
        bos_token, eos_token: what the template sees under these names.
        prefix_tokens: tokens that the engine puts before the rendered text.
        template_kwargs: further variables, below the payload's own.
        tool_template: the template for payloads with tools, when the tokenizer has one of its own.
        reasoning: what the profile says; a template learns of it from ``chat_template_kwargs`` only.

    >>> template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}"
    >>> messages = [{"role": "user", "content": " hi "}]
    >>> r = JinjaRenderer(template, special_tokens=("<|user|>",)).render(messages, {})
    >>> r.text, r.specials, r.pieces[0].content
    ('<|user|>hi', (Span(start=0, end=8),), Span(start=1, end=3))
    """

    template: str
    special_tokens: tuple[str, ...] = ()
    bos_token: str = ""
    eos_token: str = ""
    prefix_tokens: int = 0
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tool_template: str | None = None
    reasoning: str = "off"

    @property
    def name(self) -> str:
        """``jinja``."""
        return "jinja"

    def render(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Rendered:
        """Render, and map each text to the request.

        Raises:
            RenderError: when the template refuses the conversation, or changes a user's text.
            MissingExtraError: when jinja2 is not installed.
        """
        check_messages(messages, _ROLES, None)
        text = self._text(messages, options)
        layout = locate_contents(messages, lambda ms: self._text(ms, options), text)
        strips = strips_blanks(messages, layout.opaque, lambda ms: self._text(ms, options))
        pieces = tuple(replace(p, strips=(p.message, p.block) in strips) for p in layout.pieces)
        notes = list(layout.notes)
        specials, spelt = self._specials(messages, options, text, pieces)
        if spelt:
            notes.append(
                "A message spells a special token. It counts as plain text here; a server that encodes the "
                "rendered text as a whole reads it as the token, and everything behind it stands elsewhere."
            )
        if self.reasoning != "off" and not self._variables(options).keys() - _ALWAYS:
            notes.append(
                f"The template is not told of reasoning {self.reasoning!r}: set chat_template_kwargs."
            )
        known_until = _first_medium(messages, pieces)
        if known_until is not None:
            notes.append(
                "How many tokens an image or a sound takes is not known here: no index behind it is."
            )
        return Rendered(text, specials, pieces, self.prefix_tokens, known_until, tuple(notes))

    def unstable(
        self, messages: Sequence[Message], options: Mapping[str, Any], among: Collection[int] | None = None
    ) -> tuple[int, ...]:
        """See :func:`phaseguard.chat.unstable_messages`; renders short stand-ins, one a message asked for."""
        check_messages(messages, _ROLES, None)
        layout = locate_contents(messages, lambda ms: self._text(ms, options), self._text(messages, options))
        still = stands_still(messages, layout.opaque, lambda ms: self._text(ms, options))
        chosen = range(len(messages)) if among is None else sorted(set(among))
        return tuple(k for k in chosen if not still(k))

    def _text(self, messages: Sequence[Message], options: Mapping[str, Any]) -> str:
        last = messages[-1]
        go_on = options.get(
            "continue_final_message", last["role"] == "assistant" and bool(last.get("prefix"))
        )
        variables = self._variables(options)
        variables["add_generation_prompt"] = bool(options.get("add_generation_prompt", True)) and not go_on
        template = self.template
        if variables["tools"] is not None and self.tool_template is not None:
            template = self.tool_template
        try:
            return render_template(template, [_as_objects(m) for m in messages], variables, go_on=bool(go_on))
        except UnicodeEncodeError as fault:
            raise RenderError(
                surrogate_fault(messages) or f"The payload is not valid text: {fault}."
            ) from fault

    def _variables(self, options: Mapping[str, Any]) -> dict[str, Any]:
        tools = options.get("tools") or None
        if tools is not None and not (
            isinstance(tools, Sequence) and all(isinstance(tool, Mapping) for tool in tools)
        ):
            raise RenderError(
                '\'tools\' must be a list of dicts like {"type": "function", "function": {...}}.'
            )
        given = options.get("chat_template_kwargs") or {}
        if not isinstance(given, Mapping):
            raise RenderError("'chat_template_kwargs' must be a dict of the template's variables.")
        own = {"bos_token": self.bos_token, "eos_token": self.eos_token, **self.template_kwargs, **given}
        return {**own, "tools": plain(tools), "documents": plain(options.get("documents"))}

    def _specials(
        self, messages: Sequence[Message], options: Mapping[str, Any], text: str, pieces: Sequence[Piece]
    ) -> tuple[tuple[Span, ...], bool]:
        """Special tokens that the template writes, and whether the payload spells any itself."""
        spellings = sorted({token for token in self.special_tokens if token}, key=len, reverse=True)
        if not spellings:
            return (), False
        pattern = re.compile("|".join(map(re.escape, spellings)))
        payload = {"messages": messages, "tools": options.get("tools"), "documents": options.get("documents")}
        if not any(pattern.search(leaf) for leaf in _leaves(payload)):
            return tuple(_outside((Span(*m.span()) for m in pattern.finditer(text)), pieces)), False
        # The payload's own spellings are broken up in a second rendering, so that only the template's match.
        broken = _broken(payload, pattern)
        marked = self._text(broken["messages"], {**options, **{k: broken[k] for k in ("tools", "documents")}})
        if marked.replace(_BREAK, "") != text:
            raise RenderError("A message spells a special token that the chat template acts on: remove it.")
        found = [Span(*m.span()) for m in pattern.finditer(marked)]
        return tuple(_outside(_without_breaks(found, marked), pieces)), True


_ALWAYS = frozenset({"bos_token", "eos_token", "tools", "documents"})


def _as_objects(message: Message) -> dict[str, Any]:
    """The message with tool call arguments as objects, where they are the JSON text of one."""
    copy = dict(message)
    calls = copy.get("tool_calls")
    if calls:
        copy["tool_calls"] = [
            {**c, "function": {**c["function"], **_arguments(c["function"])}} for c in calls
        ]
    return copy


def _first_medium(messages: Sequence[Message], pieces: Sequence[Piece]) -> int | None:
    """End of the last text that certainly stands in front of the first image or sound; None without one."""
    for index, message in enumerate(messages):
        content = message.get("content") or ""
        for number, block in enumerate(() if isinstance(content, str) else content):
            if block["type"] != "text":
                end = 0
                for piece in pieces:
                    if (piece.message, -1 if piece.block is None else piece.block) > (index, number):
                        break
                    end = piece.request.end
                return end
    return None


def _arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    given = function.get("arguments")
    if not isinstance(given, str):
        return {}
    try:
        read = json.loads(given)
    except ValueError:
        return {}
    return {"arguments": read} if isinstance(read, dict) else {}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for item in value:
            yield from _leaves(item)


def _broken(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: match[0][:1] + _BREAK + match[0][1:], value)
    if isinstance(value, Mapping):
        return {key: _broken(item, pattern) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_broken(item, pattern) for item in value]
    return value


def _without_breaks(spans: Sequence[Span], marked: str) -> Iterator[Span]:
    shift, at = 0, 0
    for span in spans:
        shift += marked.count(_BREAK, at, span.start)
        at = span.start
        yield Span(span.start - shift, span.end - shift)


def _outside(spans: Iterator[Span] | Sequence[Span], pieces: Sequence[Piece]) -> Iterator[Span]:
    """The spans that share no character with a message's text."""
    rest = iter(pieces)
    piece = next(rest, None)
    for span in spans:
        while piece is not None and piece.request.end <= span.start:
            piece = next(rest, None)
        if piece is None or not piece.request.overlaps(span):
            yield span
