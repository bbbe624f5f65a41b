"""What a model's config.json says of its compression: stride by layer, and the raw window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.errors import InputError

_RATES = {"sliding_attention": 0, "full_attention": 0}
_DEFAULTS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Compression by layer.

    Attributes:
        strides: tokens an entry in each layer: 0 without compression, 1 without pooling. Empty when the
            config says nothing of it.
        window: last tokens that are read raw, or None when the config does not say.
        width: channels of an entry, or None when the config does not say.
        indexer_width: channels of an entry of the indexer, likewise.

    >>> Schedule.of({"compress_ratios": [0, 0, 4, 128, 4, 128], "sliding_window": 128}).strides
    (0, 0, 4, 128, 4, 128)
    """

    strides: tuple[int, ...] = ()
    window: int | None = None
    width: int | None = None
    indexer_width: int | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Schedule:
        """Read a config: transformers' ``deepseek_v4`` classes, and DeepSeek's own for V4 and V4.1.

        Raises:
            InputError: for strides that are no whole numbers, or layer types without a rate.
        """
        text = config.get("text_config")  # V4.1 nests the language model
        inner: Mapping[str, Any] = {**config, **text} if isinstance(text, Mapping) else config
        strides = _strides(inner)
        layers = inner.get("num_hidden_layers")
        if isinstance(layers, int) and layers >= 0:
            strides = strides[:layers]  # what follows belongs to the layers that draft tokens
        return cls(
            strides,
            _whole(inner, "sliding_window", "window_size"),
            _whole(inner, "head_dim"),
            _whole(inner, "index_head_dim"),
        )


def _strides(config: Mapping[str, Any]) -> tuple[int, ...]:
    ratios, types = config.get("compress_ratios"), config.get("layer_types")
    if ratios is None and isinstance(types, Sequence) and _DEFAULTS.keys() & set(map(str, types)):
        given = config.get("compress_rates")
        rates = {**_RATES, **_DEFAULTS, **(given if isinstance(given, Mapping) else {})}
        unknown = sorted({str(kind) for kind in types} - set(rates))
        if unknown:
            raise InputError(f"config.json has layer types without a compression rate: {', '.join(unknown)}.")
        ratios = [rates[kind] for kind in types]
    if ratios is None:
        return ()
    if not isinstance(ratios, Sequence) or not all(
        isinstance(ratio, int) and not isinstance(ratio, bool) and ratio >= 0 for ratio in ratios
    ):
        raise InputError("config.json: compress_ratios must be a list of whole numbers, one a layer.")
    return tuple(ratios)


def _whole(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of these keys that holds a whole number above 0."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
