"""What an alignment returns: the prompt, how to undo it, and where every answer stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.text import Edit, apply_edits, invert_edits


@dataclass(frozen=True, slots=True)
class SpanReport:
    """One answer span. An index is an absolute token index in the request, a phase that index mod the period.

    Attributes:
        text: the span's characters.
        kind: why it was taken: number, identifier, path, quoted, name, rare-word, passage, or answer.
        weight: its weight in the objective.
        tokens: number of tokens it takes in the request.
        index_before, index_after: token index of its first token, in the request as it was given
            and in the one returned. None when it cannot be known (behind an image).
        phase_before, phase_after: the same mod the period; None without a period.
        strength_before, strength_after: probability that it is retrieved; None without strengths.
        strong_before, strong_after: whether the phase counts as strong; None without any evidence.
        in_window: whether the model reads it from its raw window, where phase does not matter.
        strangers_before, strangers_after: tokens that are neither blank nor of a pad nor of its record, and
            share its chunks; in the request as given and in the one returned. None when it was not isolated.
    """

    text: str
    kind: str
    weight: float
    tokens: int
    index_before: int | None
    index_after: int | None
    phase_before: int | None
    phase_after: int | None
    strength_before: float | None = None
    strength_after: float | None = None
    strong_before: bool | None = None
    strong_after: bool | None = None
    in_window: bool = False
    strangers_before: int | None = None
    strangers_after: int | None = None


@dataclass(frozen=True, slots=True)
class PassageReport:
    """One place where a key passage stands.

    Attributes:
        text: the passage as it stands in the returned prompt.
        message: index of its message (0 for a string prompt); ``block``: of its content block, or None.
        why: how it was chosen: given by the caller, or found from the query by these shared words.
        spans: its answer spans, in order.
    """

    text: str
    message: int
    block: int | None
    why: str
    spans: tuple[SpanReport, ...]


@dataclass(frozen=True, slots=True)
class PadReport:
    """One pad that was put in.

    Attributes:
        message, block: where; ``offset``: character offset of ``text`` in the returned content.
        text: what stands there now; ``original``: what stood there before.
        tokens: tokens it adds to the request.
        kind: ``invisible``, ``visible``, ``custom``, or ``separator`` (another spelling of a blank line).
        line: line number of the place in the returned content, from 1.
    """

    message: int
    block: int | None
    offset: int
    text: str
    original: str
    tokens: int
    kind: str
    line: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """On what evidence phases were called strong: never more than what is known.

    Attributes:
        kind: ``measured``, ``on-device``, ``weights``, ``reported``, ``stated`` (by the caller) or ``none``.
        source: where it comes from.
        detail: one sentence for the reader.
    """

    kind: str
    source: str
    detail: str


@dataclass(frozen=True, slots=True)
class Isolation:
    """That answers were isolated, and why that should help: never claimed as measured on this model.

    Attributes:
        stride: tokens a chunk; ``overlap``: whether an entry was taken to pool the chunk before its own too.
        kind: ``on-device``: a finding on small models, and a prior for this one.
        source: where it comes from; ``detail``: one sentence for the reader.
        strangers_before, strangers_after: sums over the answer spans.
    """

    stride: int
    overlap: bool
    kind: str
    source: str
    detail: str
    strangers_before: int
    strangers_after: int


@dataclass(frozen=True, slots=True)
class Repetition:
    """A key passage that was to be repeated inside the raw window, in front of the question.

    Attributes:
        text: the passage, which the copy repeats to the letter as a paragraph of its own.
        outcome: ``repeated``; ``in-window``: it stands there by itself, or a copy does already;
            ``does-not-fit``: it would reach out of the window; ``no-place``: the last user message is
            frozen, or normalizing would change the copy.
        message: index of the message that the copy stands in; ``block``: its content block, or None.
    """

    text: str
    outcome: str
    message: int | None
    block: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """Where each answer stands, and the proof.

    Attributes:
        verified: whether the returned request was encoded again and every answer span stands where
            the plan says, and no token outside the pads changed. False means that no pads were put in.
        profile: name of the profile; ``period``: its period; ``chat``, ``tokenizer``: what read it.
        tokens_before: tokens of the request as given; ``tokens_normalized``: after normalizing;
            ``tokens_after``: of the returned one. None for a model without phases, where nothing is encoded.
        tokens_added: tokens that the pads add, ``tokens_after - tokens_normalized``.
        pads: the pads; ``normalize_edits``: how many edits normalizing made.
        provenance: on what evidence phases were called strong.
        repeated: key passages that were to be repeated; empty when that was not asked for.
        tokens_repeated: tokens that the copies add; neither normalized tokens nor pads hold them.
        isolation: how answers were isolated and on what evidence; None when they were not.
        passages: every place of every key passage.
        notes: what the reader should know; ``warnings``: what went wrong.
    """

    verified: bool
    profile: str
    period: int
    chat: str
    tokenizer: str
    tokens_before: int | None
    tokens_normalized: int | None
    tokens_after: int | None
    tokens_added: int
    pads: tuple[PadReport, ...]
    normalize_edits: int
    provenance: Provenance
    passages: tuple[PassageReport, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    isolation: Isolation | None = None
    repeated: tuple[Repetition, ...] = ()
    tokens_repeated: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dicts and lists, ready for ``json.dumps``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AlignedPrompt:
    """The aligned prompt and all that is known about it.

    Attributes:
        prompt: of the same type as the one given: a string, a list of messages, or a payload.
        report: where each answer stands, and the proof.
        edits: for every text that changed, the edits in two steps (normalizing and copies of passages,
            pads), keyed by message and block.
    """

    prompt: Any
    report: Report
    edits: Mapping[FieldKey, tuple[tuple[Edit, ...], ...]] = field(default_factory=dict)

    def restore(self) -> Any:
        r"""The prompt as it was given, rebuilt from the returned one by undoing every edit.

        >>> from phaseguard import align_prompt
        >>> out = align_prompt("Is it 5?   \n", key_passages=["5"], profile="deepseek-v4.1-flash")
        >>> out.restore()
        'Is it 5?   \n'
        """
        if not self.edits:
            return self.prompt
        prompt = Prompt.read(self.prompt)
        texts = {f.key: f.text for f in prompt.fields}
        for key, steps in self.edits.items():
            for step in reversed(steps):
                texts[key] = apply_edits(texts[key], invert_edits(step))
        return prompt.with_texts(texts)
