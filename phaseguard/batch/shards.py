"""The folder beside an output file where finished shards wait for the others, so that a run can go on."""

from __future__ import annotations

import json
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from phaseguard.batch.lines import Counts, Written
from phaseguard.errors import InputError
from phaseguard.files import write_whole

SUFFIX = ".parts"
TEMPORARY = ".tmp"
_MANIFEST = "manifest.json"
_LOCK = "lock"
_OURS = re.compile(r"(\d{8}\.jsonl?|manifest\.json|merged)(\.\d+\.tmp)?|lock")


@dataclass(frozen=True, slots=True)
class ShardFolder:
    """Shards of one output file.

    Attributes:
        target: the output file; the folder has its name and ``.parts``.
    """

    target: Path

    @property
    def path(self) -> Path:
        """Where the shards are."""
        return self.target.with_name(self.target.name + SUFFIX)

    def save(self, number: int, written: Written) -> None:
        """Keep a finished shard; it counts as finished when its second file is there."""
        write_whole(self._data(number), [written.data])
        done = {"bytes": len(written.data), "counts": asdict(written.counts)}
        write_whole(self._done(number), [json.dumps(done).encode("utf-8")])

    def finished(self, number: int) -> Counts | None:
        """What became of a shard's rows; None when it is not finished, or not whole."""
        try:
            done = json.loads(self._done(number).read_bytes())
            if self._data(number).stat().st_size != done["bytes"]:
                return None
            counts = done["counts"]
            return Counts(**{**counts, "first_errors": tuple(counts["first_errors"])})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def merge(self, shards: int) -> None:
        """Write the output file, whole or not at all, and remove the folder."""

        def chunks() -> Iterator[bytes]:
            for number in range(shards):
                with self._data(number).open("rb") as file:
                    while chunk := file.read(1 << 20):
                        yield chunk

        merged = self.path / "merged"
        write_whole(merged, chunks())
        if self.target.exists():
            merged.chmod(stat.S_IMODE(self.target.stat().st_mode))
        merged.replace(self.target)

    @contextmanager
    def opened(self, run: Mapping[str, Any], *, restart: bool = False) -> Iterator[None]:
        """Hold the folder for one run; what is in it belongs to that run, or is refused.

        Args:
            run: what shards depend on, by name: the input's digest, the options, the version.
            restart: throw away what is there.

        Raises:
            InputError: when there are shards of another run, another process is at work here, or the folder
                holds something else.
        """
        self.path.mkdir(exist_ok=True)
        with (self.path / _LOCK).open("ab") as file:
            _lock(file, self.path)
            self._settle(run, restart=restart)
            yield

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path)

    def _data(self, number: int) -> Path:
        return self.path / f"{number:08}.jsonl"

    def _done(self, number: int) -> Path:
        return self.path / f"{number:08}.json"

    def _settle(self, run: Mapping[str, Any], *, restart: bool) -> None:
        names = sorted(path.name for path in self.path.iterdir())
        strange = [name for name in names if not _OURS.fullmatch(name)]
        if strange:
            raise InputError(
                f"{self.path} is where shards are kept, but holds {strange[0]!r}: move that, or give another "
                "output file."
            )
        manifest = self.path / _MANIFEST
        before = json.loads(manifest.read_bytes()) if _MANIFEST in names else {}
        shards = [name for name in names if name[0].isdecimal()]
        if shards and before != run and not restart:
            raise InputError(
                f"{self.path} holds shards of another run, {_difference(before, run)}: repeat that run to "
                "end it, restart to throw them away, or give another output file."
            )
        for name in set(names) - {_LOCK}:
            if restart or before != run or name.endswith(TEMPORARY):
                (self.path / name).unlink()
        write_whole(manifest, [json.dumps(run).encode("utf-8")])


def _lock(file: IO[bytes], folder: Path) -> None:
    """Lock a file until it is closed; the system frees it when the process is killed."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        raise InputError(
            f"Another process is writing to {folder}: wait for it, or give another output file."
        ) from fault


def _difference(before: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    names = [name for name in run if before.get(name) != run[name]]
    return f"with another {' and '.join(names)}"
