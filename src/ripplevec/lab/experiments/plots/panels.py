"""Building blocks of plots: panels, means over seeds, lines, legends and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ripplevec.lab.experiments.study import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 4.6, 3.7  # of a panel, in inches; about the size of a phone screen


class Panel(NamedTuple):
    """A part of a picture: a function that paints it, and its height in inches."""

    paint: Callable[[Axes], object]
    height: float = HEIGHT


class Point(NamedTuple):
    """A mean over seeds, and its standard deviation."""

    x: float
    mean: float
    deviation: float


def plotted_settings(study: Study, plot: Plot) -> list[str]:
    """Return the settings that a plot shows, in the order of the study."""
    return [setting for setting in study.settings if not plot.settings or setting in plot.settings]


def summarize_points(samples: Iterable[tuple[float, list[float]]]) -> list[Point]:
    """Return mean and standard deviation at every x that has finite values."""
    points = []
    for x, values in samples:
        if finite := [value for value in values if math.isfinite(value)]:
            points.append(Point(float(x), fmean(finite), stdev(finite) if len(finite) > 1 else 0.0))
    return points


def drop_empty_lines(lines: dict[str, list[Point]]) -> dict[str, list[Point]]:
    """Return the lines that have at least one point."""
    return {name: points for name, points in lines.items() if points}


def draw_line(axes: Axes, points: list[Point], arguments: dict[str, Any], band_opacity: float) -> None:
    """Draw a line through the means, and a band of the standard deviations around it."""
    x, mean, deviation = np.array(points).T
    axes.plot(x, mean, **arguments)
    if deviation.any():
        color = arguments["color"]
        axes.fill_between(x, mean - deviation, mean + deviation, color=color, alpha=band_opacity, linewidth=0)


def place_legend_below(axes: Axes, columns: int = 3) -> None:
    """Place the legend under the x-axis."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def set_log_scale(axes: Axes, axis: str) -> None:
    """Make an axis logarithmic with plain numbers, because powers of ten would need extra glyphs."""
    from matplotlib.ticker import NullFormatter

    axes.set(**{f"{axis}scale": "log"})
    target = axes.xaxis if axis == "x" else axes.yaxis
    target.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    target.set_minor_formatter(NullFormatter())
