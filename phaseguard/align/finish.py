"""From a solution to the aligned prompt: pads applied, the report written, every step kept for undoing."""

from __future__ import annotations

from phaseguard.align.plan import pad_edits
from phaseguard.align.repeat import Repeated
from phaseguard.align.report import AlignedPrompt
from phaseguard.align.summary import summarize
from phaseguard.text import apply_edits


def finish(done: Repeated) -> AlignedPrompt:
    """The prompt with the pads of a solution, and its report.

    Args:
        done: a draft and what was found for it.
    """
    draft = done.draft
    pads = pad_edits(done.solution.planned, draft.texts)
    texts = dict(draft.texts)
    texts.update({key: apply_edits(texts[key], edits) for key, edits in pads.items()})
    steps = {key: (draft.edits.get(key, ()), pads.get(key, ())) for key in sorted({*draft.edits, *pads})}
    return AlignedPrompt(draft.prompt.with_texts(texts), summarize(done, steps), steps)
