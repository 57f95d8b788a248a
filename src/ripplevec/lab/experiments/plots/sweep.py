"""A figure over the values of one parameter, a line per data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripplevec.lab.experiments.plots.common import (
    Panel,
    draw_line,
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

WIDE = 30.0  # numbers that differ by more than this factor stand on a logarithmic axis


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """One panel of all data sets; the settings of a sweep are named `x: value`."""
    group = f"{plot.x}: "
    names = [row.removeprefix(group) for row in rows_of(study, plot) if row.startswith(group)]
    places, scale = _places(names)
    rows = sorted(zip(places, names, strict=True))
    lines = measured_lines({
        dataset: points_of((x, values_of(cells, plot.figure, group + name, dataset)) for x, name in rows)
        for dataset in study.datasets
    })  # fmt: skip

    def paint(axes: Axes) -> None:
        for of, (dataset, points) in enumerate(lines.items()):
            draw_line(axes, points, {**plain_look(of), "label": dataset}, 0.12)
        if scale == "log":
            make_log(axes, "x")
        if plot.log:
            make_log(axes, "y")
        axes.set_xticks([x for x, _ in rows], [name for _, name in rows])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(plot.x)
        legend_below(axes)

    return [Panel(paint)] if lines else []


def _places(names: Sequence[str]) -> tuple[list[float], str]:
    """Where values stand on the axis and its scale: as numbers, if they are; side by side if not."""
    side_by_side = [float(place) for place in range(len(names))], "linear"
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return side_by_side
    sizes = [abs(number) for number in numbers if number]
    if not sizes or not all(map(math.isfinite, sizes)):
        return side_by_side
    if max(sizes) < WIDE * min(sizes):
        return numbers, "linear"
    return (numbers, "log") if min(numbers) > 0 else side_by_side
