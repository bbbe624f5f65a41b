"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that it is whole and on the disk, or what it was; one that is there keeps its mode.

    Until it is whole it lies beside it, as ``NAME.<digits>.tmp``.

    Raises:
        OSError: when it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{threading.get_native_id()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
