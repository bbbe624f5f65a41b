"""The results file: one JSON line an answer, on disk before the next is asked for, read again to go on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from phaseguard.calibrate.items import Probe
from phaseguard.calibrate.observations import Observations
from phaseguard.errors import InputError

FORMAT = "phaseguard-calibrate-1"
_HEAD = json.dumps({"kind": "run", "format": FORMAT}).removesuffix("}").encode()  # how every file begins


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer.

    Attributes:
        probe, item, shift: which prompt it answers; negative items are those of the check call.
        request: digest of the request.
        position, key, shape, tokens: see :class:`~phaseguard.calibrate.shifts.Shifted`.
        right: whether it is the expected answer; ``answer``: what came; ``expected``: what should have.
        margin: see :func:`~phaseguard.calibrate.endpoint.margin`, or None.
        seconds: that the call took; ``at``: when it ended, ISO 8601 in UTC.
        prompt_tokens, cached_tokens, completion_tokens: the endpoint's usage, None where it says nothing.
    """

    probe: Probe
    item: int
    shift: int
    request: str
    position: int
    key: int
    shape: int
    tokens: int
    right: bool
    answer: str
    expected: str
    margin: float | None
    seconds: float
    at: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Which prompt: probe, item and shift."""

    probe: str
    item: int
    shift: int


class Results:
    """Answers of one run, in memory and, where a path is given, in a file.

    Args:
        path: the file; None keeps answers in memory alone.
        run: what the run depends on, as JSON values; a file of another run is refused.

    Raises:
        InputError: when the file belongs to another run or cannot be read or written.

    >>> results = Results(None, {"seed": 0})
    >>> len(results.answers), results.resumed
    (0, 0)
    """

    def __init__(self, path: str | os.PathLike[str] | None, run: Mapping[str, Any]) -> None:
        self.answers: dict[Place, Answered] = {}
        self.path = None if path is None else Path(path)
        self._file: Any = None
        if self.path is not None:
            self._open(self.path, json.loads(json.dumps(run)))
        self.resumed = len(self.answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, answer: Answered) -> None:
        """Keep an answer; it is on disk when this returns."""
        self.answers[Place(answer.probe, answer.item, answer.shift)] = answer
        self._write({"kind": "answer", **asdict(answer)})

    def failed(self, place: Place, error: str) -> None:
        """Note a call without an answer; it is asked again when the run goes on."""
        self._write({"kind": "failure", **asdict(place), "error": error})

    def __contains__(self, place: Place) -> bool:
        return place in self.answers

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        self._file.write(json.dumps(row, ensure_ascii=True).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _open(self, path: Path, run: Mapping[str, Any]) -> None:
        try:
            self._file = path.open("a+b")
            self._file.seek(0)
            data = self._file.read()
        except OSError as error:
            raise _unusable(path, error) from error
        whole = data.rfind(b"\n") + 1
        try:
            if not whole:
                _begins(path, data)
            elif not self._read(path, data[:whole].splitlines(), run):
                whole = 0
            if whole < len(data):  # a line that was being written, or a run without answers
                self._file.truncate(whole)
        except OSError as error:
            self._file.close()
            raise _unusable(path, error) from error
        except BaseException:
            self._file.close()
            raise
        if not whole:
            self._write({"kind": "run", "format": FORMAT, "run": run})

    def _read(self, path: Path, lines: list[bytes], run: Mapping[str, Any]) -> bool:
        """Take the answers; False when they would be another run's, but there are none."""
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1)]
        if rows[0].get("format") != FORMAT:
            raise _foreign(path)
        answers = [row for row in rows[1:] if row.get("kind") == "answer"]
        if rows[0].get("run") != run:
            if not answers:
                return False
            before = rows[0].get("run") or {}
            other = sorted(key for key in {*before, *run} if before.get(key) != run.get(key))
            raise InputError(
                f"{path} holds the results of another run: {', '.join(other)} differ. Give the same "
                "arguments to go on with it, or another results file."
            )
        names = {field.name for field in fields(Answered)}
        for row in answers:
            if not names <= row.keys():
                raise InputError(f"{path} lacks {', '.join(sorted(names - row.keys()))} of an answer.")
            answer = Answered(**{name: row[name] for name in names})
            self.answers[Place(answer.probe, answer.item, answer.shift)] = answer
        return True

    def of(self, probe: Probe, *, items: int | None = None, below: int | None = None) -> tuple[Answered, ...]:
        """Answers of a probe in order, of its first items, with fewer than so many tokens of pads."""
        chosen = (self.answers[place] for place in sorted(self.answers) if place.probe == probe)
        return tuple(
            answer
            for answer in chosen
            if answer.item >= 0
            and (items is None or answer.item < items)
            and (below is None or answer.shift < below)
        )


def _begins(path: Path, data: bytes) -> None:
    """Only a first line that was being written may be cut off; anything else is somebody's text."""
    if data[: len(_HEAD)] != _HEAD[: len(data)]:
        raise _foreign(path)


def _foreign(path: Path) -> InputError:
    return InputError(f"{path} holds no results of this version of calibrate: give another file.")


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be used for results: {error.strerror}. Give another file.")


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}, is not JSON: give another results file.") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}, line {number}, is no JSON object: give another results file.")
    return row


def observed(answers: tuple[Answered, ...]) -> Observations:
    """Answers as observations; margins only where every answer has one."""
    margins = [answer.margin for answer in answers]
    return Observations.of(
        [answer.right for answer in answers],
        [answer.position for answer in answers],
        [answer.key for answer in answers],
        [answer.item for answer in answers],
        None if not margins or None in margins else np.array(margins, np.float64),
    )
