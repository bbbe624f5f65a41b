"""Weights of on-device models on disk: safetensors files that say what model they belong to.

Shipped models lie in ``weights/``; ``manifest.json`` there says how each was trained and what it reached.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from phaseguard.errors import InputError, did_you_mean
from phaseguard.files import write_whole
from phaseguard.lab.model import Floats, LabModel
from phaseguard.lab.spec import Spec

FORMAT = "phaseguard-lab-1"
WEIGHTS = Path(__file__).parent / "weights"
MANIFEST = WEIGHTS / "manifest.json"
_KEY = "phaseguard"


def save_model(path: str | os.PathLike[str], model: LabModel, about: Mapping[str, Any]) -> str:
    """Write a model to one file, weights in float16; the old file stays until it is whole.

    Args:
        path: where to.
        model: the model.
        about: how it was trained, as JSON values; kept in the file.

    Returns:
        The file's SHA-256.
    """
    target = Path(path)
    described = {"format": FORMAT, "spec": model.spec.to_dict(), "about": dict(about)}
    # one key: safetensors writes several in any order, and equal models shall give equal files
    metadata = {_KEY: json.dumps(described, sort_keys=True)}
    halves = {key: np.ascontiguousarray(value, np.float16) for key, value in model.weights.items()}
    write_whole(target, [save(halves, metadata)])
    return digest(target)


def shipped() -> dict[str, dict[str, Any]]:
    """The manifest's entries of the shipped models, by name.

    >>> "csa4-s0" in shipped()
    True
    """
    entries: dict[str, dict[str, Any]] = json.loads(MANIFEST.read_text(encoding="utf-8"))["models"]
    return entries


def find_file(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a shipped model by name, or of any model by path.

    Raises:
        InputError: when the name is unknown, or a shipped file is not the one that was shipped.
    """
    name, path = str(name_or_path), Path(name_or_path)
    if name in (known := shipped()):
        path = WEIGHTS / known[name]["file"]
        if digest(path) != known[name]["sha256"]:
            raise InputError(f"The weights of {name} are not the shipped ones: install phaseguard again.")
    elif not path.is_file():
        raise InputError(
            f"There is no on-device model {name!r}, by name or path. {did_you_mean(name, known)}"
        )
    return path


def load_model(name_or_path: str | os.PathLike[str]) -> LabModel:
    """Load a shipped model by name, or one that :func:`save_model` wrote by path.

    Raises:
        InputError: as :func:`find_file`; and when the file is no safetensors file, of another format, or
            its weights do not fit its own description.

    >>> load_model("csa4-s0").spec.stride
    4
    """
    return load_file(find_file(name_or_path))


def load_file(path: Path) -> LabModel:
    """Read one file that :func:`save_model` wrote; errors are those of :func:`load_model`."""
    try:
        with safe_open(path, framework="numpy") as file:
            described = _described(file)
            if described.get("format") != FORMAT:
                raise InputError(
                    f"{path} is not in format {FORMAT!r} but {described.get('format')!r}: train it again "
                    "with this version."
                )
            names = file.keys()
            weights: dict[str, Floats] = {name: file.get_tensor(name).astype(np.float32) for name in names}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read as weights of an on-device model: {error}.") from error
    return LabModel(Spec(**described["spec"]), weights)


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How a model was trained, as :func:`save_model` was told."""
    with safe_open(path, framework="numpy") as file:
        found: dict[str, Any] = _described(file).get("about", {})
    return found


def _described(file: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((file.metadata() or {}).get(_KEY, "{}"))
    return found


def digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
