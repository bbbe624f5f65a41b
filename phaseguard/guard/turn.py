"""Aligning what a turn added, behind the earlier turns as they were sent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phaseguard.align import AlignedPrompt, PassageSpan
from phaseguard.align.draft import Draft
from phaseguard.align.finish import finish
from phaseguard.align.keys import Wanted
from phaseguard.align.passages import Given
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.repeat import solve_with_copies
from phaseguard.align.setting import Setting
from phaseguard.errors import InputError
from phaseguard.guard.marks import Marks
from phaseguard.guard.memory import Memory, Steps, Thread, with_edits
from phaseguard.guard.places import as_given, is_asked, places_of
from phaseguard.guard.telling import LOG
from phaseguard.text import Span

_NOT_OPTIONS = ("messages", "extra_body", "extra_headers", "extra_query", "timeout")


@dataclass(frozen=True, slots=True)
class Ask:
    """What the caller says of one call; ``request`` is the key that its marks were made with."""

    wanted: Wanted
    frozen: int
    request: Hashable | None

    @classmethod
    def read(
        cls,
        key_passages: Given | Sequence[Given] | None,
        query: str | None,
        frozen: int,
        request: Hashable | None,
    ) -> Ask:
        """Check the caller's arguments.

        Raises:
            InputError: when one cannot be used, whatever the prompt.
        """
        if not isinstance(frozen, int) or isinstance(frozen, bool) or frozen < 0:
            raise InputError(f"frozen={frozen!r}: give how many leading messages to leave alone, from 0.")
        return cls(Wanted.read(key_passages, query, None, None), frozen, request)


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt with what the endpoint reads beside its messages.

    Attributes:
        prompt: as given.
        options: the payload's other keys, those of ``extra_body`` in their place.
        start: the first message behind the last assistant message: what is new for certain.
    """

    prompt: Prompt
    options: Mapping[str, Any]
    start: int

    @classmethod
    def of(cls, prompt: Prompt) -> Turn:
        """Find what the turn added."""
        extra = prompt.options.get("extra_body")
        options = {**prompt.options, **(extra if isinstance(extra, Mapping) else {})}
        told = {key: value for key, value in options.items() if key not in _NOT_OPTIONS}
        said = [number for number, message in enumerate(prompt.messages) if message["role"] == "assistant"]
        return cls(prompt, told, said[-1] + 1 if said else 0)

    @property
    def model(self) -> Any:
        """The model's name, or None."""
        return self.options.get("model")


def readable(prompt: Any) -> Prompt | None:
    """A prompt that can be read, or None."""
    try:
        return Prompt.read(prompt)
    except InputError:
        return None


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a prompt on its way: its first ``count`` messages are settled by ``edits``."""

    turn: Turn
    setting: Setting
    count: int
    edits: Mapping[FieldKey, Steps]

    def aligned(self, wanted: Wanted) -> AlignedPrompt:
        """The whole prompt with the rest aligned."""
        given = self.turn.prompt
        prompt = with_edits(given, self.edits)
        if given.kind == "payload":
            prompt = {**self.turn.options, "messages": prompt["messages"]}
        draft = Draft.make(Prompt.read(prompt, frozen=self.count), self.setting, wanted)
        return finish(solve_with_copies(draft))

    def settled(self, made: AlignedPrompt, stop: int) -> _Part:
        """With the messages up to ``stop`` settled as they are in an aligned prompt."""
        new = {key: steps for key, steps in made.edits.items() if self.count <= key.message < stop}
        return replace(self, count=stop, edits={**self.edits, **new})


def align_turn(turn: Turn, ask: Ask, setting: Setting, marks: Marks, memory: Memory) -> AlignedPrompt:
    """Align a payload: earlier messages as they were sent, what is new by its key passages.

    Raises:
        InputError: when an argument of the caller's does not fit.
        PhaseGuardError: when the prompt cannot be aligned.
    """
    Prompt.read(turn.prompt.given, frozen=ask.frozen)
    thread = Thread(turn.prompt, turn.options, setting.profile.name)
    named = _Named.of(turn.prompt, ask.wanted.key_passages)
    recalled = memory.recall(thread, frozen=ask.frozen, stop=turn.start, holds=named.holds)
    part = _Part(turn, setting, max(recalled.count, ask.frozen), recalled.edits)
    places: tuple[PassageSpan, ...] = ()
    if ask.wanted.key_passages is None:
        places = _marked(turn, ask, part.count, marks)
    part, made = _solved(part, ask.wanted, places)
    edits = part.settled(made, len(turn.prompt.messages)).edits
    memory.keep(thread, recalled, edits, named.of_message)
    report = made.report
    if places:
        marked = tuple(replace(passage, why="marked") for passage in report.passages)
        report = replace(report, passages=marked)
    if recalled.edits:
        note = f"The first {recalled.count} messages are as they were sent before."
        report = replace(report, notes=(*report.notes, note))
    return AlignedPrompt(with_edits(turn.prompt, edits), report, edits)


def _solved(part: _Part, wanted: Wanted, places: Sequence[PassageSpan]) -> tuple[_Part, AlignedPrompt]:
    """What is not settled, by marks where there are any; what stands in front of them by its own rule."""
    if not places:
        return part, part.aligned(wanted)
    first = min(*(place.message for place in places), part.turn.start)
    marked = part
    if any(part.count <= field.key.message < first and field.editable for field in part.turn.prompt.fields):
        marked = part.settled(part.aligned(wanted), first)
    try:
        return marked, marked.aligned(replace(wanted, key_passages=tuple(places)))
    except InputError as fault:
        LOG.debug("The marks were not used: %s", fault)
        return part, part.aligned(wanted)


def _marked(turn: Turn, ask: Ask, settled: int, marks: Marks) -> tuple[PassageSpan, ...]:
    """Where marks stand in what is not settled: in what the turn added, else anywhere."""
    sources = as_given(turn.prompt)

    def stands(query: str) -> bool:
        asked = ask.wanted.query
        return (asked is not None and " ".join(asked.split()) == query) or is_asked(
            query, turn.prompt, sources
        )

    found: dict[PassageSpan, None] = {}
    open_sources = [source for source in sources if source.field.key.message >= settled]
    for passage in marks.of(ask.request, stands, use=True):
        places = [place for place in places_of(passage, open_sources) if place.end > place.start]
        added = [place for place in places if place.message >= turn.start]
        found.update(dict.fromkeys(added or places))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Named:
    """The key passages that the caller names, by message; what is named anew is aligned anew."""

    texts: Mapping[int, frozenset[str]]
    spans: frozenset[int]

    @classmethod
    def of(cls, prompt: Prompt, given: Sequence[Given] | None) -> _Named:
        texts: dict[int, set[str]] = {}
        spans: set[int] = set()
        sources = as_given(prompt) if given else ()
        for passage in given or ():
            if isinstance(passage, PassageSpan | Span):
                spans.add(passage.message if isinstance(passage, PassageSpan) else 0)
            elif isinstance(passage, str) and passage.strip():
                for place in places_of(passage, sources):
                    texts.setdefault(place.message, set()).add(passage)
        return cls({message: frozenset(names) for message, names in texts.items()}, frozenset(spans))

    def of_message(self, message: int) -> frozenset[str]:
        return self.texts.get(message, frozenset())

    def holds(self, message: int, named: frozenset[str]) -> bool:
        """Whether a message that was aligned for ``named`` is aligned for what is named now."""
        return message not in self.spans and self.of_message(message) <= named
