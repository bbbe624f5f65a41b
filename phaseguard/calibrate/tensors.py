"""Single tensors of a safetensors checkpoint, by byte range: headers first, then only what is wanted.

``safetensors`` itself reads neither bfloat16 into numpy nor over HTTP; the format is 8 bytes of header
length, a JSON header, and the tensors' bytes (https://huggingface.co/docs/safetensors).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.calibrate.sources import Source
from phaseguard.errors import InputError

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_PREFIX = 8
_HEADER_LIMIT = 100_000_000  # safetensors' own limit
_AT_ONCE = 8
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor lies.

    Attributes:
        name: its key; ``file``: its shard.
        dtype: as in the header, such as BF16; ``shape``: its shape.
        start: its first byte in the file; ``length``: its bytes.
    """

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def find_tensors(source: Source, wanted: Callable[[str], bool]) -> dict[str, TensorPlace]:
    """Places of the tensors whose names are wanted; reads the index and the headers of their shards alone.

    Args:
        source: the checkpoint.
        wanted: whether a tensor's name is wanted.

    Raises:
        InputError: when there is no checkpoint, an index or header is broken, or a shard is missing.
    """
    promised = _shards(source, wanted)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        headers = list(pool.map(lambda file: _header(source, file), promised))
    found: dict[str, TensorPlace] = {}
    for (file, names), (header, begin) in zip(promised.items(), headers, strict=True):
        for key in names or [key for key in header if key != "__metadata__" and wanted(key)]:
            if key not in header:
                raise InputError(
                    f"{file} of {source.name} has no tensor {key}, which {INDEX} says is there. "
                    "Index and shards are not of the same checkpoint: download both again."
                )
            found[key] = _place(key, file, header[key], begin)
    return found


def read_tensors(source: Source, places: Iterable[TensorPlace]) -> dict[str, NDArray[np.float64]]:
    """The values of tensors, as float64; reads their bytes alone.

    Raises:
        InputError: for a dtype that is no plain float, values that are not finite, or a truncated file.
    """
    chosen = list(places)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(
            zip(
                (place.name for place in chosen),
                pool.map(lambda place: _values(source, place), chosen),
                strict=True,
            )
        )


def is_plain(dtype: str) -> bool:
    """Whether a header's dtype is a float that stands for itself, without scales stored elsewhere.

    >>> is_plain("BF16"), is_plain("F8_E4M3")
    (True, False)
    """
    return dtype in _DTYPES


def parse_object(data: bytes, label: str) -> dict[str, Any]:
    """A JSON object from bytes.

    Raises:
        InputError: when it is none.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{label} is not JSON: it is broken or truncated. Download it again.") from fault
    if not isinstance(value, dict):
        raise InputError(f"{label} holds a {type(value).__name__}, not a JSON object. Download it again.")
    return value


def _shards(source: Source, wanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """Files to open, each with the wanted names that the index puts there; no names without an index."""
    if source.single is not None:
        return {source.single: []}
    index = source.text(INDEX)
    if index is None:
        if not source.has(SINGLE):
            raise InputError(
                f"{source.name} has neither {INDEX} nor {SINGLE}: give the folder or repository of a "
                "safetensors checkpoint, or one .safetensors file."
            )
        return {SINGLE: []}
    label = f"{INDEX} of {source.name}"
    names = parse_object(index, label).get("weight_map")
    if not isinstance(names, Mapping) or not all(_is_shard(file) for file in names.values()):
        raise InputError(f"{label} has no weight_map from tensors to .safetensors files. Download it again.")
    promised: dict[str, list[str]] = {}
    for name in filter(wanted, names):
        promised.setdefault(names[name], []).append(name)
    return promised


def _is_shard(file: object) -> bool:
    """Whether an index names a file inside the checkpoint."""
    return (
        isinstance(file, str)
        and file.endswith(".safetensors")
        and not file.startswith(("/", "~"))
        and not {"..", "."} & set(file.split("/"))
        and not set("\\:\0") & set(file)
    )


def _header(source: Source, file: str) -> tuple[dict[str, Any], int]:
    """A shard's header, and the first byte after it."""
    size = int.from_bytes(source.part(file, 0, _PREFIX), "little")
    label = f"The header of {file} of {source.name}"
    if not 2 <= size <= _HEADER_LIMIT:
        raise InputError(f"{label} claims {size:,} bytes: {file} is no safetensors file, or is broken.")
    return parse_object(source.part(file, _PREFIX, size), label), _PREFIX + size


def _place(name: str, file: str, entry: Any, begin: int) -> TensorPlace:
    try:
        dtype, shape, (low, high) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        fits = low <= high and all(isinstance(n, int) and n >= 0 for n in (low, *shape, high))
        if fits and dtype in _DTYPES:
            fits = high - low == math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    except (TypeError, KeyError, ValueError):
        fits = False
    if not fits:
        raise InputError(f"The header of {file} describes {name} wrongly: the file is broken. Get it again.")
    return TensorPlace(name, file, str(dtype), shape, begin + low, high - low)


def _values(source: Source, place: TensorPlace) -> NDArray[np.float64]:
    if not is_plain(place.dtype):
        raise InputError(
            f"{place.name} is stored as {place.dtype}, which means nothing without its scales; "
            f"{', '.join(_DTYPES)} can be read. Use the checkpoint as it was released."
        )
    raw = np.frombuffer(source.part(place.file, place.start, place.length), _DTYPES[place.dtype])
    if place.dtype == "BF16":  # the upper half of a float32
        raw = (raw.astype("<u4") << 16).view("<f4")
    values = raw.reshape(place.shape).astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError(
            f"{place.name} of {source.name} holds NaN or infinities: the checkpoint is broken. Get it again."
        )
    return values
