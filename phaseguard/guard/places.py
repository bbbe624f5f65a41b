"""Where marked passages and queries stand in a prompt, in characters of it as given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from phaseguard.align import PassageSpan
from phaseguard.align.passages import Source, occurrences
from phaseguard.align.prompt import Prompt
from phaseguard.normalize import Normalized

_LEAST_LINE = 8  # characters; a shorter line stands in a text by chance


def as_given(prompt: Prompt, *, first: int = 0) -> tuple[Source, ...]:
    """The texts of a prompt from one message on, untouched."""
    return tuple(
        Source(field, Normalized(field.text, (), "off", None))
        for field in prompt.fields
        if field.key.message >= first
    )


def places_of(passage: str, sources: Sequence[Source]) -> tuple[PassageSpan, ...]:
    """Every place of a marked passage, else of those of its lines that stand anywhere.

    Packing joins passages anew, changes the blanks between their words, and cuts them.
    """
    found = tuple(_places(passage.strip(), sources))
    if found:
        return found
    lines = [line.strip() for line in passage.splitlines()]
    return tuple(
        place
        for line in lines
        if len(line) >= _LEAST_LINE and line != passage.strip()
        for place in _places(line, sources)
    )


def _places(wanted: str, sources: Sequence[Source]) -> Iterator[PassageSpan]:
    for source in sources:
        key = source.field.key
        for span in occurrences(source, wanted):
            yield PassageSpan(span.start, span.end, key.message, key.block_or_none)


def is_asked(query: str, prompt: Prompt, sources: Sequence[Source]) -> bool:
    """Whether a query stands in a text or in the arguments of a tool call."""
    if any(occurrences(source, query) for source in sources):
        return True
    return any(query in arguments for arguments in _arguments(prompt))


def _arguments(prompt: Prompt) -> Iterator[str]:
    for message in prompt.messages:
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(arguments, str):
                yield from _strings(arguments)


def _strings(arguments: str) -> Iterator[str]:
    """The strings in a tool call's arguments, with one blank between words."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return
    values = given.values() if isinstance(given, dict) else ()
    yield from (" ".join(value.split()) for value in values if isinstance(value, str))
