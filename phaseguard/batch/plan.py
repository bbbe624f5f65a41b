"""A file in shards of whole lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

SHARD_ROWS = 256  # a kill loses at most this much work of each job
SHARD_BYTES = 4 << 20  # what a job holds of the input, unless one line alone is longer


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of whole lines.

    Attributes:
        number: from 0, in the order of the file.
        start, stop: bytes of the file.
        line: number of its first line, from 1.
        rows: its lines that are not blank.
    """

    number: int
    start: int
    stop: int
    line: int
    rows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A file as it was when it was planned.

    Attributes:
        shards: its shards, in order.
        sha256: of its bytes, in hexadecimal.
        modified: when it was changed last, in nanoseconds, as the file system tells.
    """

    shards: tuple[Shard, ...]
    sha256: str
    modified: int

    @property
    def rows(self) -> int:
        """Rows of the whole file."""
        return sum(shard.rows for shard in self.shards)


def plan_shards(source: Path) -> Plan:
    """Cut a file into shards, reading it once, line by line."""
    digest, modified = hashlib.sha256(), source.stat().st_mtime_ns
    shards: list[Shard] = []
    start = at = rows = 0
    first = line = 1
    with source.open("rb") as file:
        for raw in file:
            digest.update(raw)
            if rows and (rows == SHARD_ROWS or at + len(raw) - start > SHARD_BYTES):
                shards.append(Shard(len(shards), start, at, first, rows))
                start, first, rows = at, line, 0
            at, line, rows = at + len(raw), line + 1, rows + bool(raw.strip())
    if rows:
        shards.append(Shard(len(shards), start, at, first, rows))
    return Plan(tuple(shards), digest.hexdigest(), modified)
