"""Where a checkpoint's files lie: a folder, or a model hub. Both give byte ranges, never whole shards."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from phaseguard.calibrate.ranges import Fetcher
from phaseguard.errors import InputError

HUB = "https://huggingface.co"
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TEXT_LIMIT = 1 << 26  # an index names every expert of every layer: 12 MB for the largest release


class Source(Protocol):
    """Files of one checkpoint, by name.

    Attributes:
        name: what messages call it.
        model: the model's id, or None when only its files are known.
        single: the one file that was named, or None when the checkpoint's index says which there are.
    """

    name: str
    model: str | None
    single: str | None

    def text(self, file: str) -> bytes | None:
        """A small file as a whole, or None when there is none."""

    def part(self, file: str, start: int, length: int) -> bytes:
        """``length`` bytes of a file from ``start`` on."""

    def has(self, file: str) -> bool:
        """Whether there is such a file."""


class FolderSource:
    """A folder, or one .safetensors file in it.

    Args:
        path: the folder or the file.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.model: str | None = None
        self.folder = path if path.is_dir() else path.parent
        self.single: str | None = None if path.is_dir() else path.name

    def text(self, file: str) -> bytes | None:
        """A small file as a whole, or None when there is none.

        Raises:
            InputError: when it is too large to be an index, or cannot be read.
        """
        path = self.folder / file
        if not path.is_file():
            return None
        if path.stat().st_size > _TEXT_LIMIT:
            raise InputError(f"{path} is larger than {_TEXT_LIMIT:,} bytes: that is no index or config.")
        return self.part(file, 0, path.stat().st_size)

    def part(self, file: str, start: int, length: int) -> bytes:
        """Bytes of a file.

        Raises:
            InputError: when the file ends before, or cannot be read.
        """
        path = self.folder / file
        try:
            with path.open("rb") as opened:
                opened.seek(start)
                found = opened.read(min(length, max(path.stat().st_size - start, 0)))
        except OSError as fault:
            raise InputError(f"{path} cannot be read: {fault.strerror}. Check the path.") from fault
        if len(found) < length:
            raise InputError(
                f"{path} is truncated: it ends at byte {start + len(found):,}, {start + length:,} were "
                "expected. Download it again."
            )
        return found

    def has(self, file: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / file).is_file()


class HubSource:
    """A repository on a hub that answers ``/REPO/resolve/REVISION/FILE``.

    Args:
        repo: ``owner/name``.
        revision: branch, tag or commit.
        fetcher: what asks; its base is the hub's URL.
    """

    def __init__(self, repo: str, revision: str, fetcher: Fetcher) -> None:
        self.name = repo if revision == "main" else f"{repo}@{revision}"
        self.model: str | None = repo
        self.single: str | None = None
        self._repo, self._revision, self._fetcher = repo, revision, fetcher

    def text(self, file: str) -> bytes | None:
        """A small file as a whole, or None when there is none; InputError as of :class:`Fetcher`."""
        return self._fetcher.whole(self._place(file), limit=_TEXT_LIMIT)

    def part(self, file: str, start: int, length: int) -> bytes:
        """Bytes of a file by a ranged request; InputError as of :class:`Fetcher`."""
        return self._fetcher.part(self._place(file), start, length)

    def has(self, file: str) -> bool:
        """Whether there is such a file: asks for its first byte."""
        return self._fetcher.exists(self._place(file))

    def _place(self, file: str) -> tuple[str, ...]:
        return (*self._repo.split("/"), "resolve", self._revision, *file.split("/"))


def find_source(
    path_or_repo: str | os.PathLike[str], *, revision: str = "main", hub_url: str | None = None
) -> FolderSource | HubSource:
    """A folder or file when there is one of that name, else a repository ``owner/name`` on a hub.

    Args:
        path_or_repo: a path, or ``owner/name``.
        revision: branch, tag or commit of a repository.
        hub_url: the hub; by default ``HF_ENDPOINT`` of the environment, or huggingface.co.

    Raises:
        InputError: when it is neither.

    >>> find_source("deepseek-ai/DeepSeek-V4-Flash").name
    'deepseek-ai/DeepSeek-V4-Flash'
    """
    given = os.fspath(path_or_repo)
    path = Path(given).expanduser()
    if path.is_dir() or path.suffix == ".safetensors":
        return FolderSource(path)
    if path.is_file():
        raise InputError(f"{path} is no .safetensors file: give one, or the checkpoint's folder.")
    if not _REPO.fullmatch(given):
        raise InputError(
            f"There is no folder {given!r}, and it is no repository on a hub, such as "
            "deepseek-ai/DeepSeek-V4-Flash."
        )
    base = hub_url or os.environ.get("HF_ENDPOINT") or HUB
    return HubSource(given, revision, Fetcher(base, token=os.environ.get("HF_TOKEN") or None))
