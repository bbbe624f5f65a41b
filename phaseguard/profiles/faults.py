"""A validation error in words: which field, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from phaseguard.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


def explain_fault(fault: ValidationError, fields: Sequence[str]) -> str:
    """Put the first faults of a profile into one message.

    Args:
        fault: what pydantic found.
        fields: the names of the profile's fields, for suggestions.
    """
    errors = fault.errors(include_url=False)
    words = "; ".join(_one(error, fields) for error in errors[:3])
    more = f" (and {len(errors) - 3} more)" if len(errors) > 3 else ""
    end = "" if (words + more).endswith("?") else "."
    return f"The profile does not fit: {words}{more}{end} Correct it and load it again."


def _one(error: ErrorDetails, fields: Sequence[str]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    kind = error["type"]
    if kind == "extra_forbidden":
        names = ["schema" if name == "schema_version" else name for name in fields]
        hint = f" {did_you_mean(where, names).rstrip('.')}" if "." not in where else ""
        return f"field {where!r} is unknown;{hint}".rstrip(";")
    if kind == "missing":
        return f"field {where!r} is missing"
    message = error["msg"].removeprefix("Value error, ")
    return f"field {where!r}: {message}" if where else message
