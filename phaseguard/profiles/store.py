"""Where profiles are kept: the shipped ones, and the user's own, which win."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from phaseguard.errors import ProfileError, did_you_mean
from phaseguard.files import write_whole
from phaseguard.profiles.model import PhaseProfile

SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One profile file.

    Attributes:
        name: the name it is loaded by (its file's stem).
        origin: ``shipped`` or ``user``.
        path: the file.
        profile: its content, or None when it cannot be read.
        problem: why it cannot be read, or None.
    """

    name: str
    origin: Literal["shipped", "user"]
    path: Path
    profile: PhaseProfile | None
    problem: str | None = None


def user_folder() -> Path:
    """Folder of the user's own profiles; it need not exist.

    ``PHASEGUARD_PROFILES`` when set; else ``phaseguard/profiles`` in the platform's configuration folder:
    ``%APPDATA%``, ``~/Library/Application Support``, or ``$XDG_CONFIG_HOME`` (``~/.config``).
    """
    named = os.environ.get("PHASEGUARD_PROFILES")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "phaseguard" / "profiles"


def list_profiles() -> tuple[ProfileEntry, ...]:
    """Every profile by name, shipped ones and the user's own; a name that is both is listed as the user's.

    >>> "deepseek-v4-flash" in [entry.name for entry in list_profiles()]
    True
    """
    entries = {path.stem: _entry(path, "shipped") for path in SHIPPED.glob("*.json")}
    entries |= {path.stem: _entry(path, "user") for path in _user_files()}
    return tuple(entries[name] for name in sorted(entries))


def load_profile(profile: PhaseProfile | Mapping[str, Any] | str | os.PathLike[str]) -> PhaseProfile:
    """Load a profile, given as an object, its fields, a name, or the path of a JSON file.

    A name is looked up among the user's own profiles, then among the shipped ones. When a shipped one is
    found and the user has measured the same model at the same provider in the same reasoning mode, the
    newest of those measurements is returned instead.

    Raises:
        ProfileError: for an unknown name (lists near ones), or a file that cannot be read.

    >>> load_profile("deepseek-v4-flash").period
    4
    """
    if isinstance(profile, PhaseProfile):
        return profile
    if isinstance(profile, Mapping):
        return PhaseProfile(**_fields(profile))
    if not isinstance(profile, str | os.PathLike):
        raise ProfileError(
            f"A profile is a name, a path, a dict or a PhaseProfile, not {type(profile).__name__}."
        )
    given = os.fspath(profile)
    if not isinstance(profile, str) or given.endswith(".json") or "/" in given or os.sep in given:
        return read_profile(Path(given).expanduser())
    own = {path.stem: path for path in _user_files()}
    if given in own:
        return read_profile(own[given])
    shipped = {path.stem: path for path in SHIPPED.glob("*.json")}
    if given not in shipped:
        raise ProfileError(f"Unknown profile {given!r}. {did_you_mean(given, {*own, *shipped})}")
    found = read_profile(shipped[given])
    return _measured_instead(found, own.values()) or found


def read_profile(path: Path) -> PhaseProfile:
    """Read one JSON file.

    Raises:
        ProfileError: names the file, the field or line, and what to do.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = did_you_mean(path.stem, [entry.name for entry in list_profiles()])
        raise ProfileError(f"There is no profile file {path}. {hint}") from None
    except OSError as fault:
        raise ProfileError(
            f"{path} cannot be read: {fault.strerror}. Check the path and its rights."
        ) from fault
    except UnicodeDecodeError as fault:
        raise ProfileError(f"{path} is not UTF-8 (byte {fault.start}): save it as UTF-8.") from fault
    except json.JSONDecodeError as fault:
        raise ProfileError(
            f"{path} is not JSON: {fault.msg} at line {fault.lineno}, column {fault.colno}. Correct it there."
        ) from fault
    except (RecursionError, ValueError) as fault:  # nested too deep, or a number of thousands of digits
        raise ProfileError(f"{path} cannot be read: {fault}. Write it again.") from fault
    if not isinstance(data, dict):
        raise ProfileError(f"{path} holds a {type(data).__name__}: a profile is one JSON object.")
    try:
        return PhaseProfile(**data)
    except ProfileError as fault:
        raise ProfileError(f"{path}: {fault}") from None


def save_profile(
    profile: PhaseProfile, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Path:
    """Write a profile to ``path``, or under its name among the user's own; whole or not at all.

    Returns:
        The path of the file.

    Raises:
        ProfileError: when the file exists and ``overwrite`` is not set, or cannot be written.
    """
    target = user_folder() / f"{profile.name}.json" if path is None else Path(path).expanduser()
    if target.exists() and not overwrite:
        raise ProfileError(f"{target} exists: choose another name, or save with overwrite=True.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(os.path.realpath(target)), [profile.to_json().encode("utf-8")])
    except OSError as fault:
        raise ProfileError(
            f"{target} cannot be written: {fault.strerror}. Set PHASEGUARD_PROFILES to a folder that can."
        ) from fault
    return target


def profile_name(text: str) -> str:
    """A model's name, or that of its file, in the letters that a profile's name may have.

    >>> profile_name("org/My Model:7b"), profile_name("weights/mine.safetensors")
    ('My-Model-7b', 'mine')
    """
    name = Path(text).name.removesuffix(".safetensors")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "model"


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    strange = [key for key in data if not isinstance(key, str)]
    if strange:
        raise ProfileError(f"A profile's fields are strings, not {strange[0]!r}.")
    return dict(data)


def _user_files() -> Iterator[Path]:
    folder = user_folder()
    return iter(sorted(folder.glob("*.json"))) if folder.is_dir() else iter(())


def _entry(path: Path, origin: Literal["shipped", "user"]) -> ProfileEntry:
    try:
        return ProfileEntry(path.stem, origin, path, read_profile(path))
    except ProfileError as fault:
        return ProfileEntry(path.stem, origin, path, None, str(fault))


def _measured_instead(found: PhaseProfile, own: Any) -> PhaseProfile | None:
    """The user's newest measurement of the same model, provider and reasoning mode."""
    same: list[PhaseProfile] = []
    for path in own:
        entry = _entry(path, "user").profile  # a broken file of another name must not stop this one
        if (
            entry is not None
            and entry.provenance.kind == "measured"
            and found.model is not None
            and (entry.model, entry.provider, entry.reasoning)
            == (found.model, found.provider, found.reasoning)
        ):
            same.append(entry)
    return max(same, key=lambda profile: profile.provenance.date or "", default=None)
