"""Real files, whole and without a fence, come back byte for byte; so do files inside a prompt."""

from __future__ import annotations

import csv
import io
import json
import logging
import random
import sqlite3
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path

import pytest

from phaseguard.normalize import normalize

STDLIB = Path(sysconfig.get_paths()["stdlib"])
BEFORE = "You are a careful reviewer. \n\n\n\nHere is the file:\n\n"
AFTER = "\n\nWhat does it do?\n\n\n\nAnswer in one sentence. \n"
TIDY_BEFORE = "You are a careful reviewer.\n\nHere is the file:\n\n"
TIDY_AFTER = "\n\nWhat does it do?\n\nAnswer in one sentence.\n"


def read(path: Path) -> str | None:
    """The text of a file with its line endings as they are, or nothing when it is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


def stdlib_files(suffix: str = ".py") -> list[Path]:
    return sorted(p for p in STDLIB.rglob(f"*{suffix}") if "site-packages" not in p.parts)


def changed(paths: Iterable[Path]) -> tuple[list[Path], int]:
    texts = [(path, text) for path in paths if (text := read(path)) is not None]
    return [path for path, text in texts if normalize(text).text != text], len(texts)


def test_standard_library_sample() -> None:
    missed, total = changed(random.Random(8417).sample(stdlib_files(), 300))
    assert total > 250
    assert len(missed) <= 0.01 * total, missed


@pytest.mark.slow
def test_standard_library_whole() -> None:
    missed, total = changed(stdlib_files())
    assert len(missed) <= 0.01 * total, missed


def check_in_prompt(text: str) -> None:
    if not text.strip():
        return
    out = normalize(BEFORE + text + AFTER).text
    assert out == TIDY_BEFORE + text + TIDY_AFTER


def test_standard_library_inside_a_prompt() -> None:
    for path in random.Random(1).sample(stdlib_files(), 150):
        if text := read(path):
            check_in_prompt(text.strip("\n"))


@pytest.mark.slow
def test_standard_library_inside_a_prompt_whole() -> None:
    missed = []
    paths = stdlib_files()
    for path in paths:
        try:
            check_in_prompt((read(path) or "").strip("\n"))
        except AssertionError:
            missed.append(path)
    assert len(missed) <= 0.01 * len(paths), missed


def inventory() -> list[dict[str, object]]:
    rng = random.Random(3)
    note = "First line.\n\n\n\nSecond, with a trailing blank. \nThird"
    return [
        {
            "id": n,
            "name": f"part {n}",
            "price": rng.random(),
            "tags": ["a", "b"],
            "note": note if n % 5 == 0 else "",
        }
        for n in range(40)
    ]


def as_csv(delimiter: str, end: str) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(inventory()[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(inventory())
    return out.getvalue()


def as_sql() -> str:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE parts (\n  id INTEGER PRIMARY KEY,\n\n\n  name TEXT,\n  note TEXT\n)")
        db.executemany(
            "INSERT INTO parts VALUES (?, ?, ?)", [(r["id"], r["name"], r["note"]) for r in inventory()]
        )
        text = "\n".join(db.iterdump()) + "\n"
    db.close()
    return text


def as_log() -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-8s %(name)s: %(message)s"))
    log = logging.Logger("service")
    log.addHandler(handler)
    for row in inventory():
        log.info("loaded %s  \n", row["name"])
    try:
        int("no such part ")
    except ValueError:
        log.exception("failed\n\n\n")
    return out.getvalue()


def as_yaml() -> str:
    lines = ["# parts of the store", "version: 2", "", "", "parts: "]
    for row in inventory():
        lines += [f"  - id: {row['id']} ", f"    name: {row['name']}", ""]
    return "\n".join([*lines, "", "", "notes: |", "  Text. ", "", "", "  More text.", ""])


def as_toml() -> str:
    text = '# settings \n\n\n[tool.a]\nname = "x"   # why \n\n\n\n[[tool.b]]\nlist = [\n  1,\n\n\n  2,\n]\n'
    assert tomllib.loads(text)
    return text


def as_mail() -> str:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "b@example.org", "Parts "
    message.set_content("Hello,\nsee below.\n-- \nAnna ")
    message.add_alternative("<html>\n<body>\n\n\n<p>Hello </p>\n</body>\n</html>", subtype="html")
    return message.as_string().replace("Hello,\nsee below.\n", "")


MADE = {
    "json": json.dumps(inventory(), indent=2).replace(",\n", ", \n\n\n", 3) + "\n",
    "json-compact": json.dumps(inventory()),
    "json-lines": "".join(json.dumps(row) + "\n" for row in inventory()),
    "csv": as_csv(",", "\n"),
    "csv-windows": as_csv(",", "\r\n"),
    "csv-semicolons": as_csv(";", "\n"),
    "tsv": as_csv("\t", "\n"),
    "sql": as_sql(),
    "log": as_log(),
    "yaml": as_yaml(),
    "toml": as_toml(),
    "mail": as_mail(),
}


@pytest.mark.parametrize("kind", MADE)
def test_made_file_is_unchanged(kind: str) -> None:
    assert normalize(MADE[kind]).text == MADE[kind]


@pytest.mark.parametrize("kind", MADE)
def test_made_file_inside_a_prompt_is_unchanged(kind: str) -> None:
    check_in_prompt(MADE[kind].strip("\r\n"))


SUFFIXES = [
    ".json",
    ".yaml",
    ".yml",
    ".csv",
    ".sql",
    ".log",
    ".toml",
    ".c",
    ".h",
    ".sh",
    ".html",
    ".js",
    ".css",
    ".cfg",
]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_the_machine(suffix: str) -> None:
    roots = [Path(sys.prefix), Path("/usr/share"), Path("/usr/include"), STDLIB]
    paths = sorted({p for root in roots if root.is_dir() for p in root.rglob(f"*{suffix}") if p.is_file()})
    small = [p for p in random.Random(5).sample(paths, min(400, len(paths))) if p.stat().st_size < 600_000]
    missed, total = changed(small)
    assert len(missed) <= 0.01 * total, missed
