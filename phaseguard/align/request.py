"""The request as token ids: where every character of every message stands, as an absolute token index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phaseguard.chat.base import Rendered
from phaseguard.errors import RenderError
from phaseguard.text import Span
from phaseguard.tokens.base import Encoding, Tokenizer

# V4.1 writes <｜System｜>, which the public V4 vocabulary does not name; a special range is still one token
UNKNOWN_SPECIAL = 2**32 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A rendered request and its tokens.

    Attributes:
        rendered: the text and where the messages stand in it.
        encoding: tokens of the whole text; offsets are characters of ``rendered.text``.
        offset: tokens that stand before the text (a BOS added by the engine, a measured prefix).
    """

    rendered: Rendered
    encoding: Encoding
    offset: int

    @property
    def tokens(self) -> int:
        """Number of tokens of the whole request, the ones before the text included."""
        return self.offset + len(self.encoding)

    def token_range(self, span: Span) -> tuple[int, int]:
        """First and one-past-last token of a run of characters, without ``offset``."""
        first = int(np.searchsorted(self.encoding.ends, span.start, side="right"))
        stop = int(np.searchsorted(self.encoding.starts, max(span.end, span.start + 1), side="left"))
        return first, max(stop, first + 1)

    def known(self, at: int) -> bool:
        """Whether the token index of a character can be known (no image stands before it)."""
        limit = self.rendered.known_until
        return limit is None or at < limit


def encode_request(rendered: Rendered, tokenizer: Tokenizer, *, prefix_offset: int = 0) -> Request:
    """Encode a rendered request as the official encoders do.

    Each special range becomes its one id; the text between them is encoded piece by piece without the
    added vocabulary, so that a message which spells a special token moves no boundary.

    Args:
        rendered: the request.
        tokenizer: encodes the plain text between special ranges.
        prefix_offset: tokens in front of the request that the renderer does not know of.

    Raises:
        RenderError: when the tokenizer has none of the special tokens.
    """
    pieces = list(_plain_spans(rendered))
    encodings = tokenizer.encode_batch([span.of(rendered.text) for span in pieces])
    parts: list[tuple[int, Encoding]] = [
        (span.start, encoding) for span, encoding in zip(pieces, encodings, strict=True)
    ]
    parts += _specials(rendered, tokenizer)
    parts.sort(key=lambda part: part[0])
    return Request(rendered, _joined(parts), rendered.prefix_tokens + prefix_offset)


def _plain_spans(rendered: Rendered) -> Iterator[Span]:
    at = 0
    for special in rendered.specials:
        if special.start > at:
            yield Span(at, special.start)
        at = special.end
    if at < len(rendered.text):
        yield Span(at, len(rendered.text))


def _specials(rendered: Rendered, tokenizer: Tokenizer) -> list[tuple[int, Encoding]]:
    """Each special range as one token; one that this vocabulary does not have still counts as one."""
    ids = [tokenizer.special_id(span.of(rendered.text)) for span in rendered.specials]
    if ids and all(token is None for token in ids):
        raise RenderError(
            f"The chat encoding writes special tokens such as {rendered.specials[0].of(rendered.text)!r}, "
            f"and tokenizer {tokenizer.name!r} has none of them: give a profile whose chat and tokenizer "
            "belong together."
        )
    zero = np.zeros(1, np.int64)
    return [
        (
            span.start,
            Encoding(
                np.array([UNKNOWN_SPECIAL if token is None else token], np.uint32),
                zero,
                np.array([span.end - span.start], np.int64),
            ),
        )
        for span, token in zip(rendered.specials, ids, strict=True)
    ]


def _joined(parts: list[tuple[int, Encoding]]) -> Encoding:
    if not parts:
        return Encoding(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int64))
    return Encoding(
        np.concatenate([encoding.ids for _, encoding in parts]),
        np.concatenate([encoding.starts + start for start, encoding in parts]),
        np.concatenate([encoding.ends + start for start, encoding in parts]),
    )
