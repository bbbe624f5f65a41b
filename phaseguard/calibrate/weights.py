"""Compression that a checkpoint's weights show: stride, overlap, schedule, and which slots the bias favours.

A hypothesis about phases, never a profile of strengths: the position bias alone does not tell which phases
are strong. It named the best slot of on-device models without overlap whose answers are one token, and named
the wrong one for overlapping entries, for stride 2 and for longer answers; models that pool by the mean have
no bias at all, and a gap of 31 points between phases.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from phaseguard.calibrate.compressors import LayerCompression, read_compressors
from phaseguard.calibrate.schedule import Schedule
from phaseguard.calibrate.sources import find_source
from phaseguard.calibrate.tensors import parse_object
from phaseguard.errors import ProfileError
from phaseguard.profiles import PhaseProfile

HYPOTHESIS = (
    "A hypothesis only: which slots the bias favours does not tell which phases answers are strong at. "
    "Measure them on the deployment."
)
NOTHING = (
    "No chunked compression found: no layer has a compressor under the names of DeepSeek V4 or V4.1. "
    "Pooling without weights of its own, such as a mean, cannot be seen in a checkpoint."
)


@dataclass(frozen=True, slots=True)
class WeightsReport:
    """What a checkpoint says of its compression.

    Attributes:
        source: the path or repository.
        layers: every compressor, by layer. A layer may read the entries of one before it (V4.1), so there
            may be fewer than the schedule has layers with a stride.
        schedule: what config.json says; empty without one.
        model: the model's id on a hub, or None when it was read from files.
    """

    source: str
    layers: tuple[LayerCompression, ...]
    schedule: Schedule
    model: str | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the entries in ascending order, those that pool nothing only if there are no others."""
        known = {row.stride for row in self.layers if row.part == "entries" and row.stride is not None}
        return tuple(sorted(known - {1} or known))

    @property
    def overlap(self) -> bool | None:
        """Whether entries of the smallest stride overlap; None when layers differ or there are none."""
        found = {row.overlap for row in self.layers if self.strides and row.stride == self.strides[0]}
        return found.pop() if len(found) == 1 else None

    @property
    def statement(self) -> str:
        """What this can and cannot say."""
        return HYPOTHESIS if self.layers else NOTHING

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values for JSON, with the statement of what it means."""
        rows = []
        for row in self.layers:
            entry = asdict(row)
            if row.favour is not None:
                entry["favour"] |= {
                    "phases": row.favour.phases,
                    "spread": row.favour.spread,
                    "favoured": row.favour.favoured,
                }
            rows.append(entry)
        return {
            "source": self.source,
            "statement": self.statement,
            "strides": self.strides,
            "overlap": self.overlap,
            "window": self.schedule.window,
            "schedule": self.schedule.strides,
            "layers": rows,
        }

    def to_profile(
        self,
        name: str,
        *,
        tokenizer: str | None = None,
        chat: str | None = None,
        model: str | None = None,
        date: str | None = None,
        command: str | None = None,
    ) -> PhaseProfile:
        """A profile with strides, overlap, period and window; strengths stay unknown.

        Args:
            name: the profile's name.
            tokenizer: a name that ``load_tokenizer`` knows; weights do not tell it.
            chat: a name that ``load_renderer`` knows; ``plain`` for a base model.
            model: the model's id; by default the repository, if it was read from a hub.
            date: ISO date of reading.
            command: what repeats it.

        Raises:
            ProfileError: without tokenizer or chat, without compressors, or when no stride is known.

        >>> row = LayerCompression(0, "entries", 4, True, None)
        >>> report = WeightsReport("x/y", (row,), Schedule(window=128))
        >>> profile = report.to_profile("mine", tokenizer="deepseek-v4", chat="plain")
        >>> profile.period, profile.overlap, profile.window, profile.strengths
        (4, True, 128, None)
        """
        if tokenizer is None or chat is None:
            missing = " and ".join(
                what for what, given in (("tokenizer", tokenizer), ("chat", chat)) if given is None
            )
            raise ProfileError(
                f"Weights do not tell the {missing} of a profile: give both, such as "
                "tokenizer='deepseek-v4' and chat='deepseek-v4' ('plain' for a base model)."
            )
        if not self.layers:
            raise ProfileError(f"{self.source} gives no profile. {NOTHING}")
        if not self.strides:
            raise ProfileError(
                f"{self.source} has compressors without a position bias, and no config.json that says their "
                "stride: put the model's config.json beside its weights."
            )
        return PhaseProfile(
            name=name,
            model=model or self.model,
            tokenizer=tokenizer,
            chat=chat,
            strides=self.strides,
            overlap=self.overlap,
            period=self.strides[0],
            window=self.schedule.window,
            provenance={"kind": "weights", "source": self.source, "date": date, "command": command},
        )


def read_weights(
    path_or_repo: str | os.PathLike[str],
    *,
    gates: bool = False,
    revision: str = "main",
    hub_url: str | None = None,
) -> WeightsReport:
    """Read what a checkpoint's compressors show; only their tensors are read, by byte range.

    Args:
        path_or_repo: a folder with ``model.safetensors.index.json`` or ``model.safetensors``, one
            .safetensors file, or a repository ``owner/name`` on a hub (``HF_TOKEN`` of the environment is
            sent to it, and to no other host).
        gates: read the gates' weights too, a few megabytes a layer, for ``gate_scale``.
        revision: branch, tag or commit of a repository.
        hub_url: the hub; by default ``HF_ENDPOINT`` of the environment, or huggingface.co.

    Raises:
        InputError: when there is no checkpoint, a file is missing, broken or truncated, values are not
            finite, config and weights disagree, or a hub cannot be reached, refuses or ignores ranges.
    """
    source = find_source(path_or_repo, revision=revision, hub_url=hub_url)
    config = source.text("config.json")
    schedule = Schedule() if config is None else _schedule(config, source.name)
    rows = read_compressors(source, schedule, gates=gates)
    return WeightsReport(source.name, rows, schedule, source.model)


def _schedule(config: bytes, name: str) -> Schedule:
    return Schedule.of(parse_object(config, f"config.json of {name}"))
