"""The proof: the padded request is encoded again as a whole, and all must stand where the plan says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from phaseguard.align.layout import Key
from phaseguard.align.plan import PlannedPad
from phaseguard.align.request import Request
from phaseguard.text import Span, apply_edits, make_edit


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome.

    Attributes:
        holds: whether everything stands where the plan says.
        culprit: the first pad that did something else, when one can be named.
        moved: for each answer span, its characters in the padded request.
    """

    holds: bool
    culprit: PlannedPad | None
    moved: tuple[Span, ...]


def prove(base: Request, padded: Request, planned: Sequence[PlannedPad], keys: Sequence[Key]) -> Proof:
    """Compare the padded request with the one without pads.

    Checked are: the request's text is the old one with exactly the planned pads; between the pads every
    token id is the same and stands at its old index plus the tokens of the pads before it; every answer
    span, looked up anew, has the index the plan gives it.

    Args:
        base: the request without pads.
        padded: the request with pads, rendered and encoded as a whole.
        planned: the pads.
        keys: the answer spans, located in ``base``.
    """
    pads = sorted(planned, key=lambda pad: pad.place.request)
    text = base.rendered.text
    edits = [
        make_edit(text, pad.place.request.start, pad.place.request.end, pad.choice.text, pad.choice.kind)
        for pad in pads
    ]
    expected = apply_edits(text, edits)
    if padded.rendered.text != expected:
        return Proof(False, _first_different(expected, padded.rendered.text, pads), ())
    culprit = _first_wrong(base, padded, pads)
    if culprit is not None:
        return Proof(False, culprit, ())
    starts = [pad.place.request.end for pad in pads]
    chars = [0, *accumulate(len(e.replacement) - len(e.original) for e in edits)]
    tokens = [0, *accumulate(pad.choice.tokens for pad in pads)]
    moved: list[Span] = []
    holds = padded.tokens == base.tokens + tokens[-1]
    for key in keys:
        before = bisect_right(starts, key.request.start)
        span = Span(key.request.start + chars[before], key.request.end + chars[before])
        moved.append(span)
        first, _ = padded.token_range(span)
        holds = holds and padded.offset + first == key.first + tokens[before]
    return Proof(holds, None, tuple(moved))


def _first_different(expected: str, actual: str, pads: Sequence[PlannedPad]) -> PlannedPad | None:
    """The pad at or before the first character where the rendering is not what it should be."""
    at = next((i for i, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b), len(expected))
    found, shift = None, 0
    for pad in pads:
        if pad.place.request.start + shift > at:
            break
        found = pad
        shift += len(pad.choice.text) - (pad.place.request.end - pad.place.request.start)
    return found


def _first_wrong(base: Request, padded: Request, pads: Sequence[PlannedPad]) -> PlannedPad | None:
    """The first pad after which the tokens are not the old ones at their new index."""
    old, new = base.encoding, padded.encoding
    # a separator may change the token it is part of; any other pad leaves the old separator as it was
    heads = [p.place.request.start if p.choice.kind == "separator" else p.place.request.end for p in pads]
    head = [*np.searchsorted(old.ends, heads, side="right").tolist(), len(old)]
    tail = [0, *np.searchsorted(old.starts, [p.place.request.end for p in pads], side="left").tolist()]
    shift = [0, *accumulate(pad.choice.tokens for pad in pads)]
    for number, (start, stop, moved) in enumerate(zip(tail, head, shift, strict=True)):
        if not np.array_equal(old.ids[start:stop], new.ids[start + moved : stop + moved]):
            return pads[max(number - 1, 0)] if pads else None
    return None
