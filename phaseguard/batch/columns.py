"""Columns as frameworks hand them over: lists, NumPy object arrays, pyarrow arrays; seen as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from phaseguard.errors import InputError, did_you_mean


def count_rows(columns: Any) -> int:
    """Rows of a batch.

    Raises:
        InputError: when it is no mapping of columns, or its columns differ in length.

    >>> count_rows({"a": [1, 2], "b": ["x", "y"]})
    2
    """
    if not isinstance(columns, Mapping):
        raise InputError(
            f"A batch is a dict of columns, not {type(columns).__name__}: give {{'prompt': [...], ...}}; in "
            "Ray Data leave batch_format at 'numpy'."
        )
    lengths = {}
    for name, column in columns.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sized):
            raise InputError(
                f"Column {name!r} is {type(column).__name__}: give a list of values, one a row "
                "(in Hugging Face datasets: map with batched=True)."
            )
        lengths[name] = len(column)
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InputError(f"The columns differ in length: {told} rows. Give one value a row in each.")
    return next(iter(lengths.values()), 0)


def passed_on(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns as they are returned: the same objects, but object arrays of NumPy as lists.

    Ray Data hands lists over as arrays of arrays, and would pickle those instead of writing Arrow lists.

    >>> import numpy as np
    >>> passed_on({"keys": np.array([np.array(["a"], dtype=object), None], dtype=object), "n": [1, 2]})
    {'keys': [['a'], None], 'n': [1, 2]}
    """
    return {
        name: [plain(value) for value in column] if getattr(column, "dtype", None) == "object" else column
        for name, column in columns.items()
    }


def read_column(columns: Mapping[str, Any], name: str, option: str) -> list[Any]:
    """One column as a list of plain values; what pandas writes for a missing text, NaN, is None.

    Args:
        columns: the batch.
        name: which column.
        option: which argument named it, for the message.

    Raises:
        InputError: when there is no such column.
    """
    if name not in columns:
        none = "" if option == "prompt_column" else f", or {option}=None when there is none"
        raise InputError(
            f"There is no column {name!r}: name one with {option}=...{none}. {did_you_mean(name, columns)}"
        )
    column = columns[name]
    values = column.to_pylist() if hasattr(column, "to_pylist") else column
    return [None if isinstance(value, float) and math.isnan(value) else plain(value) for value in values]


def plain(value: Any) -> Any:
    """A value in Python's own types: arrays become lists, and subclasses of str become str.

    >>> import numpy as np
    >>> plain({"role": np.str_("user"), "content": np.array(["a", None], dtype=object)})
    {'role': 'user', 'content': ['a', None]}
    """
    if isinstance(value, str):
        return str.__str__(value)  # an enum's own __str__ may say something else
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value
