"""Copies of key passages in front of the question: where they go, and which stand there already."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from phaseguard.align.passages import Source
from phaseguard.align.prompt import Prompt
from phaseguard.normalize import Normalized, normalize
from phaseguard.normalize.compose import compose
from phaseguard.text import Edit, Span, apply_edits

REPEAT = "repeat"  # the reason of the edits that put copies in
_PARAGRAPH = "\n\n"
_PAD_LINE = re.compile(r"[.…·](?: [.…·])*")


@dataclass(frozen=True, slots=True)
class Home:
    """Where copies stand: in front of character ``at`` of ``source``, the start of its last paragraph."""

    source: Source
    at: int


def find_home(prompt: Prompt, sources: Sequence[Source]) -> Home | None:
    """The last paragraph of the last user message; None when that message takes no edits.

    It is the text behind the last blank line that means nothing, or behind a line of visible pads: none in
    code or beside a table counts. A text without one is a question as a whole.
    """
    users = [number for number, message in enumerate(prompt.messages) if message["role"] == "user"]
    here = [source for source in sources if users and source.field.key.message == users[-1]]
    texts = [source for source in here if source.text.strip()]
    if not texts or not texts[-1].field.editable:
        return None
    source = texts[-1]
    return Home(source, _last_paragraph(source))


def _last_paragraph(source: Source) -> int:
    text, blocks = source.text, source.blocks
    for number in range(blocks.block_at(len(text.rstrip())) - 1, -1, -1):
        gap = blocks.gap(number)
        line = text[text.rfind("\n", 0, gap.start) + 1 : gap.start]
        if blocks.is_open(number) or _PAD_LINE.fullmatch(line):
            return gap.end
    return 0


def standing_copies(home: Home, sources: Sequence[Source], known: Collection[str] | None) -> tuple[Span, ...]:
    """Copies that stand in front of the question already, in characters of the home's text.

    Args:
        home: where they would be.
        sources: every text: what stands nowhere else is no copy.
        known: texts of key passages; None takes any single line that occurs before.
    """
    text, at = home.source.text, home.at
    found: list[Span] = []
    while True:
        stop = len(text[:at].rstrip())
        line = Span(text.rfind("\n", 0, stop) + 1, stop)
        if _PAD_LINE.fullmatch(line.of(text)):
            at = line.start
            continue
        copies = [line] if known is None else _ending(text, stop, known)
        copy = next((span for span in copies if _elsewhere(span, home.source, sources)), None)
        if copy is None:
            return tuple(reversed(found))
        found.append(copy)
        at = copy.start


def _ending(text: str, stop: int, known: Collection[str]) -> list[Span]:
    """The passages that are whole paragraphs ending here, the longest first."""
    spans = [Span(stop - len(passage), stop) for passage in known if text.endswith(passage, 0, stop)]
    whole = [span for span in spans if span.start == 0 or text[span.start - 1] == "\n"]
    return sorted(whole, key=lambda span: span.start)


def _elsewhere(span: Span, home: Source, sources: Sequence[Source]) -> bool:
    """Whether the same characters stand in front of a copy in its text, or in an earlier one."""
    copy = span.of(home.text)
    if not copy:
        return False
    earlier = [source.text for source in sources if source.field.key < home.field.key]
    return copy in home.text[: span.start] or any(copy in text for text in earlier)


@dataclass(frozen=True, slots=True)
class Insert:
    """A copy that is to stand in front of character ``at`` of its home's text."""

    at: int
    text: str


def insert_copies(home: Home, inserts: Sequence[Insert]) -> Source:
    """The home's text with copies put in, each as a paragraph of its own."""
    middle = home.source.normalized
    places: dict[int, str] = {}
    for insert in sorted(inserts, key=lambda insert: insert.at):
        places[insert.at] = places.get(insert.at, "") + insert.text + _PARAGRAPH
    step = [Edit(at, at, new, REPEAT, "") for at, new in places.items()]
    edits = compose(home.source.field.text, middle.edits, step)
    return Source(home.source.field, Normalized(apply_edits(middle.text, step), edits, middle.level))


def would_stay(
    prompt: Prompt, sources: Sequence[Source], home: Home, inserts: Sequence[Insert], known: Collection[str]
) -> bool:
    """Whether copies that are put in are found there again when the changed prompt is aligned.

    Args:
        prompt: the prompt.
        sources: its texts without the new copies.
        home: where they go.
        inserts: the copies.
        known: texts of the copies that stand there already.
    """
    changed = insert_copies(home, inserts)
    if normalize(changed.text, changed.normalized.level).text != changed.text:
        return False
    after = tuple(changed if source.field.key == changed.field.key else source for source in sources)
    new = find_home(prompt, after)
    if new is None or new.source is not changed:
        return False
    texts = {insert.text for insert in inserts}
    standing = standing_copies(new, after, [*texts, *known])
    return texts <= {span.of(changed.text) for span in standing}
