"""JSON, lists and tool calls in one form: key order and spacing do not count, order only where it says so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from phaseguard.voting.quantities import number

_BULLET = re.compile(r"\s*(?:[-*+•‣◦]|\(?\d{1,3}[.)])\s+")
_COMMA = re.compile(r",(?!\d{3}(?!\d))")  # not the one in 1,000
_AND = re.compile(r"\s(?:and|&)\s", re.IGNORECASE)
_LEADING_AND = re.compile(r"^\s*(?:and|&)\s+", re.IGNORECASE)


def json_form(text: str, *, any_order: bool = False) -> str | None:
    """One text for all ways of writing the same JSON object or array; None for anything else.

    Numbers are compared by value and strings exactly; ``1``, ``"1"`` and ``true`` differ. Duplicate keys,
    NaN and infinities are refused, since readers disagree about them.

    Args:
        text: an answer without blanks around it.
        any_order: whether arrays are compared as multisets, at every depth.

    >>> json_form('{"b": [2, 1.0], "a": true}')
    '{"a":true,"b":[2,1]}'
    >>> json_form("[2, 1]", any_order=True), json_form("7")
    ('[1,2]', None)
    """
    try:
        value = _read(text)
        return None if value is None else _written(value, any_order)
    except (ValueError, RecursionError):
        return None


def list_form(text: str, item: Callable[[str], str], *, any_order: bool = False) -> str:
    r"""One text for all ways of writing a list: a JSON array, lines with bullets, or items between commas.

    Args:
        text: an answer without blanks around it.
        item: gives the form of one item.
        any_order: whether the list is compared as a multiset: ``a, a, b`` is not ``a, b``.

    >>> list_form("red, green and blue", str.strip)
    '["red", "green", "blue"]'
    >>> list_form("- b\n- a", str.strip, any_order=True) == list_form('["a", "b"]', str.strip)
    True
    """
    forms = _array_items(text, item, any_order=any_order)
    if forms is None:
        forms = [item(part) for part in _parts(text)]
    return json.dumps(sorted(forms) if any_order else forms, ensure_ascii=False)


def calls_text(calls: Iterable[tuple[str, object]]) -> str:
    """Tool calls as an answer: a JSON array with ``[name, arguments]`` of each, keys sorted.

    Every form but ``text`` compares it as JSON; ``set`` also takes calls in any order for the same.

    Args:
        calls: name and arguments of each. Arguments are a mapping or JSON text; an empty text stands for
            none. Text that is no JSON object, or has a key twice, stays the string that it is.

    >>> calls_text([("look_up", '{"row": 1, "code": "A-17"}'), ("stop", "")])
    '[["look_up",{"code":"A-17","row":1}],["stop",{}]]'
    """
    written = (f"[{_dumped(name)},{_arguments(given)}]" for name, given in calls)
    return "[" + ",".join(written) + "]"


def _arguments(given: object) -> str:
    if isinstance(given, Mapping):
        return _dumped(dict(given))
    text = str(given)
    if not text.strip():
        return "{}"
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
        return _dumped(value) if isinstance(value, dict) else _dumped(text)
    except (ValueError, RecursionError):
        return _dumped(text)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _array_items(text: str, item: Callable[[str], str], *, any_order: bool) -> list[str] | None:
    try:
        value = _read(text)
        if not isinstance(value, list):
            return None
        return [item(one) if isinstance(one, str) else item(_written(one, any_order)) for one in value]
    except (ValueError, RecursionError):
        return None


def _parts(text: str) -> list[str]:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        return [_BULLET.sub("", line, count=1) for line in lines]
    parts = text.split(";") if ";" in text else _COMMA.split(text)
    parts = [piece for part in parts for piece in _AND.split(_LEADING_AND.sub("", part, count=1))]
    return [part for part in parts if part.strip()]


def _read(text: str) -> Any:
    """The object or array that a text is, with numbers as fractions, or None."""
    if text[:1] + text[-1:] not in ("{}", "[]"):
        return None
    return json.loads(
        text, object_pairs_hook=_object, parse_int=_exact, parse_float=_exact, parse_constant=_refuse
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def _exact(text: str) -> Fraction:
    value = number(text)
    if value is None:
        raise ValueError("a number too long to be spelt out")
    return value


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _written(value: Any, any_order: bool) -> str:
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}:{_written(one, any_order)}" for key, one in sorted(value.items()))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        items = [_written(one, any_order) for one in value]
        return "[" + ",".join(sorted(items) if any_order else items) + "]"
    return str(value) if isinstance(value, Fraction) else json.dumps(value)
