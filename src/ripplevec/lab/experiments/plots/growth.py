"""Figures over the size of the graph, both logarithmic, with the exponents that fit them best."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ripplevec.lab.experiments.plots.common import (
    HEIGHT,
    Panel,
    Point,
    legend_below,
    make_log,
    measured_lines,
    points_of,
    rows_of,
)
from ripplevec.lab.experiments.plots.style import plain_look
from ripplevec.lab.experiments.report import Cells, values_of
from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = re.compile(r"\d[\d,]*")


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """A panel per data set; the size is the first number in the name of a setting."""
    sizes = {row: float(digits[0].replace(",", "")) for row in rows_of(study, plot) if (digits := SIZE.search(row))}
    found = []
    for dataset in study.datasets:
        lines = measured_lines({
            label: _positive(points_of((size, values_of(cells, figure, row, dataset)) for row, size in sizes.items()))
            for figure, label in plot.figures.items()
        })  # fmt: skip
        if lines:
            title = dataset if len(study.datasets) > 1 else ""
            found.append(Panel(partial(_paint, title, lines), HEIGHT + 0.2 * len(lines)))
    return found


def _positive(points: list[Point]) -> list[Point]:
    return [point for point in points if point.x > 0 and point.mean > 0]


def _paint(title: str, lines: dict[str, list[Point]], axes: Axes) -> None:
    for of, (label, points) in enumerate(lines.items()):
        x, y = np.array([(point.x, point.mean) for point in sorted(points)]).T
        look = plain_look(of)
        if len(set(x)) > 1:
            slope, height = np.polyfit(np.log(x), np.log(y), 1)
            axes.plot(x, np.exp(height) * x**slope, color=look["color"], linestyle=":", linewidth=1)
            label = f"{label}: n^{slope:.2f}"
        axes.plot(x, y, **look, label=label)
    everything = [point for points in lines.values() for point in points]
    for axis, values in (("x", [point.x for point in everything]), ("y", [point.mean for point in everything])):
        make_log(axes, axis)
        decades = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        axes.set(**{f"{axis}lim": (0.7 * 10.0 ** decades[0], 1.4 * 10.0 ** decades[1])})
    axes.set(title=title, xlabel="vertices")
    legend_below(axes, columns=1)
