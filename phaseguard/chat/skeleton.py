"""Finds where contents stand in a rendering, without ever searching for the contents.

The payload is rendered a second time with every text replaced by a short sentinel. What stands between
the sentinels is the template's own text; put the real contents back and the result must equal the real
rendering, character by character. A passage that also occurs elsewhere cannot mislead this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phaseguard.chat.base import Message, Piece
from phaseguard.chat.payload import ContentText, texts_of
from phaseguard.errors import RenderError
from phaseguard.text import Span

RenderText = Callable[[Sequence[Message]], str]
Key = tuple[int, int | None]
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")
_MARKS = tuple(chr(0xF8FF - n) for n in range(64))
_LEAD = " \t\n"
# Roles whose text nobody edits: when a template changes it, it is left unmapped instead of refused.
_UNEDITED = frozenset({"assistant", "tool", "function"})


@dataclass(frozen=True, slots=True)
class Layout:
    """Where contents stand.

    Attributes:
        pieces: ascending in the request.
        opaque: (message, block) of texts that the template changes, so that nothing in them is located.
        absent: of texts that it leaves out.
    """

    pieces: tuple[Piece, ...]
    opaque: frozenset[Key] = frozenset()
    absent: frozenset[Key] = frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence a message whose text does not stand in the request as it is, and once."""
        notes = [
            f"The text of message {m} does not stand verbatim in the request: nothing in it can be located."
            for m in sorted({m for m, _ in self.opaque})
        ]
        keys = [(p.message, p.block) for p in self.pieces]
        notes += [
            f"The chat template leaves out the text of message {m}: the model does not see it."
            for m in sorted({m for m, _ in self.absent})
        ]
        twice = {key[0] for key, times in Counter(keys).items() if times > 1}
        notes += [
            f"The text of message {m} stands in the request more than once: the first place counts."
            for m in sorted(twice)
        ]
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class _Template:
    """The template's own texts and the slots between them: ``literals[i] slots[i] literals[i+1] ...``."""

    literals: tuple[str, ...]
    slots: tuple[int, ...]


def locate_contents(messages: Sequence[Message], render: RenderText, text: str) -> Layout:
    """Map every content of ``messages`` to ``text``, which is ``render(messages)``, and prove it.

    Args:
        messages: checked messages.
        render: renders messages to the request text; called with sentinels for contents.
        text: the rendering of the real messages.

    Returns:
        The pieces. Contents that a template leaves out have none; contents of assistant and tool
        messages that it changes (JSON-escapes, cuts) have none either and are listed as opaque.

    Raises:
        RenderError: when the template changes a content that a user may want aligned.

    >>> def chat(ms): return "".join(f"<{m['role']}>{m['content'].strip()}" for m in ms)
    >>> ms = [{"role": "user", "content": "u"}, {"role": "user", "content": " u "}]
    >>> [(p.content.start, p.request.start) for p in locate_contents(ms, chat, chat(ms)).pieces]
    [(0, 6), (1, 13)]
    """
    opaque: set[Key] = set()
    while True:
        slots = _slots(messages, opaque)
        template = _template(messages, slots, render)
        escaped = {_key(slots[~n]) for n in template.slots if n < 0}
        if escaped:
            opaque |= escaped
            continue
        whole = [Span(0, len(slot.text)) for slot in slots]
        fault = _first_fault(template, slots, whole, text)
        if fault is None:
            return _layout(template, slots, whole, opaque)
        trimmed = _trimmed(messages, slots, template, render)
        fault = _first_fault(template, slots, trimmed, text)
        if fault is None:
            return _layout(template, slots, trimmed, opaque)
        opaque |= _give_up(messages, slots, fault)


def strips_blanks(messages: Sequence[Message], opaque: frozenset[Key], render: RenderText) -> frozenset[Key]:
    """Texts, as (message, block), in front of which the template takes blanks away.

    ``render`` is called with sentinels, once with blanks in front of each.
    """
    slots = _slots(messages, opaque)
    mark = _free_mark(messages, slots, render)
    text = render(_with_sentinels(messages, slots, mark, lead=_LEAD))
    return frozenset(_key(slot) for n, slot in enumerate(slots) if _LEAD + _sentinel(mark, n) not in text)


def stands_still(
    messages: Sequence[Message], opaque: frozenset[Key], render: RenderText
) -> Callable[[int], bool]:
    """Return a test: does message ``k`` stand where it stands when the conversation ends with it?

    Where ``messages[:k + 1]`` alone cannot be rendered (tool results are still missing, say), the shortest
    longer beginning that can be is taken. ``render`` is called once, and once a tested message.
    """
    slots = _slots(messages, opaque)
    mark = _free_mark(messages, slots, render)
    marked = _with_sentinels(messages, slots, mark)
    whole = render(marked)

    def test(k: int) -> bool:
        last = [n for n, slot in enumerate(slots) if slot.message == k]
        ends = [whole.rfind(s) + len(s) for s in (_sentinel(mark, n) for n in last) if s in whole]
        if not ends:
            return True
        for stop in range(k + 1, len(marked)):
            try:
                alone = render(marked[:stop])
            except RenderError:
                continue
            return alone[: max(ends)] == whole[: max(ends)]
        return True

    return test


def _key(slot: ContentText) -> Key:
    return (slot.message, slot.block)


def _slots(messages: Sequence[Message], opaque: set[Key] | frozenset[Key]) -> list[ContentText]:
    # Encoders treat an empty text in ways of their own, so it stays as it is.
    return [t for t in texts_of(messages) if t.text and _key(t) not in opaque]


def _sentinel(mark: str, number: int) -> str:
    # "json": DeepSeek's encoder demands the word for JSON output; the quotes show when a template escapes.
    return f"{mark}json\"'{number}{mark}"


def _with_sentinels(
    messages: Sequence[Message],
    slots: Sequence[ContentText],
    mark: str,
    edges: Side | None = None,
    lead: str = "",
) -> list[dict[str, Any]]:
    """Copies of the messages with each slot's text replaced by ``lead`` and a sentinel.

    Its blanks at one end are kept on request.
    """
    copies: list[dict[str, Any]] = [dict(message) for message in messages]
    for number, slot in enumerate(slots):
        text = lead + _sentinel(mark, number)
        if edges == "left":
            text = slot.text[: len(slot.text) - len(slot.text.lstrip())] + text
        elif edges == "right":
            text += slot.text[len(slot.text.rstrip()) :]
        copy = copies[slot.message]
        if slot.block is None:
            copy["content"] = text
        else:
            if copy["content"] is messages[slot.message]["content"]:
                copy["content"] = list(copy["content"])
            copy["content"][slot.block] = {**copy["content"][slot.block], "text": text}
    return copies


def _free_mark(messages: Sequence[Message], slots: Sequence[ContentText], render: RenderText) -> str:
    """A private-use character that the rest of the rendering does not hold."""
    rendered = render(_with_sentinels(messages, slots, ""))
    for mark in _MARKS:
        if mark not in rendered:
            return mark
    raise RenderError("The payload uses all private-use characters that mark contents: remove some of them.")


def _template(messages: Sequence[Message], slots: Sequence[ContentText], render: RenderText) -> _Template:
    """Render with sentinels and cut at them; an escaped sentinel ``n`` shows as slot ``~n``."""
    mark = _free_mark(messages, slots, render)
    parts = re.split(f"{mark}([^{mark}]*){mark}", render(_with_sentinels(messages, slots, mark)))
    numbers: list[int] = []
    for inner in parts[1::2]:
        digits = re.search(r"\d+$", inner)
        number = int(digits[0]) if digits else -1
        if not 0 <= number < len(slots) or mark in parts[-1]:
            raise RenderError(
                "The chat template takes contents apart, so their characters cannot be located: "
                "choose another renderer, or render the prompt yourself and align it with chat='plain'."
            )
        numbers.append(number if inner == _sentinel("", number) else ~number)
    return _Template(tuple(parts[0::2]), tuple(numbers))


def _trimmed(
    messages: Sequence[Message], slots: Sequence[ContentText], template: _Template, render: RenderText
) -> list[Span]:
    """The range of each slot that the template keeps, told by how the gaps grow with blanks at one end."""
    mark = _free_mark(messages, slots, render)
    spans = [Span(0, len(slot.text)) for slot in slots]
    for side in _SIDES:
        text = render(_with_sentinels(messages, slots, mark, side))
        gaps = re.split(f"{mark}[^{mark}]*{mark}", text)
        if len(gaps) != len(template.literals):
            continue
        for place, number in enumerate(template.slots):
            body, span = slots[number].text, spans[number]
            if side == "left":
                kept = len(gaps[place]) - len(template.literals[place])
                start = len(body) - len(body.lstrip()) - kept
                spans[number] = Span(min(max(start, 0), span.end), span.end)
            else:
                kept = len(gaps[place + 1]) - len(template.literals[place + 1])
                end = len(body.rstrip()) + kept
                spans[number] = Span(span.start, max(span.start, min(end, len(body))))
    return spans


def _first_fault(
    template: _Template, slots: Sequence[ContentText], spans: Sequence[Span], text: str
) -> int | None:
    """Compare ``text`` with the filled template; None when equal, else the slot before the difference."""
    at, last = 0, -1
    for place, literal in enumerate(template.literals):
        if not text.startswith(literal, at):
            return last
        at += len(literal)
        if place < len(template.slots):
            last = template.slots[place]
            body = spans[last].of(slots[last].text)
            if not text.startswith(body, at):
                return last
            at += len(body)
    return None if at == len(text) else last


def _layout(
    template: _Template, slots: Sequence[ContentText], spans: Sequence[Span], opaque: set[Key]
) -> Layout:
    pieces: list[Piece] = []
    at = 0
    for literal, number in zip(template.literals, template.slots, strict=False):
        at += len(literal)
        slot, span = slots[number], spans[number]
        end = at + span.end - span.start
        pieces.append(Piece(slot.message, slot.block, span, Span(at, end)))
        at = end
    placed = set(template.slots)
    absent = {_key(slot) for number, slot in enumerate(slots) if number not in placed}
    return Layout(tuple(pieces), frozenset(opaque), frozenset(absent))


def _give_up(messages: Sequence[Message], slots: Sequence[ContentText], fault: int) -> set[Key]:
    """Texts to leave unmapped after a difference behind slot ``fault``; raises when a user's text differs."""
    blank = {_key(slot) for slot in slots if not slot.text.strip()}
    if blank:
        return blank
    if fault >= 0 and messages[slots[fault].message]["role"] in _UNEDITED:
        return {_key(slots[fault])}
    where = f"message {slots[fault].message}" if fault >= 0 else "the first message"
    raise RenderError(
        f"The chat template changes the text at or behind {where}, so its characters cannot be "
        "located. Give that text in the form in which the template leaves it, or choose another renderer."
    )
