"""Which messages stand elsewhere once the conversation goes on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from phaseguard.chat.base import Message, Rendered, Renderer
from phaseguard.errors import RenderError


def unstable_messages(
    renderer: Renderer,
    messages: Sequence[Message],
    options: Mapping[str, Any],
    among: Collection[int] | None = None,
) -> tuple[int, ...]:
    """Messages whose text stands elsewhere in the request of ``messages[:k + 1]`` than in that of the whole.

    For every other message ``k`` the request up to the end of its text is the same in both, so what is
    solved for it now still holds after the next turn. An unstable message must be solved in
    ``renderer.render(messages[:k + 1], options)``. Where that beginning cannot be rendered (the results of
    a tool call are incomplete), the shortest longer one counts.

    Args:
        renderer: its own ``unstable`` is used when it has one; else every beginning asked for is rendered.
        messages: the whole conversation.
        options: the payload's other keys.
        among: look only at these messages; None looks at all.

    Returns:
        Ascending indices.

    >>> from phaseguard.chat import PlainRenderer
    >>> unstable_messages(PlainRenderer(), [{"role": "user", "content": "a"}], {})
    ()
    """
    own = getattr(renderer, "unstable", None)
    if own is not None:
        found: tuple[int, ...] = own(messages, options, among)
        return found
    return unstable_by_rendering(renderer, messages, options, among)


def unstable_by_rendering(
    renderer: Renderer,
    messages: Sequence[Message],
    options: Mapping[str, Any],
    among: Collection[int] | None = None,
) -> tuple[int, ...]:
    """As :func:`unstable_messages`, by rendering every beginning in full: slow, and the oracle in tests."""
    whole = renderer.render(messages, options)
    found: list[int] = []
    for k in sorted(range(len(messages)) if among is None else set(among)):
        end = _end_of(whole, k)
        if end is None:
            continue
        for stop in range(k + 1, len(messages)):
            try:
                alone = renderer.render(messages[:stop], options)
            except RenderError:
                continue
            if _end_of(alone, k) != end or alone.text[:end] != whole.text[:end]:
                found.append(k)
            break
    return tuple(found)


def _end_of(rendered: Rendered, message: int) -> int | None:
    return max((p.request.end for p in rendered.pieces if p.message == message), default=None)
