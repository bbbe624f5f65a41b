"""JSON Lines: rows in, rows out, every field that was there kept to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from phaseguard.batch.aligner import PREFIX, BatchAligner
from phaseguard.batch.plan import Shard
from phaseguard.errors import did_you_mean

_BOM = b"\xef\xbb\xbf"
_ERRORS_KEPT = 5
_VERIFIED = PREFIX + "verified"


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a JSON Lines file.

    Attributes:
        number: from 1.
        text: the JSON object as it was written, without the blanks around it; "" when it is none.
        fields: its fields; empty when it is none.
        problem: why it cannot be aligned, or "".
    """

    number: int
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def read_lines(source: Path, shard: Shard) -> Iterator[Line]:
    """The rows of a shard; blank lines are counted and left out."""
    with source.open("rb") as file:
        file.seek(shard.start)
        number, left = shard.line, shard.stop - shard.start
        while left > 0 and (raw := file.readline()):
            left -= len(raw)
            if raw.strip():
                yield _line(raw.removeprefix(_BOM) if number == 1 else raw, number)
            number += 1


def _line(raw: bytes, number: int) -> Line:
    try:
        text = raw.decode("utf-8").strip()
        row = json.loads(text)
    except UnicodeDecodeError as fault:
        return Line(number, problem=f"not UTF-8: byte {raw[fault.start]:#04x} at offset {fault.start}")
    except json.JSONDecodeError as fault:
        return Line(number, problem=f"not JSON: {fault.msg} at column {fault.colno}")
    except (RecursionError, ValueError) as fault:
        return Line(number, problem=f"JSON that cannot be read: {fault}")
    if not isinstance(row, dict):
        return Line(number, problem=f"{type(row).__name__}, not an object with fields")
    return Line(number, text, row)


def problem_of(line: Line, aligner: BatchAligner) -> str:
    """Why a line cannot be aligned, or ""."""
    if line.problem:
        return line.problem
    for name in aligner.read_columns:
        if name not in line.fields:
            return f"no field {name!r}. {did_you_mean(name, line.fields)}"
    for name in aligner.new_columns:
        if name in line.fields and name != aligner.prompt_column:
            return f"it already has a field {name!r}"
    return ""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of some rows.

    Attributes:
        rows: all of them.
        verified: those that are aligned and proven.
        unverified: those that are only normalized, because the proof failed.
        errors: those that are left as they were.
        first_errors: the first few errors, each with its line number.
    """

    rows: int = 0
    verified: int = 0
    unverified: int = 0
    errors: int = 0
    first_errors: tuple[str, ...] = ()

    def plus(self, other: Counts) -> Counts:
        """Both together, ``other`` being what comes later in the file."""
        return Counts(
            self.rows + other.rows,
            self.verified + other.verified,
            self.unverified + other.unverified,
            self.errors + other.errors,
            (*self.first_errors, *other.first_errors)[:_ERRORS_KEPT],
        )


@dataclass(frozen=True, slots=True)
class Written:
    """Rows as they are written, UTF-8 with a newline behind each, and what became of them."""

    data: bytes
    counts: Counts


def align_lines(lines: Iterable[Line], aligner: BatchAligner) -> Written:
    """Align rows as one batch.

    A row that could not be aligned says why in its error field, with its line number, and is there all the
    same: one row out for each row in. Where no report fields are wanted, only such rows have an error field.

    Raises:
        PhaseGuardError: when no row could be aligned, whatever it holds (see :class:`BatchAligner`).
    """
    lines = list(lines)
    told = replace(aligner, report_columns=tuple(dict.fromkeys(("verified", *aligner.report_columns))))
    problems = [problem_of(line, aligner) for line in lines]
    good = [line for line, problem in zip(lines, problems, strict=True) if not problem]
    columns = told({name: [line.fields[name] for line in good] for name in aligner.read_columns})
    done = iter([{name: columns[name][row] for name in told.new_columns} for row in range(len(good))])
    counts, out = Counts(), []
    for line, problem in zip(lines, problems, strict=True):
        new = _unaligned(line, problem, told) if problem else next(done)
        error = new[aligner.error_column]
        if error:
            error = new[aligner.error_column] = f"line {line.number}: {error}"
        verified = bool(new[_VERIFIED])
        counts = counts.plus(
            Counts(1, verified, not verified and not error, bool(error), (error,) if error else ())
        )
        out.append(_dump(line, new, aligner))
    return Written("".join(out).encode("utf-8"), counts)


def _unaligned(line: Line, problem: str, told: BatchAligner) -> dict[str, Any]:
    return told.unaligned(line.fields.get(told.prompt_column), problem)


def _dump(line: Line, new: Mapping[str, Any], aligner: BatchAligner) -> str:
    """The row with its new fields, which stand behind what was there, or replace the prompt."""
    error = new[aligner.error_column]
    names = [n for n in aligner.new_columns if n != aligner.error_column or error or aligner.report_columns]
    fields = {name: new[name] for name in names}
    if not line.fields.keys().isdisjoint(fields):
        replaced = (aligner.error_column, *((aligner.output_column,) * (not error)))
        return _json({**fields, **line.fields, **{name: fields[name] for name in replaced if name in fields}})
    if not line.fields:
        return _json(fields)
    return f"{line.text[:-1].rstrip()}, {_json(fields)[1:]}"


def _json(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can spell and UTF-8 cannot
        text = json.dumps(row)
    return f"{text}\n"
