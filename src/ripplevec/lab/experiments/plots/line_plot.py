"""Figures along a stream, a panel per data set; their names end in @ and the share of the vertices there by then."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ripplevec.lab.experiments.plots.common import Panel, Point, draw_line, make_log, measured_lines, rows_of
from ripplevec.lab.experiments.plots.shares import LEGEND_ROW, over_shares
from ripplevec.lab.experiments.plots.style import plain_look
from ripplevec.lab.experiments.report import Cells
from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Lines = dict[str, list[Point]]
Paint = Callable[[Plot, str, Lines, dict[str, int], "Axes"], object]
"""How a panel is painted: for a data set, its lines and the place of every line in the legend."""


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """The legend, and the data sets of which something was measured."""
    return with_legend(study, plot, cells, _paint)


def with_legend(study: Study, plot: Plot, cells: Cells, paint: Paint) -> list[Panel]:
    """A panel per data set, painted from its lines, behind a legend for all: a line per setting and figure."""
    names = _named(study, plot)
    lines = {
        dataset: measured_lines({
            label: over_shares(cells, figure, setting, dataset) for label, (setting, figure) in names.items()
        })
        for dataset in study.datasets
    }  # fmt: skip
    drawn = [label for label in names if any(label in of for of in lines.values())]
    if not drawn:
        return []
    places = {label: place for place, label in enumerate(names)}
    legend = Panel(partial(_legend, {label: places[label] for label in drawn}), LEGEND_ROW * len(drawn) + 0.3)
    return [legend, *(Panel(partial(paint, plot, dataset, of, places)) for dataset, of in lines.items() if of)]


def _named(study: Study, plot: Plot) -> dict[str, tuple[str, str]]:
    """Setting and figure of every line, by what tells it from the others: the one, the other, or both."""
    rows, figures = rows_of(study, plot), plot.figures or {plot.figure: ""}
    if len(rows) == 1:
        return {label or rows[0]: (rows[0], figure) for figure, label in figures.items()}
    return {f"{row}: {label}" if label else row: (row, figure) for row in rows for figure, label in figures.items()}


def _paint(plot: Plot, dataset: str, lines: Lines, places: dict[str, int], axes: Axes) -> None:
    for label, points in lines.items():
        shown = [point._replace(deviation=0.0) for point in points] if plot.log else points  # a band may go below zero
        draw_line(axes, shown, plain_look(places[label]), 0.12)
    positive = [point.mean for points in lines.values() for point in points if point.mean > 0]
    if plot.log and positive:
        make_log(axes, "y")
        axes.set_ylim(*_decades(positive))
    axes.set(title=dataset, xlabel="vertices that are there (% of all)")


def _decades(values: list[float]) -> tuple[float, float]:
    """Whole ones around the values, as only they are numbered on a logarithmic axis."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def _legend(places: dict[str, int], axes: Axes) -> None:
    axes.axis("off")
    for label, place in places.items():
        axes.plot([], [], label=label, **plain_look(place))
    axes.legend(loc="center", fontsize=9.5, handlelength=3.6, labelspacing=0.3)
