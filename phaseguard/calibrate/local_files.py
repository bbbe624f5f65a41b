"""Loading a causal LM and its tokenizer with ``transformers`` from files on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaseguard.errors import InputError, MissingExtraError


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A model, what its tokenizer is loaded from, and what its file or folder is called."""

    model: Any
    tokenizer: Any
    name: str


def load_files(
    path: str | os.PathLike[str], *, tokenizer: Any = None, device: str = "cpu", dtype: str = "float32"
) -> Loaded:
    """Load a folder as transformers saves it, or a .gguf file; see :meth:`LocalEndpoint.load`.

    Raises:
        InputError: when there is no model, or transformers cannot read it.
        MissingExtraError: when a package is missing that reads the file.

    >>> load_files("nowhere")
    Traceback (most recent call last):
    ...
    phaseguard.errors.InputError: There is no model nowhere: give a folder with config.json, or a .gguf file.
    """
    file = Path(path).expanduser()
    if not file.exists():
        raise InputError(f"There is no model {file}: give a folder with config.json, or a .gguf file.")
    if file.is_file() and file.suffix != ".gguf":
        raise InputError(f"{file} is no .gguf file: give one, or the folder that holds config.json.")
    if dtype not in ("float32", "bfloat16", "float16"):
        raise InputError(f"dtype={dtype!r}: give float32, bfloat16 or float16.")
    folder, given = (file, {}) if file.is_dir() else (file.parent, {"gguf_file": file.name})
    model = _load("AutoModelForCausalLM", folder, **given, dtype=dtype).to(device)
    if tokenizer is None:
        tokenizer = folder if not given else _load("AutoTokenizer", folder, **given)
    return Loaded(model, tokenizer, file.name)


def _load(kind: str, folder: Path, **given: Any) -> Any:
    """What one of transformers' Auto classes makes of a folder."""
    try:
        import transformers  # noqa: PLC0415 - seconds of loading
    except ImportError as error:
        raise MissingExtraError(
            "A local model needs transformers and torch: pip install 'phaseguard[transformers,torch]'."
        ) from error
    try:
        return getattr(transformers, kind).from_pretrained(str(folder), local_files_only=True, **given)
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        if isinstance(error, ImportError) or "accelerate is required" in said:
            raise MissingExtraError(
                f"{folder} needs a further package ({said}) For .gguf files: pip install 'phaseguard[gguf]'."
            ) from error
        raise InputError(
            f"transformers cannot load a causal LM from {folder} ({type(error).__name__}: {said}). Give a "
            "folder as save_pretrained writes it, or a .gguf file."
        ) from error
