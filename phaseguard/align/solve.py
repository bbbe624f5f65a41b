"""Solving a draft: measure what can be done, plan, apply, encode again, prove, and repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phaseguard.align.draft import Draft
from phaseguard.align.layout import Key, Stretch
from phaseguard.align.plan import (
    SITES_A_GAP,
    Banned,
    MessagePlan,
    PlannedPad,
    locate,
    measure_messages,
    pad_edits,
    plan_pads,
)
from phaseguard.align.prove import Proof, prove
from phaseguard.align.request import Request
from phaseguard.chat import unstable_messages
from phaseguard.errors import RenderError
from phaseguard.text import Span, apply_edits

_REPAIRS = 12  # rounds of planning without a pad that did something else than measured


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found.

    Attributes:
        planned: the pads; none when the proof failed.
        padded: the request with them; None when the model has no phase and nothing was encoded.
        keys: the answer spans as located in the request without pads.
        moved: their characters in ``padded``.
        verified: whether the proof holds.
        culprit: the pad on which it failed, when it failed on one.
    """

    planned: tuple[PlannedPad, ...]
    padded: Request | None
    keys: tuple[Key, ...]
    moved: tuple[Span, ...]
    verified: bool
    culprit: PlannedPad | None = None

    @classmethod
    def unpadded(
        cls, draft: Draft, keys: Sequence[Key], *, verified: bool = True, culprit: PlannedPad | None = None
    ) -> Solution:
        """The solution that leaves the normalized prompt as it is."""
        moved = tuple(key.request for key in keys)
        return cls((), draft.base, tuple(keys), moved, verified, culprit)


def located(draft: Draft) -> tuple[Key, ...]:
    """The answer spans in the request without pads, in its order."""
    return tuple(key for stretch in stretches_of(draft) for key in stretch.keys)


def stretches_of(draft: Draft) -> tuple[Stretch, ...]:
    """Every text of the request without pads, with what stands in it."""
    return locate(draft.base, draft.sources, draft.passages, draft.answers)


def solve_draft(draft: Draft) -> Solution:
    """Find pads that put the answer spans on strong phases, and prove that they do."""
    if draft.setting.evidence.period < 2:
        return Solution((), None, (), (), verified=True)
    keys = located(draft)
    if not keys or not (draft.setting.evidence.usable or draft.setting.grid):
        return Solution.unpadded(draft, keys)
    return _planned(draft, keys)


def _planned(draft: Draft, keys: tuple[Key, ...]) -> Solution:
    """Plan and prove; when a pad does something else than measured, plan again without it."""
    plans, unstable = _measured(draft)
    setting = draft.setting
    banned: set[Banned] = set()
    while True:
        planned = tuple(
            pad.placed_in(draft.base) if pad.place.key.message in unstable else pad
            for pad in plan_pads(
                plans, setting.evidence, budget=setting.budget, banned=banned, grid=setting.grid
            )
        )
        if not planned:
            return Solution.unpadded(draft, keys)
        padded, proof = proven(draft, planned, keys)
        if proof.holds:
            return Solution(planned, padded, keys, proof.moved, verified=True)
        if proof.culprit is None or len(banned) >= _REPAIRS:
            return Solution.unpadded(draft, keys, verified=False, culprit=proof.culprit)
        banned.add(proof.culprit.ban)
        # what was offered may not be enough without the culprit; what other messages chose stays
        message = proof.culprit.place.key.message
        plans[message] = _measured(draft, least=SITES_A_GAP)[0][message]


def proven(draft: Draft, planned: Sequence[PlannedPad], keys: Sequence[Key]) -> tuple[Request, Proof]:
    """The request with these pads, encoded again as a whole, and whether all stands where planned."""
    texts = dict(draft.texts)
    for key, edits in pad_edits(planned, draft.texts).items():
        texts[key] = apply_edits(texts[key], edits)
    padded = draft.encode(texts)
    return padded, prove(draft.base, padded, planned, keys)


def _measured(draft: Draft, *, least: int = 1) -> tuple[dict[int, MessagePlan], frozenset[int]]:
    """What can be done in each message, and which messages were looked at in a shorter request.

    A message is solved from itself and what precedes it, so that its text stays the same when the
    conversation goes on; where later messages change what precedes it, the request up to it counts.
    """
    plans = _look(draft, draft.base, least)
    messages = draft.messages(draft.texts)
    unstable = unstable_messages(draft.setting.renderer, messages, draft.prompt.options, tuple(plans))
    left, together = unstable, True
    while left:
        stop, request = _up_to(draft, left[-1])
        here = _look(draft, request, least)
        moved = left[:-1]
        if moved and together:  # most often what holds for the last one holds for those before it
            options = draft.prompt.options
            moved = unstable_messages(draft.setting.renderer, messages[:stop], options, moved)
        plans.update({message: here[message] for message in set(left) - set(moved) if message in here})
        together = len(moved) + 1 < len(left)
        left = moved
    return plans, frozenset(unstable)


def _look(draft: Draft, request: Request, least: int) -> dict[int, MessagePlan]:
    setting = draft.setting
    return measure_messages(
        request,
        locate(request, draft.sources, draft.passages, draft.answers),
        setting.alphabets,
        setting.tokenizer,
        period=setting.evidence.period,
        inside=setting.inside,
        budgeted=setting.budget is not None,
        grid=setting.grid,
        least=least,
    )


def _up_to(draft: Draft, message: int) -> tuple[int, Request]:
    """The request that ends with a message, or the shortest longer one that can be rendered, and its end."""
    for stop in range(message + 1, len(draft.prompt.messages)):
        try:
            return stop, draft.encode(draft.texts, stop=stop)
        except RenderError:
            continue
    return len(draft.prompt.messages), draft.base
