"""Files are whole or what they were, and keep their mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from phaseguard.files import write_whole


def broken() -> Iterator[bytes]:
    yield b"half"
    raise RuntimeError


def test_a_file_that_cannot_be_made_whole_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, [b"one ", b"two"])
    with pytest.raises(RuntimeError):
        write_whole(path, broken())
    assert path.read_bytes() == b"one two"
    assert list(tmp_path.iterdir()) == [path]


def test_modes_are_those_of_the_file_that_was_there_or_of_any_new_file(tmp_path: Path) -> None:
    new, other = tmp_path / "new", tmp_path / "other"
    write_whole(new, [b"x"])
    other.touch()
    assert new.stat().st_mode == other.stat().st_mode
    new.chmod(0o640)
    write_whole(new, [b"y"])
    assert new.stat().st_mode & 0o777 == 0o640
