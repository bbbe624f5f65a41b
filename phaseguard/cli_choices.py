"""What options of the command line may be."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from phaseguard.errors import InputError

if TYPE_CHECKING:
    from phaseguard.profiles import PhaseProfile

PromptFile = Annotated[str, typer.Argument(metavar="FILE", help="The prompt; - or nothing reads stdin.")]
Key = Annotated[list[str] | None, typer.Option("--key", "-k", help="A key passage; may be repeated.")]
Query = Annotated[str | None, typer.Option(help="Find key passages by this question.")]
Answer = Annotated[list[str] | None, typer.Option(help="The answer's own characters; may be repeated.")]
Profile = Annotated[str, typer.Option("--profile", "-p", help="A profile's name, or the path of its JSON.")]
Messages = Annotated[bool, typer.Option("--messages", "-m", help="FILE is JSON: messages, or a payload.")]
Strong = Annotated[str | None, typer.Option(help="Phases to treat as strong, such as 2,3.", metavar="LIST")]
Occurrence = Annotated[int | None, typer.Option(help="Only this place of each key, from 0; -1 the last.")]
Reasoning = Annotated[str | None, typer.Option(help="Reasoning mode, such as off, low, high, max.")]
Output = Annotated[str | None, typer.Option("--output", "-o", help="Write here instead of stdout.")]
Frozen = Annotated[int, typer.Option(help="Leading messages to leave alone.")]
MaxAddedTokens = Annotated[int | None, typer.Option(help="Most tokens that pads may add.")]
Inside = Annotated[bool, typer.Option("--inside", help="Pads may stand inside key passages.")]
Repeat = Annotated[
    bool, typer.Option("--repeat", help="Repeat key passages in front of the question, in the raw window.")
]
Isolate = Annotated[
    bool | None,
    typer.Option(
        "--isolate/--no-isolate",
        help="Pads keep other text out of the chunks of answers; by default where no strong phase is known.",
        show_default=False,
    ),
]


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


FirstLevel = Annotated[Level, typer.Option(help="What normalizing may do first.")]
PadKind = Annotated[Pads, typer.Option(help="Which pads may be put in.")]
Report = Annotated[ReportForm, typer.Option(help="Form of the report on stderr.")]


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


def chosen_profile(name: str, reasoning: str | None) -> PhaseProfile:
    """The profile of that name or file, for that reasoning mode when one is named.

    Raises:
        ProfileError: when there is none, or it cannot be read.

    >>> chosen_profile("deepseek-v4-flash", "high").reasoning
    'high'
    """
    from phaseguard.profiles import load_profile  # noqa: PLC0415

    profile = load_profile(name)
    return profile if reasoning is None else profile.with_(reasoning=reasoning)
