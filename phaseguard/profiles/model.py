"""What is known of a model's phases, and how it is known: one frozen value, one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)

from phaseguard.errors import ProfileError
from phaseguard.profiles.faults import explain_fault

SCHEMA = 1
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[int, Field(ge=1)]
Kind = Literal["reported", "on-device", "weights", "measured", "stated"]
_THREE_AND_MORE = 3
# What is measured holds for these alone: change one, and the numbers are no longer about the profile.
_IDENTITY = ("model", "provider", "reasoning", "tokenizer", "chat", "prefix_offset", "period")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ShapeStrength(_Frozen):
    """Retrieval probability by phase for answers of one length.

    Attributes:
        mean: one probability a phase; phase = token index of the answer's first token mod ``period``.
        low: lower ends of the intervals; ``high``: upper ends.
        n: trials behind each list.
    """

    mean: tuple[Probability, ...]
    low: tuple[Probability, ...]
    high: tuple[Probability, ...]
    n: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not len(self.mean) == len(self.low) == len(self.high):
            raise ValueError("mean, low and high must have the same length, one number a phase")
        for phase, (low, mean, high) in enumerate(zip(self.low, self.mean, self.high, strict=True)):
            if not low <= mean <= high:
                raise ValueError(f"phase {phase} must have low <= mean <= high, not {low}, {mean}, {high}")
        return self


class Provenance(_Frozen):
    """How a profile is known.

    Attributes:
        kind: ``reported`` (a paper or a model's description says so), ``on-device`` (a prior from the lab),
            ``weights`` (from the model's weights), ``measured`` (on an endpoint, at a date), or
            ``stated`` (the user says so).
        source: where: an arXiv id, an endpoint, a file.
        date: ISO date (YYYY-MM-DD), or None.
        command: the command that repeats it, or None.
    """

    kind: Kind
    source: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    command: str | None = None


class Reported(_Frozen):
    """What others report, without numbers by phase.

    A gap says that phases differ, not which are strong: it cannot be aligned to. ``strong`` can.

    Attributes:
        source: who reports it.
        gap_points: largest accuracy gap across phases in percentage points, or None.
        gap_setting: the task it was found on.
        strong: phases that are reported strong, or None when only a gap is known.
        of: what ``strong`` counts: the first token of the answer, or the last of the key before it.
        note: what else a reader should know.
    """

    source: str
    gap_points: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    gap_setting: str | None = None
    strong: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = None
    of: Literal["answer", "key"] = "answer"
    note: str | None = None


class PhaseProfile(_Frozen):
    """Period, strengths, tokenizer and chat encoding of one model at one provider in one reasoning mode.

    Attributes:
        schema_version: 1; ``schema`` in JSON, and as a keyword too.
        name: the name it is loaded by.
        model: the model's id, or None when it stands for a family.
        provider: the provider or engine it was measured at, or None for any.
        reasoning: off, low, high, max, or what the model calls it.
        tokenizer: a name that ``load_tokenizer`` knows; ``chat``: one that ``load_renderer`` knows.
        prefix_offset: tokens in front of the rendered text that the renderer does not write: 1 for a base
            model whose engine puts a BOS before a plain prompt.
        strides: tokens a compressed entry, one number a kind of layer; the first is the one that matters.
        overlap: whether an entry of the first kind also pools the chunk before its own; None if unknown.
        period: smallest shift in tokens that leaves accuracy unchanged; 1 when the model has no phases.
        window: last tokens of the context, read uncompressed, where no phase matters; None if unknown.
        strengths: by answer length in tokens ("1", "2", "3", the last for 3 and more), or None.
        provenance: how all this is known.
        reported: what others report, or None.

    Raises:
        ProfileError: for fields that do not fit; names the field.

    >>> me = {"kind": "stated", "source": "me"}
    >>> p = PhaseProfile(name="mine", tokenizer="deepseek-v4", period=2, provenance=me)
    >>> p.has_phases, p.strength(1), p.strong
    (True, None, None)
    >>> p.with_strong([1]).strong
    frozenset({1})
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    model: str | None = None
    provider: str | None = None
    reasoning: str = "off"
    tokenizer: str
    chat: str = "plain"
    prefix_offset: Annotated[int, Field(ge=0)] = 0
    strides: tuple[Positive, ...] = ()
    overlap: bool | None = None
    period: Positive
    window: Annotated[int, Field(ge=0)] | None = None
    strengths: Mapping[Literal["1", "2", "3"], ShapeStrength] | None = None
    provenance: Provenance
    reported: Reported | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _own_error(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        version = (
            data.get("schema", data.get("schema_version", SCHEMA)) if isinstance(data, Mapping) else SCHEMA
        )
        if version != SCHEMA:
            raise ProfileError(
                f"The profile is written in schema {version!r}; this version reads schema {SCHEMA}. Upgrade "
                "phaseguard, or write the profile again with the version that is installed."
            )
        try:
            made = handler(data)
        except ValidationError as fault:
            raise ProfileError(explain_fault(fault, tuple(cls.model_fields))) from None
        if problem := made._problem():
            raise ProfileError(f"The profile does not fit: {problem}. Correct it and load it again.")
        return made

    @field_validator("strengths")
    @classmethod
    def _not_empty(cls, value: Mapping[str, ShapeStrength] | None) -> Mapping[str, ShapeStrength] | None:
        if value is not None and not value:
            raise ValueError("must have an answer length, '1', '2' or '3', or be null")
        return value

    def _problem(self) -> str | None:
        """What is inconsistent between fields that are each valid."""
        for shape, strength in (self.strengths or {}).items():
            if len(strength.mean) != self.period:
                return (
                    f"strengths of shape '{shape}' have {len(strength.mean)} phases, not period={self.period}"
                )
        beyond = [p for p in (self.reported and self.reported.strong) or () if p >= self.period]
        if beyond:
            return f"strong phases {beyond} are not below the period {self.period}"
        if self.provenance.kind == "measured" and self.provenance.date is None:
            return "a measured profile needs the date of the measurement, provenance.date"
        if self.provenance.kind == "measured" and self.strengths is None and self.period > 1:
            return "a measured profile needs strengths, or period 1 when no effect was found"
        return None

    def __hash__(self) -> int:
        return hash((self.name, self.model, self.provider, self.reasoning, self.period, self.provenance))

    @property
    def has_phases(self) -> bool:
        """Whether phase matters for this model at all."""
        return self.period > 1

    @property
    def strong(self) -> frozenset[int] | None:
        """Answer phases reported or stated strong; None when only numbers, a gap or nothing is known."""
        if self.reported is None or self.reported.strong is None or self.reported.of != "answer":
            return None
        return frozenset(self.reported.strong)

    def strength(self, tokens: int) -> ShapeStrength | None:
        """Strengths for an answer of so many tokens: the nearest known length, the shorter of two."""
        if not self.strengths:
            return None
        want = min(tokens, _THREE_AND_MORE)
        return self.strengths[min(self.strengths, key=lambda shape: (abs(int(shape) - want), shape))]

    def with_(self, **changes: Any) -> PhaseProfile:
        """A validated copy with changed fields.

        Strengths hold for the model, provider, reasoning mode and encoding that they were found with: when
        one of these changes and no new strengths are given, they are dropped, and the provenance says so.

        >>> me = {"kind": "stated", "source": "me"}
        >>> load = PhaseProfile(name="a", tokenizer="t", period=4, provenance=me)
        >>> load.with_(reasoning="high").reasoning
        'high'
        """
        data = self.model_dump(by_alias=True)
        if "schema_version" in changes:
            data.pop("schema")
        moved = [key for key in _IDENTITY if key in changes and changes[key] != getattr(self, key)]
        if moved and self.strengths is not None and "strengths" not in changes:
            data["strengths"] = None
            source = f"{self.name} with another {' and '.join(moved)}; its strengths do not carry over"
            data["provenance"] = {"kind": "stated", "source": source}
        return PhaseProfile(**{**data, **changes})

    def with_strong(self, phases: Any, source: str = "stated by hand") -> PhaseProfile:
        """A copy without strengths, in which these answer phases are strong because the user says so.

        Raises:
            ProfileError: for phases that are no integers below the period.
        """
        return self.with_(
            strengths=None,
            reported={"source": source, "strong": sorted(set(phases)), "of": "answer"},
            provenance={"kind": "stated", "source": source},
        )

    def to_json(self) -> str:
        """The profile as its JSON file: two blanks indent, a newline at the end."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"
