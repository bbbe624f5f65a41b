"""Whether an alignment outlives a late step that strips texts: a server, a splitter, a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from phaseguard.align import AlignedPrompt, PadReport
from phaseguard.align.draft import Draft
from phaseguard.align.keys import Wanted
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.repeat import Repeated
from phaseguard.align.setting import Setting
from phaseguard.align.solve import Solution, located
from phaseguard.align.summary import summarize
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.guard.turn import readable


@dataclass(frozen=True, slots=True)
class MovedSpan:
    """An answer span that a late step moves; ``phase_after`` is None where it is gone."""

    text: str
    message: int
    phase_before: int | None
    phase_after: int | None


@dataclass(frozen=True, slots=True)
class Survival:
    """What a late step does to an alignment.

    Attributes:
        survives: whether every answer span keeps its phase.
        lost: the pads that are cut off, as far as this call put them in.
        moved: the answer spans that stand on another phase.
        advice: what to do; empty when all survives.
    """

    survives: bool
    lost: tuple[PadReport, ...]
    moved: tuple[MovedSpan, ...]
    advice: str


def survival(aligned: AlignedPrompt, strip: Callable[[str], str], setting: Setting) -> Survival:
    """Strip every text of an aligned prompt, read the request again, and compare.

    Args:
        aligned: what was returned.
        strip: the late step.
        setting: reads the request.
    """
    prompt = readable(aligned.prompt)
    if prompt is None:  # it went out as it is, and holds nothing that could move
        return Survival(survives=True, lost=(), moved=(), advice="")
    texts = {field.key: strip(field.text) for field in prompt.fields}
    before = {field.key: field.text for field in prompt.fields}
    passages = list(dict.fromkeys(passage.text for passage in aligned.report.passages))
    lost = tuple(pad for pad in aligned.report.pads if _is_lost(pad, before, texts))
    moved = tuple(_moved(prompt, prompt.with_texts(texts), passages, setting))
    advice = ""
    if lost or moved:
        advice = "Blanks at the ends of a text do not outlive this step: align with pads='visible', "
        advice += "or strip before aligning."
    return Survival(not moved and not lost, lost, moved, advice)


def _is_lost(pad: PadReport, before: Mapping[FieldKey, str], after: Mapping[FieldKey, str]) -> bool:
    key = FieldKey(pad.message, -1 if pad.block is None else pad.block)
    start = before[key].find(after[key])
    inside = start <= pad.offset and pad.offset + len(pad.text) <= start + len(after[key])
    return start < 0 or not inside


def _moved(prompt: Prompt, stripped: Any, passages: list[str], setting: Setting) -> Iterable[MovedSpan]:
    if not passages or setting.evidence.period < 2:
        return
    old = _phases(prompt.given, passages, setting)
    new = _phases(stripped, passages, setting)
    for place, phase in old.items():
        if new.get(place) != phase:
            yield MovedSpan(place[1], place[0], phase, new.get(place))


def _phases(prompt: Any, passages: list[str], setting: Setting) -> dict[tuple[int, str, int], int | None]:
    """The phase of every answer span, by message, text and number of its kind."""
    wanted = Wanted.read(passages, None, None, None)
    try:
        draft = Draft.make(Prompt.read(prompt), replace(setting, level="off", repeat=False), wanted)
    except (PassageNotFoundError, InputError):
        return {}
    report = summarize(Repeated(draft, Solution.unpadded(draft, located(draft))), {})
    found: dict[tuple[int, str, int], int | None] = {}
    for passage in report.passages:
        for span in passage.spans:
            number = sum(key[:2] == (passage.message, span.text) for key in found)
            found[passage.message, span.text, number] = span.phase_before
    return found
