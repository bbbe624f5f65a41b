"""What options of the command line may be."""

from __future__ import annotations

from enum import StrEnum

from phaseguard.errors import InputError


class Level(StrEnum):
    """Levels of normalizing."""

    OFF = "off"
    SAFE = "safe"
    FULL = "full"


class Pads(StrEnum):
    """Kinds of pads."""

    AUTO = "auto"
    VISIBLE = "visible"
    INVISIBLE = "invisible"


class ReportForm(StrEnum):
    """Forms of a report."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


def parse_strong(given: str | None) -> frozenset[int] | None:
    """Phases from a list such as ``2,3``.

    Raises:
        InputError: when it is no list of whole numbers.

    >>> sorted(parse_strong("2, 3"))
    [2, 3]
    """
    if given is None:
        return None
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise InputError(f"--strong {given!r}: give phases separated by commas, such as 2,3.")
    return frozenset(map(int, parts))
