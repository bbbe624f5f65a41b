"""What ``phaseguard lab reproduce`` found, as one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phaseguard.show.figure import check_figure, write_figure
from phaseguard.show.periods import kernel_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Dict = Mapping[str, Any]
_COLUMNS = 3


def save_periods(found: Dict, path: str) -> None:
    """Draw accuracy by phase of every kind of model, with all seeds; then filler, grid cycling and lengths.

    Args:
        found: as for :func:`phaseguard.show.periods.render_periods`.
        path: where to; its ending says which format.

    Raises:
        MissingExtraError: without matplotlib.
        InputError: when the file cannot be written.
    """
    check_figure(path)
    from matplotlib.figure import Figure  # noqa: PLC0415

    kinds = _kinds(found["studies"])
    leads = [studies[0] for studies in kinds.values()]
    panels = len(kinds) + 3
    rows = -(-panels // _COLUMNS)
    figure = Figure(figsize=(5 * _COLUMNS, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for panel, (name, studies) in zip(axes, kinds.items(), strict=False):
        _draw_phases(panel, name, studies)
    for panel, draw in zip(axes[len(kinds) :], (_draw_filler, _draw_grid, _draw_lengths), strict=False):
        draw(panel, leads)
    for panel in axes[panels:]:
        panel.set_visible(False)
    write_figure(figure, path)


def _kinds(studies: Sequence[Dict]) -> dict[str, list[Dict]]:
    kinds: dict[str, list[Dict]] = {}
    for study in studies:
        kinds.setdefault(kernel_name(study["spec"]), []).append(study)
    return kinds


def _draw_phases(panel: Axes, name: str, studies: Sequence[Dict]) -> None:
    for study in studies:
        for row, style in ((study["rows"][0], "o-"), (_at(study, 4), "s--")):
            _errors(panel, row["phases"], style, f"{study['model']}, {row['factor']}x")
    panel.set(title=name, xlabel="phase of the answer's first token", ylabel="accuracy", ylim=(0, 1.05))
    panel.set_xticks(range(len(studies[0]["rows"][0]["phases"])))
    panel.legend(fontsize=6, ncols=2)


def _at(study: Dict, factor: int) -> Dict:
    found: Dict = next(row for row in study["rows"] if row["factor"] == factor)
    return found


def _errors(panel: Axes, shares: Sequence[Dict], style: str, label: str) -> None:
    means = [share["mean"] for share in shares]
    below = [share["mean"] - share["low"] for share in shares]
    above = [share["high"] - share["mean"] for share in shares]
    panel.errorbar(range(len(means)), means, yerr=[below, above], fmt=style, ms=3, capsize=2, label=label)


def _draw_filler(panel: Axes, leads: Sequence[Dict]) -> None:
    for study in leads:
        if study["filler"] is not None:
            _errors(panel, study["filler"]["by_filler"], "o-", study["model"])
    panel.set(title="the same text behind filler", xlabel="filler tokens in front", ylim=(0, 1.05))
    panel.legend(fontsize=6, ncols=2)


def _draw_grid(panel: Axes, leads: Sequence[Dict]) -> None:
    for study in leads:
        for cycling in study["cycling"]:
            moves = [move for move in cycling["moves"] if move["correlation"]]  # a flat profile is like none
            if cycling["part"] == "grid" and moves:
                panel.plot(
                    [move["by"] for move in moves],
                    [move["shift"] for move in moves],
                    "o-",
                    ms=4,
                    alpha=0.6,
                    label=study["model"],
                )
    panel.set(title="gate cycling", xlabel="chunks start d tokens later", ylabel="the profile moves by")
    panel.locator_params(integer=True)
    if panel.lines:
        panel.legend(fontsize=6, ncols=2)


def _draw_lengths(panel: Axes, leads: Sequence[Dict]) -> None:
    for study in leads:
        factors = [row["factor"] for row in study["rows"]]
        panel.plot(factors, [row["gap"] for row in study["rows"]], "o-", ms=4, label=study["model"])
    panel.set(title="gap by length", xlabel="multiple of the training length", ylabel="points")
    panel.legend(fontsize=6, ncols=2)
