"""Profiles as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from phaseguard.profiles import ProfileEntry


def listing_json(entries: Sequence[ProfileEntry]) -> str:
    """A list of objects: name, origin, path, problem, and the profile or null."""
    rows = [
        {
            "name": entry.name,
            "origin": entry.origin,
            "path": str(entry.path),
            "problem": entry.problem,
            "profile": None
            if entry.profile is None
            else entry.profile.model_dump(mode="json", by_alias=True),
        }
        for entry in entries
    ]
    return json.dumps(rows, ensure_ascii=False, indent=2)
