"""Reading and writing for the command line: bytes in, bytes out, whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaseguard.errors import InputError
from phaseguard.files import write_whole

STDIN = "-"


def read_text(name: str) -> str:
    """The text of a file, or of standard input for ``-``; newlines stay as they are.

    Raises:
        InputError: when it cannot be read, is not UTF-8, or is empty.
    """
    label = "standard input" if name == STDIN else name
    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as fault:
        raise InputError(f"{label} cannot be read: {_reason(fault)}.") from fault
    except ValueError as fault:  # a NUL in the name
        raise InputError(f"{label!r} is not a file name: {fault}.") from fault
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise InputError(
            f"{label} is not UTF-8: byte {data[fault.start]:#04x} at offset {fault.start}, line {line}. "
            "Convert it to UTF-8 first."
        ) from fault


def write_bytes(target: str | None, data: bytes) -> None:
    """Write to a file, or to standard output for None and ``-``.

    A file is written beside its place and then moved there, so that it is whole or untouched; it keeps
    its permissions, and a link keeps pointing where it did.

    Raises:
        InputError: when the file cannot be written.
    """
    if target is None or target == STDIN:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        path = Path(os.path.realpath(target))
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)  # a device or a pipe has no place to move to
        elif path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        else:
            write_whole(path, [data])
    except (OSError, ValueError) as fault:
        raise InputError(f"{target} cannot be written: {_reason(fault)}.") from fault


def _reason(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or str(fault)


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt file: plain text, or JSON with messages.

    Attributes:
        prompt: what ``align_prompt`` takes.
        text: the file's text.
        is_json: whether the file is JSON.
    """

    prompt: Any
    text: str
    is_json: bool

    @classmethod
    def read(cls, name: str, *, messages: bool) -> Document:
        """Read a prompt file.

        Raises:
            InputError: when it cannot be read, or is no JSON though it should be.
        """
        text = read_text(name)
        return cls(_parse(text, name) if messages else text, text, messages)

    def looks_like_messages(self) -> bool:
        """Whether plain text is JSON with messages: its writer forgot to say so."""
        if self.is_json or not self.text.lstrip("\ufeff \t\r\n").startswith(("[", "{")):
            return False
        try:
            parsed = _parse(self.text, STDIN)
        except InputError:
            return False
        messages = parsed.get("messages") if isinstance(parsed, dict) else parsed
        return isinstance(messages, list) and any(isinstance(m, dict) and "role" in m for m in messages)

    def dump(self, prompt: Any) -> bytes:
        """The bytes of another prompt of the same kind; JSON is spread over lines when the file's was."""
        if not self.is_json:
            return str(prompt).encode("utf-8")
        lines = "\n" in self.text.strip()
        end = "\n" if self.text.endswith("\n") else ""
        return (json.dumps(prompt, ensure_ascii=False, indent=2 if lines else None) + end).encode("utf-8")


def _parse(text: str, name: str) -> Any:
    label = "standard input" if name == STDIN else name
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as fault:
        raise InputError(
            f"{label} is not JSON: {fault.msg} at line {fault.lineno}, column {fault.colno}."
        ) from fault
    except (RecursionError, ValueError) as fault:
        raise InputError(f"{label} is JSON that cannot be read: {fault}.") from fault
