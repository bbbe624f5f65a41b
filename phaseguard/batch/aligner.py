"""``align_batch``: columns in, columns out, for every framework that maps a function over batches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from phaseguard.align import Report, align_prompt
from phaseguard.align.keys import Wanted
from phaseguard.align.setting import Setting
from phaseguard.batch.columns import count_rows, passed_on, read_column
from phaseguard.errors import InputError, PhaseGuardError, did_you_mean
from phaseguard.normalize import Level, normalize
from phaseguard.profiles import PhaseProfile, load_profile
from phaseguard.tokens import TokenizerLike, load_tokenizer

PREFIX = "phaseguard_"
DEFAULT_REPORTS = ("verified", "tokens_added", "warnings")
# What a row without a report tells: of the type it has in other rows, or columns of Arrow would change type.
_NOTHING: Mapping[str, Any] = {"verified": False, "tokens_added": 0, "warnings": "", "report": ""}
_READ = {
    "prompt": "prompt_column",
    "key_passages": "key_column",
    "query": "query_column",
    "answer": "answer_column",
}
_OPTIONAL = ("key_column", "query_column", "answer_column")


@dataclass(frozen=True, kw_only=True)
class BatchAligner:
    r"""Aligns the prompts of a batch: a picklable function of columns.

    It goes to ``map(batched=True)`` of Hugging Face datasets and to ``map_batches`` of Ray Data as it is. The
    profile is read when it is made, so that every process aligns to the same one; the tokenizer is loaded at
    the first batch of a process. It pickles to the same bytes in every process, so that a framework's cache
    recognizes it.

    A call takes a mapping of columns (lists, NumPy or pyarrow arrays) and returns a dict: the columns as
    given (object arrays as lists), then the output, the error and the report columns. Rows keep their order.
    A row that cannot be aligned stops nothing: its error column says why (``""`` for a row without error) and
    its output is the prompt as given, so that a column has one type whatever happens.

    Attributes:
        profile: a profile's name, path, fields or object; kept as the object.
        prompt_column: prompts: strings, lists of messages, or payloads.
        key_column: each row's key passages: a list of strings, one string, or None to find them from the
            question. With ``key_column=None`` all are found so.
        query_column, answer_column: each row's ``query`` and ``answer``; None when there is no such column.
        output_column: where aligned prompts go; that of the prompts replaces them.
        error_column: where errors go.
        report_columns: what else each row tells, as columns ``phaseguard_...``: ``verified`` (bool),
            ``tokens_added`` (int), ``warnings`` (one string), ``report`` (the whole report as JSON).
        level, pads, strong, isolate, inside, repeat, frozen, occurrence, max_added_tokens, tokenizer: as for
            :func:`phaseguard.align_prompt`, for every row. A tokenizer given as an object must be picklable.

    Raises:
        InputError: for options that cannot be used, at once; for a column that is missing, one that is there
            already, or columns that differ in length, at the call.
        ProfileError: for a profile that cannot be loaded.
        TokenizerError, RenderError, MissingExtraError: at the call, when no row could be read.

    >>> rows = BatchAligner(profile="deepseek-v4.1-flash")({
    ...     "prompt": ["The code is PROVOCATIVE-8417.\n\nWhich code?", ""],
    ...     "key_passages": [["PROVOCATIVE-8417"], None],
    ... })
    >>> rows["phaseguard_verified"], rows["phaseguard_error"]
    ([True, False], ['', 'The prompt is empty: give a text, or messages with text content.'])
    """

    profile: str | PhaseProfile | Any = "deepseek-v4-flash"
    prompt_column: str = "prompt"
    key_column: str | None = "key_passages"
    query_column: str | None = None
    answer_column: str | None = None
    output_column: str = "aligned_prompt"
    error_column: str = f"{PREFIX}error"
    report_columns: Sequence[str] = DEFAULT_REPORTS
    level: Level = "safe"
    pads: str | Sequence[str] = "auto"
    strong: Iterable[int] | None = None
    isolate: bool | Literal["auto"] = "auto"
    inside: bool = False
    repeat: bool = False
    frozen: int = 0
    occurrence: int | None = None
    max_added_tokens: int | None = None
    tokenizer: TokenizerLike | None = None

    def __post_init__(self) -> None:
        """Check everything that does not need a tokenizer."""
        reports, pads, strong = self.report_columns, self.pads, self.strong
        self._set("profile", load_profile(self.profile))
        if not isinstance(reports, Sequence):
            raise InputError(
                f"report_columns={reports!r}: give a list of names. {did_you_mean('', _NOTHING)}"
            )
        self._set("report_columns", (reports,) if isinstance(reports, str) else tuple(reports))
        self._set("pads", tuple(pads) if isinstance(pads, Sequence) and not isinstance(pads, str) else pads)
        if isinstance(self.tokenizer, os.PathLike):
            self._set("tokenizer", os.fspath(self.tokenizer))
        evidence = self._setting(None).evidence
        if strong is not None:  # a set has another order in each process
            self._set("strong", tuple(sorted(evidence.strong[0])))
        Wanted.read(None, None, None, self.occurrence)
        normalize("", self.level)
        for name in self.report_columns:
            if name not in _NOTHING:
                raise InputError(f"report_columns has {name!r}. {did_you_mean(str(name), _NOTHING)}")
        self._check_names()
        twice = [name for name in self.new_columns if self.new_columns.count(name) > 1]
        if twice:
            raise InputError(f"Two new columns would be called {twice[0]!r}: give each a name of its own.")

    def _check_names(self) -> None:
        for option in (*_READ.values(), "output_column", "error_column"):
            name = getattr(self, option)
            if not isinstance(name, str) and (name is not None or option not in _OPTIONAL):
                raise InputError(f"{option}={name!r}: give the name of a column.")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # frozen for everyone else

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.to_json(), self.tokenizer)

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Align a batch; the class says what comes out."""
        rows = count_rows(columns)
        for name in self.new_columns:
            if name in columns and name != self.prompt_column:
                raise InputError(
                    f"The batch already has a column {name!r}: drop it first, or give output_column or "
                    "error_column another name."
                )
        kept = passed_on(columns)
        given = {
            argument: read_column(kept, name, option)
            for argument, option in _READ.items()
            if (name := getattr(self, option)) is not None
        }
        if rows:
            self._load()
        done = [self._row({name: column[row] for name, column in given.items()}) for row in range(rows)]
        return {**kept, **{name: [row[name] for row in done] for name in self.new_columns}}

    @property
    def new_columns(self) -> tuple[str, ...]:
        """Names of the columns that a call adds or replaces, in their order."""
        return (self.output_column, self.error_column, *(PREFIX + name for name in self.report_columns))

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Names of the columns that a call reads, the prompts' first."""
        return tuple(name for option in _READ.values() if (name := getattr(self, option)) is not None)

    @property
    def _loaded(self) -> PhaseProfile:
        return load_profile(self.profile)  # it is one since __post_init__

    def to_json(self) -> str:
        """Everything but the tokenizer, as one line that is the same in every process."""
        state = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "tokenizer"}
        state["profile"] = json.loads(self._loaded.to_json())
        return json.dumps(state, sort_keys=True)

    def _setting(self, tokenizer: TokenizerLike | None) -> Setting:
        names = ("profile", "strong", "pads", "level", "inside", "isolate", "repeat")
        chosen = {name: getattr(self, name) for name in names}
        return Setting.read(**chosen, budget=self.max_added_tokens, tokenizer=tokenizer)

    def _load(self) -> None:
        """Load tokenizer and chat encoding now: what fails here would fail for every row."""
        setting = self._setting(self.tokenizer)
        if self._loaded.has_phases:
            _ = setting.renderer, setting.alphabets

    def warm_up(self) -> None:
        """Load the tokenizer with its fast reader now, in a process that will read a million characters.

        Raises:
            TokenizerError, MissingExtraError: when it cannot be loaded.

        >>> BatchAligner(profile="llama-3").warm_up()  # without phases nothing is loaded
        """
        if self._loaded.has_phases:
            load_tokenizer(self.tokenizer or self._loaded.tokenizer, fast=True)

    def unaligned(self, prompt: Any, error: str) -> dict[str, Any]:
        """The new columns' values for a row that could not be aligned."""
        told = {PREFIX + name: _NOTHING[name] for name in self.report_columns}
        return {self.output_column: prompt, self.error_column: error, **told}

    def _row(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The new columns' values for a row."""
        names = (f.name for f in fields(self) if not f.name.endswith(("_column", "_columns")))
        try:
            out = align_prompt(**given, **{name: getattr(self, name) for name in names})
        except PhaseGuardError as fault:
            return self.unaligned(given["prompt"], str(fault))
        except Exception as fault:  # noqa: BLE001 - one row of a million must not stop the others
            return self.unaligned(given["prompt"], f"{type(fault).__name__}: {fault}")
        told = {PREFIX + name: _told(out.report, name) for name in self.report_columns}
        return {self.output_column: out.prompt, self.error_column: "", **told}


def align_batch(columns: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Align a batch in one call: ``BatchAligner(**options)(columns)``.

    Args:
        columns: lists, NumPy or pyarrow arrays by name, one value a row; nothing in it is changed.
        options: the fields of :class:`BatchAligner`. In frameworks they go into ``fn_kwargs``.

    Returns:
        The columns as given, then the new ones.

    Raises:
        PhaseGuardError: as :class:`BatchAligner` does; never for one row.

    >>> out = align_batch({"prompt": ["Is it 5?"], "key_passages": [["5"]]}, report_columns=["verified"])
    >>> list(out), out["phaseguard_verified"]
    (['prompt', 'key_passages', 'aligned_prompt', 'phaseguard_error', 'phaseguard_verified'], [True])
    """
    return BatchAligner(**options)(columns)


def _rebuilt(state: str, tokenizer: TokenizerLike | None) -> BatchAligner:
    return BatchAligner(**json.loads(state), tokenizer=tokenizer)


def _told(report: Report, name: str) -> Any:
    if name == "warnings":
        return " ".join(report.warnings)
    if name == "report":
        return json.dumps(report.to_dict(), ensure_ascii=False)
    return getattr(report, name)
