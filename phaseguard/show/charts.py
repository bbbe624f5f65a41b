"""Small charts as SVG, for pages that need nothing from outside; every figure is text with a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 26, 34


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its interval.

    Attributes:
        label: below it.
        value: its height; ``low``, ``high``: the ends of its interval, equal to it where there is none.
        key: names the value in the data that the page carries.
        told: the value in words.
        marked: whether it is drawn as strong.
    """

    label: str
    value: float
    low: float
    high: float
    key: str
    told: str
    marked: bool = False


def bar_chart(bars: Sequence[Bar], *, title: str, top: float = 1.0, line: float | None = None) -> str:
    """Bars with intervals.

    Args:
        bars: from left to right, at least one.
        title: what a screen reader says.
        top: value at the upper end.
        line: value at which a dashed line is drawn.

    >>> '<rect class="bar strong"' in bar_chart([Bar("0", 0.5, 0.4, 0.6, "a", "0.500", True)], title="t")
    True
    """
    step = (_WIDTH - _LEFT - _RIGHT) / len(bars)
    return _figure(title, top, (*_bars(bars, step, top), *_line(line, top)))


def curve(points: Sequence[Bar], *, title: str) -> str:
    """Shares from left to right, joined by a line, with their intervals as a band.

    >>> 'class="band"' in curve([Bar(str(n), 0.5, 0.4, 0.6, "a", "0.500") for n in range(2)], title="t")
    True
    """
    step = (_WIDTH - _LEFT - _RIGHT) / len(points)
    places = [_LEFT + step * (number + 0.5) for number in range(len(points))]
    ends = [(x, _y(point.high, 1)) for x, point in zip(places, points, strict=True)]
    ends += [(x, _y(point.low, 1)) for x, point in zip(reversed(places), reversed(points), strict=True)]
    middle = [(x, _y(point.value, 1)) for x, point in zip(places, points, strict=True)]
    dots = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>{_value(x, y - 8, point)}{_label(x, point)}'
        for (x, y), point in zip(middle, points, strict=True)
    )
    return _figure(
        title,
        1.0,
        (f'<polygon class="band" points="{_path(ends)}"/>', f'<polyline points="{_path(middle)}"/>', *dots),
    )


def _figure(title: str, top: float, inside: Iterable[str]) -> str:
    ticks = "".join(
        f"{_across('grid', at, top)}"
        f'<text class="tick" x="{_LEFT - 6}" y="{_y(at, top) + 4:.1f}">{at:g}</text>'
        for at in (0, top / 2, top)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{ticks}{''.join(inside)}</svg>"
    )


def _bars(bars: Sequence[Bar], step: float, top: float) -> Iterable[str]:
    wide = min(48.0, step * 0.6)
    for number, bar in enumerate(bars):
        x, y = _LEFT + step * (number + 0.5), _y(bar.value, top)
        strong = " strong" if bar.marked else ""
        yield (
            f'<rect class="bar{strong}" x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" '
            f'height="{max(0.0, _y(0, top) - y):.1f}"/>'
        )
        if bar.high > bar.low:
            ends = f'y1="{_y(bar.low, top):.1f}" y2="{_y(bar.high, top):.1f}"'
            yield f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
        yield _value(x, _y(bar.high, top) - 6, bar) + _label(x, bar)


def _line(at: float | None, top: float) -> Iterable[str]:
    if at is not None:
        yield _across("level", at, top)


def _across(kind: str, at: float, top: float) -> str:
    y = _y(at, top)
    return f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _value(x: float, y: float, bar: Bar) -> str:
    return (
        f'<text class="value" data-key="{escape(bar.key)}" x="{x:.1f}" y="{y:.1f}">{escape(bar.told)}</text>'
    )


def _label(x: float, bar: Bar) -> str:
    return f'<text class="label" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}">{escape(bar.label)}</text>'


def _y(value: float, top: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(max(value, 0.0), top) / top)


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
