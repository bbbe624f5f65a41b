"""Compressors of a DeepSeek-V4-style checkpoint, layer by layer, from their few small tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from phaseguard.calibrate.favour import Favour
from phaseguard.calibrate.schedule import Schedule
from phaseguard.calibrate.sources import Source
from phaseguard.calibrate.tensors import TensorPlace, find_tensors, is_plain, read_tensors
from phaseguard.errors import InputError

Part: TypeAlias = Literal["entries", "indexer"]

# transformers' names, and DeepSeek's own: models/deepseek_v4 and conversion_mapping of transformers
_KEY = re.compile(
    r"(?:.*\.)?layers\.(\d+)\.(?:self_)?attn\.(indexer\.compressor|compressor\.indexer|compressor)\."
    r"(ape|position_bias|(?:wkv|kv_proj|wgate|gate_proj|norm|kv_norm)\.weight)"
)
_ROLES = {"ape": "bias", "position_bias": "bias", "wkv": "kv", "kv_proj": "kv", "wgate": "gate"}
_ROLES |= {"gate_proj": "gate", "norm": "norm", "kv_norm": "norm"}


@dataclass(frozen=True, slots=True)
class LayerCompression:
    """One compressor of one layer.

    Attributes:
        layer: the layer, from 0.
        part: ``entries`` that attention reads, or the ``indexer`` that selects among them.
        stride: tokens an entry; 1 when nothing is pooled; None when neither bias nor config tells.
        overlap: whether an entry pools the chunk before its own too.
        favour: shares by slot from the position bias, or None without one.
        gate_scale: root mean square of the gate's score for an input of unit scale, or None when it was
            not read. Compare with ``favour.bias_scale``: where the gate is far larger, content decides.
    """

    layer: int
    part: Part
    stride: int | None
    overlap: bool
    favour: Favour | None
    gate_scale: float | None = None


def read_compressors(source: Source, schedule: Schedule, *, gates: bool) -> tuple[LayerCompression, ...]:
    """Every compressor of a checkpoint, by layer, entries before the indexer.

    Args:
        source: the checkpoint.
        schedule: what its config says, for strides that no bias shows.
        gates: read the gates' weights too.

    Raises:
        InputError: for a checkpoint that is missing, broken, or disagrees with its config.
    """
    parts = _by_part(find_tensors(source, lambda key: _KEY.fullmatch(key) is not None))
    biases = read_tensors(source, (places["bias"] for places in parts.values() if "bias" in places))
    rows = []
    for (layer, part), places in sorted(parts.items()):
        width = schedule.width if part == "entries" else schedule.indexer_width
        overlap = _overlaps(places, width, f"The compressor of layer {layer} ({part}) of {source.name}")
        bias = places.get("bias")
        rows.append(
            LayerCompression(
                layer,
                part,
                stride=_stride(layer, bias, schedule, source.name),
                overlap=overlap,
                favour=None if bias is None else Favour.of(biases[bias.name], overlap=overlap),
                gate_scale=_gate_scale(source, places.get("gate")) if gates else None,
            )
        )
    return tuple(rows)


def _by_part(found: Mapping[str, TensorPlace]) -> dict[tuple[int, Part], dict[str, TensorPlace]]:
    """Tensors of each compressor by what they are: bias, kv, gate, norm."""
    parts: dict[tuple[int, Part], dict[str, TensorPlace]] = {}
    for key, place in found.items():
        match = _KEY.fullmatch(key)
        assert match is not None  # noqa: S101 - these names alone were asked for
        part: Part = "indexer" if "indexer" in match[2] else "entries"
        places = parts.setdefault((int(match[1]), part), {})
        role = _ROLES[match[3].removesuffix(".weight")]
        if role in places:
            raise InputError(
                f"{key} and {places[role].name} are the same tensor of one layer under two names: the "
                "checkpoint holds two models. Give the files of one."
            )
        places[role] = place
    return parts


def _overlaps(places: Mapping[str, TensorPlace], width: int | None, label: str) -> bool:
    """Whether a compressor makes two blocks of channels a token, one for the next chunk's entry."""
    norm = places.get("norm")
    if norm is not None and len(norm.shape) == 1:
        width = norm.shape[0]
    made = [p.shape[-1] for role, p in places.items() if role == "bias" and p.shape]
    made += [p.shape[0] for role, p in places.items() if role in {"kv", "gate"} and p.shape]
    if not width or not made or set(made) not in ({width}, {2 * width}):
        raise InputError(
            f"{label} has {made} channels for entries of {width}: one or two blocks of them are expected. "
            "Use the checkpoint as it was released, with its config.json."
        )
    return made[0] == 2 * width


def _stride(layer: int, bias: TensorPlace | None, schedule: Schedule, name: str) -> int | None:
    """The stride by the bias, which has one row a token of a chunk, or else by the config."""
    said = schedule.strides[layer] if layer < len(schedule.strides) else None
    shown = said if bias is None else bias.shape[0]
    if said is not None and (said != shown or not said):
        raise InputError(
            f"config.json of {name} gives layer {layer} stride {said}, its weights have a compressor"
            f"{'' if bias is None else f' of stride {shown}'}: they are not of the same model."
        )
    return shown


def _gate_scale(source: Source, gate: TensorPlace | None) -> float | None:
    """Root mean square of the score for an input of unit scale: of the norms of the gate's rows."""
    if gate is None or not is_plain(gate.dtype):
        return None
    weights = read_tensors(source, [gate])[gate.name]
    return float(np.sqrt(np.square(weights).sum(axis=-1).mean()))
