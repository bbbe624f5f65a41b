"""The request is the text as given: for base models and raw completion."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.chat.base import Message, Piece, Rendered
from phaseguard.chat.payload import check_messages, texts_of
from phaseguard.errors import RenderError
from phaseguard.text import Span

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_NO_PLACE = ("tools", "functions", "response_format")


@dataclass(frozen=True, slots=True)
class PlainRenderer:
    """Concatenates the contents verbatim, without separators and without special tokens.

    Attributes:
        prefix_tokens: tokens that the engine puts before the text, such as one BOS.

    >>> PlainRenderer(prefix_tokens=1).render([{"role": "user", "content": "Once upon"}], {}).text
    'Once upon'
    """

    prefix_tokens: int = 0

    @property
    def name(self) -> str:
        """``plain``."""
        return "plain"

    def render(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Rendered:
        """Join the texts of ``messages``.

        Raises:
            RenderError: for tools or a response format, which raw text has no place for.
        """
        check_messages(messages, _ROLES, ("text",))
        for key in _NO_PLACE:
            if options.get(key) and options[key] != {"type": "text"}:
                raise RenderError(
                    f"The plain encoding has no place for {key!r}: drop it, or take a chat encoding."
                )
        pieces: list[Piece] = []
        parts: list[str] = []
        at = 0
        for item in texts_of(messages):
            end = at + len(item.text)
            pieces.append(Piece(item.message, item.block, Span(0, len(item.text)), Span(at, end)))
            parts.append(item.text)
            at = end
        return Rendered("".join(parts), (), tuple(pieces), self.prefix_tokens)

    def unstable(
        self,
        messages: Sequence[Message],  # noqa: ARG002 - one signature for all renderers
        options: Mapping[str, Any],  # noqa: ARG002
        among: Collection[int] | None = None,  # noqa: ARG002
    ) -> tuple[int, ...]:
        """Return nothing: no text depends on what follows it."""
        return ()
