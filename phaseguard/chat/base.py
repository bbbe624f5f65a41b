"""What a renderer must offer: the exact request text, and where each message's content stands in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from phaseguard.errors import RenderError
from phaseguard.text import Span

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a message's content that stands verbatim in the request.

    Attributes:
        message: index of the message.
        block: index of the content block, or None when the content is a string.
        content: the characters of that content (or of the block's text) which are in the request;
            a template may strip blanks at the ends.
        request: where they stand in the request text; same length as ``content``.
        strips: whether blanks put in front of the content would not reach the request.
    """

    message: int
    block: int | None
    content: Span
    request: Span
    strips: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request as the model sees it.

    Attributes:
        text: the request text.
        specials: ascending, disjoint spans of ``text``, each the spelling of one special token.
        pieces: where message contents stand, ascending in the request. The order of the request may
            differ from the order of the messages: an encoder may hoist system messages or sort tool
            results. A content that the template prints twice has two pieces.
        prefix_tokens: tokens that stand before ``text`` (a BOS added by the engine, say).
        known_until: characters from here on have an unknown token index (an image stands before
            them, say); None when every index is known.
        notes: what the reader of a report should know about this rendering.

    >>> r = Rendered("<u>hi</u>", (Span(0, 3), Span(5, 9)), (Piece(0, None, Span(0, 2), Span(3, 5)),))
    >>> r.locate(0, 1), r.text[r.locate(0, 1)]
    (4, 'i')
    """

    text: str
    specials: tuple[Span, ...] = ()
    pieces: tuple[Piece, ...] = ()
    prefix_tokens: int = 0
    known_until: int | None = None
    notes: tuple[str, ...] = field(default=())

    def locate(self, message: int, offset: int, block: int | None = None) -> int:
        """Request offset of a character of a message's content.

        Raises:
            RenderError: when that character is not in the request.
        """
        for piece in self.pieces:
            if (piece.message, piece.block) == (message, block) and (
                piece.content.start <= offset <= piece.content.end
            ):
                return piece.request.start + offset - piece.content.start
        where = "" if block is None else f", block {block}"
        raise RenderError(
            f"Character {offset} of message {message}{where} does not stand in the rendered request: "
            "the chat encoding strips, changes or drops it. Choose a passage that the model sees as it is."
        )


@runtime_checkable
class Renderer(Protocol):
    """Turns an OpenAI-style payload into the request text.

    A renderer may also have ``unstable(messages, options, among)``, a faster form of
    :func:`phaseguard.chat.unstable_messages` with the same result.
    """

    @property
    def name(self) -> str:
        """The name under which :func:`phaseguard.chat.load_renderer` finds it again."""

    def render(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Rendered:
        """Render messages; ``options`` holds the payload's other keys (tools, response_format, ...).

        Raises:
            RenderError: when the payload cannot be rendered; the message says which message is at fault.
        """
