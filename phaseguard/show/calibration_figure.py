"""A calibration as a figure: accuracy by phase, and the scan of periods."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10
from typing import Any

from phaseguard.show.figure import check_figure, write_figure


def save_calibration(found: Mapping[str, Any], path: str) -> None:
    """Write the figure.

    Args:
        found: what ``phaseguard.calibrate.Calibration.to_dict`` gives.
        path: where to; its ending says which format (.png, .svg, .pdf).

    Raises:
        MissingExtraError: without matplotlib.
        InputError: when the file cannot be written, or its ending is not known.
    """
    check_figure(path)
    from matplotlib.figure import Figure  # noqa: PLC0415

    judgement, endpoint = found["judgement"], found["endpoint"]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    phases, periods = figure.subplots(1, 2)
    means = [one["mean"] for one in judgement["phases"]]
    ends = [
        [one["mean"] - one["low"] for one in judgement["phases"]],
        [one["high"] - one["mean"] for one in judgement["phases"]],
    ]
    strong = strong_of(found)
    colours = ["C2" if phase in strong else "C0" for phase in range(len(means))]
    phases.bar(range(len(means)), means, yerr=ends, color=colours, capsize=4)
    phases.set(xlabel="phase", ylabel="accuracy [95% interval]", ylim=(0, 1), xticks=range(len(means)))
    tests = judgement["scan"]["tests"]
    labels = [str(test["period"]) for test in tests]
    periods.bar(labels, [decades(test["p_corrected"]) for test in tests], color="C0")
    periods.axhline(decades(judgement["level"]), color="C3", linestyle="--")
    periods.set(xlabel="candidate period", ylabel="-log10 of the corrected p-value")
    figure.suptitle(f"{endpoint['model']} at {endpoint['provider']}: {judgement['verdict']}")
    write_figure(figure, path)


def strong_of(found: Mapping[str, Any]) -> set[int]:
    """The phases to mark: the answer's are called strong by right answers alone, as in the profile."""
    judgement = found["judgement"]
    return set(judgement["strong"] if judgement["anchor"] == "key" else found["strong"])


def decades(p: float) -> float:
    """How unlikely a p-value is: tens that it is below 1.

    >>> decades(0.001)
    3.0
    """
    return -log10(max(p, 1e-12))
