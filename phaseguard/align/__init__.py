"""Aligning: pads that put answer spans on strong phases, solved exactly and proven."""

from phaseguard.align.api import Inspection, align_prompt, inspect_prompt
from phaseguard.align.passages import PassageSpan
from phaseguard.align.report import (
    AlignedPrompt,
    PadReport,
    PassageReport,
    Provenance,
    Report,
    SpanReport,
)

__all__ = [
    "AlignedPrompt",
    "Inspection",
    "PadReport",
    "PassageReport",
    "PassageSpan",
    "Provenance",
    "Report",
    "SpanReport",
    "align_prompt",
    "inspect_prompt",
]
