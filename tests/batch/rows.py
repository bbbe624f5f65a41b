"""Rows of prompts for the tests of batch, and profiles with and without phases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

V41 = "deepseek-v4.1-flash"
NO_PHASE = "llama-3"  # only normalized: thousands of rows a second
KEY = "PROVOCATIVE-8417"
TEXT = f"The door code is A-17.\n\nThe vault code is {KEY}.\n\nWhich is the vault code?"
CHAT = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": TEXT}]


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """A JSON Lines file; a row that is bytes is written as it is."""
    with path.open("wb") as file:
        for row in rows:
            file.write((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n")
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
