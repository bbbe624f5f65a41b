"""normalize(): the rules of a level, again and again until none has anything left to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from phaseguard.errors import InputError, did_you_mean
from phaseguard.normalize import full, rules
from phaseguard.normalize.compose import compose, without_overlaps
from phaseguard.normalize.zones import BlockMap
from phaseguard.text import Edit, apply_edits, invert_edits

Level = Literal["off", "safe", "full"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

_MOST_PASSES = 8


@dataclass(frozen=True, slots=True)
class Normalized:
    """A normalized text, the edits that made it, and the level.

    Each edit's ``reason`` is the name of the rule; offsets are characters of the text as it was given.
    """

    text: str
    edits: tuple[Edit, ...]
    level: Level
    _blocks: BlockMap | None = field(default=None, compare=False, repr=False)

    @property
    def blocks(self) -> BlockMap:
        """The map of ``text``: the one that the last look at it made, or a new one."""
        return self._blocks or BlockMap(self.text)

    def restore(self) -> str:
        r"""Return the text as it was given.

        >>> normalize("One.\n\n\n\nTwo. \n").restore()
        'One.\n\n\n\nTwo. \n'
        """
        return apply_edits(self.text, invert_edits(self.edits))


def normalize(text: str, level: Level = "safe") -> Normalized:
    r"""Remove decorative whitespace and bring lone rules to one length; nothing else ever changes.

    Args:
        text: any text: a prompt, a document, one message.
        level: ``off`` does nothing. ``safe`` tidies line ends, blank lines, zero-width noise and lone rules,
            in prose alone. ``full`` also tidies runs of blanks in sentences, a common indent, and rule-only
            comment lines in code; do not use it for agents that edit files by exact match.

    Returns:
        The text, with edits that can be undone. Normalizing it again changes nothing.

    Raises:
        InputError: when the text is not a string or the level is unknown.

    >>> out = normalize("First part. \n\n\n\nSecond part.\n")
    >>> out.text
    'First part.\n\nSecond part.\n'
    >>> [(edit.start, edit.reason) for edit in out.edits]
    [(11, 'trailing-blanks'), (12, 'surplus-blank-lines')]
    """
    if not isinstance(text, str):
        raise InputError(
            f"normalize() takes a string, not {type(text).__name__}: decode or serialize it first."
        )
    if level not in LEVELS:
        raise InputError(f"There is no level {level!r}. {did_you_mean(str(level), LEVELS)}")
    edits: tuple[Edit, ...] = ()
    now, blocks = text, None
    for _ in range(_MOST_PASSES if level != "off" else 0):
        blocks = _map(now, level)
        found = _one_pass(blocks, level) if blocks else []
        if not found:
            break
        edits = compose(text, edits, found)
        now, blocks = apply_edits(now, found), None
    return Normalized(now, edits, level, blocks)


def _map(text: str, level: Level) -> BlockMap | None:
    """The map of a text, or None when no rule of the level can find anything in it."""
    if rules.may_apply(text) or (level == "full" and full.may_apply(text)):
        return BlockMap(text)
    return None


def _one_pass(blocks: BlockMap, level: Level) -> list[Edit]:
    """What the level's rules find."""
    chosen = rules.SAFE_RULES + (full.FULL_RULES if level == "full" else ())
    return without_overlaps(edit for rule in chosen for edit in rule(blocks))
