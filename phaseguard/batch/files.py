"""``align_file``: a JSON Lines file of prompts, in shards that outlive a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from phaseguard.batch.aligner import BatchAligner
from phaseguard.batch.lines import Counts, align_lines, problem_of, read_lines
from phaseguard.batch.plan import SHARD_BYTES, SHARD_ROWS, Plan, Shard, plan_shards
from phaseguard.batch.pool import run_tasks
from phaseguard.batch.shards import ShardFolder
from phaseguard.errors import InputError

_MUCH = 1 << 20  # bytes for one process; it reads them more than twice, which pays for the fast reader


@dataclass(frozen=True, slots=True)
class FileReport:
    """What :func:`align_file` did.

    Attributes:
        counts: what became of the rows of the whole file.
        resumed: rows that an earlier, interrupted run had done.
    """

    counts: Counts
    resumed: int


def align_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    aligner: BatchAligner | None = None,
    *,
    jobs: int = 1,
    restart: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> FileReport:
    """Align the prompts of a JSON Lines file, one object a line, row for row.

    Shards of rows are written to a folder beside the output, ``TARGET.parts``, and joined at the end: the
    output is whole or untouched, in the order of the input. After a kill or Ctrl-C the same call goes on from
    the finished shards. Memory does not grow with the file.

    Fields are kept byte for byte; the new ones stand behind them. A line that is no JSON object, or lacks a
    field, becomes a row with an error that names the line; blank lines are left out.

    Args:
        source: the input file.
        target: the output file; one that is there is replaced when all is done.
        aligner: what to read and how to align; its columns are fields here. None for the defaults.
        jobs: worker processes. They are started by spawn: call it under ``if __name__ == "__main__"``.
        restart: throw away shards that are there.
        progress: called with rows done and rows in all, after each shard.

    Raises:
        InputError: when a file cannot be used, the first row lacks a field, or the shards that are there
            belong to another input or other options.
        PhaseGuardError: when no row could be aligned, whatever it holds, or a worker was killed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     _ = (Path(name) / "in.jsonl").write_text('{"prompt": "Is it 5?", "key_passages": ["5"]}')
    ...     report = align_file(Path(name) / "in.jsonl", Path(name) / "out.jsonl")
    >>> report.counts.rows, report.counts.errors
    (1, 0)
    """
    aligner = BatchAligner() if aligner is None else aligner
    source, folder = Path(source), ShardFolder(Path(os.path.realpath(target)))
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r}: give how many processes to use, from 1.")
    _check_paths(source, folder.target)
    try:
        plan = plan_shards(source)
        with folder.opened(_run(plan, aligner), restart=restart):
            _check_first_row(source, plan.shards[:1], aligner)
            report = _align(source, folder, plan, aligner, jobs, progress or _silent)
            if source.stat().st_mtime_ns != plan.modified:
                raise InputError(f"{source} was changed while it was read: run it again.")
            folder.merge(len(plan.shards))
    except OSError as fault:
        where = fault.filename or folder.path
        raise InputError(f"{where}: {fault.strerror or fault}. Finished shards are kept.") from fault
    folder.remove()
    return report


def _silent(done: int, total: int) -> None:
    """Report progress to nobody."""


def _check_paths(source: Path, target: Path) -> None:
    if not source.is_file():
        raise InputError(f"{source} cannot be read: give the name of a file.")
    if target.is_dir() or not target.parent.is_dir() or (target.exists() and not target.is_file()):
        raise InputError(f"{target} cannot be written: give the name of a file in a folder that exists.")
    if target.exists() and source.samefile(target):
        raise InputError(f"{target} is the input: give another output file.")


def _run(plan: Plan, aligner: BatchAligner) -> dict[str, Any]:
    """What shards depend on."""
    if aligner.tokenizer is not None and not isinstance(aligner.tokenizer, str):
        raise InputError("A file needs a tokenizer by name or path: an object cannot be recognized later.")
    return {
        "input": plan.sha256,
        **json.loads(aligner.to_json()),
        "tokenizer": aligner.tokenizer,
        "version of phaseguard": version("phaseguard"),
        "size of shards": [SHARD_ROWS, SHARD_BYTES],
    }


def _align(
    source: Path,
    folder: ShardFolder,
    plan: Plan,
    aligner: BatchAligner,
    jobs: int,
    progress: Callable[[int, int], object],
) -> FileReport:
    found = {n: counts for n in range(len(plan.shards)) if (counts := folder.finished(n)) is not None}
    resumed = done = sum(counts.rows for counts in found.values())
    progress(done, plan.rows)
    todo = [shard for shard in plan.shards if shard.number not in found]
    jobs = min(jobs, max(1, len(todo)))
    much = sum(shard.stop - shard.start for shard in todo) > jobs * _MUCH
    work = partial(_align_shard, source, folder, aligner, much)
    with closing(run_tasks(work, todo, jobs)) as results:
        for finished in results:
            found[finished.number] = finished.counts
            done += finished.counts.rows
            progress(done, plan.rows)
    total = reduce(Counts.plus, (found[shard.number] for shard in plan.shards), Counts())
    return FileReport(total, resumed)


@dataclass(frozen=True, slots=True)
class _Finished:
    """A shard's number, and what became of its rows."""

    number: int
    counts: Counts


def _check_first_row(source: Path, shards: Sequence[Shard], aligner: BatchAligner) -> None:
    """Names of fields that no row has are found before hours are spent."""
    rows = chain.from_iterable(read_lines(source, shard) for shard in shards)
    first = next((line for line in rows if not line.problem), None)
    if first is not None and (problem := problem_of(first, aligner)):
        raise InputError(
            f"{source}, line {first.number}: {problem} Name the fields that the rows have, and new ones that "
            "they do not have."
        )


def _align_shard(
    source: Path, folder: ShardFolder, aligner: BatchAligner, much: bool, shard: Shard
) -> _Finished:
    if much:
        aligner.warm_up()
    written = align_lines(read_lines(source, shard), aligner)
    folder.save(shard.number, written)
    return _Finished(shard.number, written.counts)
