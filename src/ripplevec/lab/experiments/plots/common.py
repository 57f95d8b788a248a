"""What the kinds of plots have in common: panels, means over seeds, lines, legends and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 4.6, 3.7  # of a panel, in inches: a phone held upright shows it at about its own size


class Panel(NamedTuple):
    """A part of a picture: how to draw it, and its height in inches."""

    paint: Callable[[Axes], object]
    height: float = HEIGHT


class Point(NamedTuple):
    """A mean over seeds, and how far they are from it."""

    x: float
    mean: float
    deviation: float


def rows_of(study: Study, plot: Plot) -> list[str]:
    """The settings that a plot shows, in the order of the study."""
    return [setting for setting in study.settings if not plot.settings or setting in plot.settings]


def points_of(of: Iterable[tuple[float, list[float]]]) -> list[Point]:
    """Mean and deviation at every place that has values."""
    points = []
    for x, values in of:
        if finite := [value for value in values if math.isfinite(value)]:
            points.append(Point(float(x), fmean(finite), stdev(finite) if len(finite) > 1 else 0.0))
    return points


def measured_lines(lines: dict[str, list[Point]]) -> dict[str, list[Point]]:
    """The lines that have a point."""
    return {name: points for name, points in lines.items() if points}


def draw_line(axes: Axes, points: list[Point], look: dict[str, Any], shade: float) -> None:
    """The means, with a band of the deviations around them."""
    x, mean, deviation = np.array(points).T
    axes.plot(x, mean, **look)
    if deviation.any():
        axes.fill_between(x, mean - deviation, mean + deviation, color=look["color"], alpha=shade, linewidth=0)


def legend_below(axes: Axes, columns: int = 3) -> None:
    """The names of the lines, under the axis."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def make_log(axes: Axes, axis: str) -> None:
    """A logarithmic axis whose numbers are written out: powers of ten would need glyphs of their own."""
    from matplotlib.ticker import NullFormatter

    axes.set(**{f"{axis}scale": "log"})
    of = axes.xaxis if axis == "x" else axes.yaxis
    of.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    of.set_minor_formatter(NullFormatter())
