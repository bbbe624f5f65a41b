"""A calibration as one page without external resources: verdict, charts, controls, cost, what to do next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from phaseguard.show.calibration import named_by
from phaseguard.show.calibration_figure import decades, strong_of
from phaseguard.show.charts import Bar, bar_chart, curve

_PAGE = Path(__file__).with_name("calibration.html")
_CONTROLS = {
    "inside": "record inside the raw window: should show nothing",
    "behind": "pads behind the record: should show nothing",
    "filler": "decoration in place of pads: should show the same as the records",
}
_ANCHORS = {
    "key": "the key",
    "answer": "the answer",
    "unknown": "the answer (or of the key: they were not told apart)",
}
_MOST_DECADES = 4.0  # decades of p-values that the scan shows


def render_calibration_page(found: Mapping[str, Any]) -> str:
    """The page. Figures carry their place in the data as ``data-key``, and the data is in the page.

    Args:
        found: what ``phaseguard.calibrate.Calibration.to_dict`` gives.
    """
    judgement, endpoint = found["judgement"], found["endpoint"]
    title = f"Calibration of {endpoint['model']}"
    return Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        facts=escape(_facts(found)),
        mood=judgement["verdict"].split()[0],
        verdict=escape(judgement["verdict"]),
        reason=escape(judgement["reason"]),
        next="".join(f"<p>{line}</p>" for line in _next(found)),
        sections="".join(_sections(found)),
        # markup in a text must not end the script element early
        data=json.dumps(found, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _facts(found: Mapping[str, Any]) -> str:
    endpoint, profile = found["endpoint"], found["profile"]
    date = f", {profile['provenance']['date']}" if profile else ""
    return f"provider {endpoint['provider']}, reasoning {endpoint['reasoning']}{date}"


def _next(found: Mapping[str, Any]) -> Iterator[str]:
    judgement = found["judgement"]
    if judgement["verdict"] == "undecided":
        yield "No profile was written. Ask more items, or take a context in which half to 90% are right."
        return
    where = f" It is saved in <code>{escape(found['path'])}</code>." if found["path"] else ""
    if judgement["verdict"] == "no effect":
        yield f"There is nothing to align for.{where} With it prompts are normalized and left alone."
        return
    yield f"Align with the profile that was measured.{where}"
    name = named_by(found)
    yield f"<code>{escape(f'align_prompt(messages, key_passages=[...], profile={name!r})')}</code>"
    yield (
        "After an update of the model, with the options that say who is asked: "
        f"<code>{escape(f'phaseguard calibrate --revalidate {shlex.quote(name)}')}</code>"
    )


def _sections(found: Mapping[str, Any]) -> Iterator[str]:
    judgement, strong = found["judgement"], strong_of(found)
    of = {"key": "the key", "answer": "the answer"}.get(
        judgement["anchor"], "the answer (or the key: not told apart)"
    )
    if judgement["verdict"] == "effect":
        yield f"<h2>Accuracy by phase of {of}</h2>"
        yield bar_chart(_shares(judgement["phases"], "judgement.phases", strong), title="accuracy by phase")
        gap = " to ".join(_number(judgement[key], f"judgement.{key}", 1) for key in ("gap_low", "gap_high"))
        largest = _number(judgement["gap"], "judgement.gap", 1)
        yield f"<p>Largest gap: {largest} points, 95% interval {gap}.</p>"
    for shape, row in found["strengths"].items():
        yield f"<h2>Strengths for answers of {escape(shape)} token(s), with the pads that aligning adds</h2>"
        yield bar_chart(
            _shares(row, f"strengths.{shape}", set(found["strong"])), title=f"strengths, {shape} tokens"
        )
    yield "<h2>Which period</h2>"
    yield _scan(judgement)
    yield "<h2>Accuracy by depth</h2>" + curve(
        _shares(found["depths"], "depths", set()), title="accuracy by depth"
    )
    if found["controls"]:
        yield "<h2>Controls</h2>" + _table(("probe", "verdict", "why"), _controls(found["controls"]))
    yield "<h2>What it took</h2>" + _table(("", ""), _spent(found))
    if found["notes"]:
        yield "<h2>Notes</h2><ul>" + "".join(f"<li>{escape(n)}</li>" for n in found["notes"] if n) + "</ul>"


def _shares(rows: Sequence[Mapping[str, Any]], key: str, strong: set[int]) -> list[Bar]:
    return [
        Bar(
            str(n), one["mean"], one["low"], one["high"], f"{key}.{n}.mean", f"{one['mean']:.3f}", n in strong
        )
        for n, one in enumerate(rows)
        if one["n"]  # a slice of the context in which no record stood has no accuracy
    ]


def _scan(judgement: Mapping[str, Any]) -> str:
    """Corrected p-values in decades: the higher, the less likely by chance."""
    tests = judgement["scan"]["tests"]
    bars = []
    for number, test in enumerate(tests):
        height = _height(test["p_corrected"])
        key, told = f"judgement.scan.tests.{number}.p_corrected", f"{test['p_corrected']:.2g}"
        bars.append(
            Bar(str(test["period"]), height, height, height, key, told, test["period"] == judgement["period"])
        )
    chart = bar_chart(
        bars, title="p-value by period, in decades", top=_MOST_DECADES, line=_height(judgement["level"])
    )
    level = _number(judgement["level"], "judgement.level", 4)
    return chart + (
        f"<p>p-values corrected for all periods tried, by candidate period; height in decades, dashed: the "
        f"level {level} of this look.</p>"
    )


def _height(p: float) -> float:
    return min(_MOST_DECADES, decades(p))


def _controls(controls: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for probe, found in controls.items():
        verdict = f'<span data-key="controls.{escape(probe)}.verdict">{escape(found["verdict"])}</span>'
        yield escape(_CONTROLS.get(probe, probe)), verdict, escape(found["reason"])


def _spent(found: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    spent, plan = found["spent"], found["plan"]
    yield (
        "calls",
        f"{_number(spent['calls'], 'spent.calls', 0)} of {_number(plan['calls'], 'plan.calls', 0)} planned",
    )
    yield "prompt tokens", _number(spent["prompt_tokens"], "spent.prompt_tokens", 0)
    yield "of these from a cache", _number(spent["cached_tokens"], "spent.cached_tokens", 0)
    yield "answer tokens", _number(spent["answer_tokens"], "spent.answer_tokens", 0)
    if spent["cost"] is not None:
        yield "dollars", _number(spent["cost"], "spent.cost", 4)
    yield "seconds a call", _number(spent["seconds"], "spent.seconds", 3)


def _number(value: float, key: str, digits: int) -> str:
    return f'<span data-key="{key}">{value:.{digits}f}</span>'


def _table(titles: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
