"""Plots as SVG, drawn here: a page that needs nothing else can be sent to anybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import Final

_WIDTH: Final = 860
_HEIGHT: Final = 220
_LEFT: Final = 56
_BOTTOM: Final = 26
_TOP: Final = 10
_COLORS: Final = ("#1f6feb", "#d1580b", "#2da44e", "#8250df", "#6e7781")
# Steps between ticks that a person counts in, and at most so many of them.
_STEPS: Final = (1, 2, 3, 4, 5, 6, 8, 10)
_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Series:
    """One line: points by x."""

    name: str
    points: Sequence[tuple[float, float]]


def line_plot(series: Sequence[Series], x_unit: str) -> str:
    """Lines over one axis; the vertical one begins at nothing, so that small differences look small."""
    xs = [x for one in series for x, _ in one.points] or [0.0]
    ys = [y for one in series for _, y in one.points] or [0.0]
    x_most, y_most = max(*xs, 1e-9), max(*ys, 1e-9) * 1.05

    def point(x: float, y: float) -> str:
        across = _LEFT + x / x_most * (_WIDTH - _LEFT - 10)
        down = _HEIGHT - _BOTTOM - y / y_most * (_HEIGHT - _BOTTOM - _TOP)
        return f"{across:.1f},{down:.1f}"

    parts = [_axis(x_most, y_most, x_unit)]
    for index, one in enumerate(series):
        points = " ".join(point(x, y) for x, y in one.points)
        color = _COLORS[index % len(_COLORS)]
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{points}"/>')
    return _drawing("".join(parts)) + _legend([one.name for one in series])


def bar_plot(rows: Sequence[tuple[str, float]]) -> str:
    """One bar for each row, the longest as long as the page."""
    most = max((value for _, value in rows), default=0.0) or 1.0
    bars = "".join(
        f'<text x="0" y="{24 * index + 16}">{escape(name)}</text>'
        f'<rect x="260" y="{24 * index + 4}" width="{value / most * 440:.1f}" height="16" fill="{_COLORS[0]}"/>'
        f'<text x="{268 + value / most * 440:.1f}" y="{24 * index + 16}">{value:,.0f}</text>'
        for index, (name, value) in enumerate(rows)
    )
    height = 24 * max(1, len(rows)) + 6
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{bars}</svg>'


def _axis(x_most: float, y_most: float, x_unit: str) -> str:
    parts: list[str] = []
    for value in _ticks(y_most):
        down = _HEIGHT - _BOTTOM - value / y_most * (_HEIGHT - _BOTTOM - _TOP)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{down:.1f}" y2="{down:.1f}" class="grid"/>'
            f'<text x="{_LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{value:,g}</text>'
        )
    for value in _ticks(x_most):
        across = _LEFT + value / x_most * (_WIDTH - _LEFT - 10)
        parts.append(
            f'<text x="{across:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{value:,g} {x_unit}</text>'
        )
    return "".join(parts)


def _ticks(most: float) -> list[float]:
    """Round values from nothing up to `most`."""
    size = 10.0 ** floor(log10(most / _TICKS))
    step = size * next(one for one in _STEPS if one * size * _TICKS >= most)
    return [step * number for number in range(int(most / step) + 1)]


def _drawing(inside: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{inside}</svg>'


def _legend(names: Sequence[str]) -> str:
    keys = "".join(
        f'<span><i style="background:{_COLORS[index % len(_COLORS)]}"></i>{escape(name)}</span>'
        for index, name in enumerate(names)
    )
    return f'<p class="legend">{keys}</p>'
