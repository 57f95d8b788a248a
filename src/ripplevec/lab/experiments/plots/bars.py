"""A bar per setting, or per figure of one setting; a panel per data set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ripplevec.lab.experiments.plots.common import Panel, make_log, points_of, rows_of
from ripplevec.lab.experiments.plots.figure import INK
from ripplevec.lab.experiments.plots.style import Look, looks_of
from ripplevec.lab.experiments.report import Cells, decimals, values_of
from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR, AROUND_BARS = 0.19, 0.75  # in inches


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """A panel per data set; where a plot has several figures, they are those of its one setting."""
    rows = rows_of(study, plot)
    of = {label: (rows[0], figure) for figure, label in plot.figures.items()} or {
        row: (row, plot.figure) for row in rows
    }
    looks = looks_of(plot.figures.values() or study.settings)
    found = []
    for dataset in study.datasets:
        bars = {
            label: point.mean
            for label, (row, figure) in of.items()
            for point in points_of([(0.0, values_of(cells, figure, row, dataset))])
            if point.mean > 0 or not plot.log
        }
        if bars:
            paint = partial(_paint, dataset, bars, looks, plot.log)
            found.append(Panel(paint, BAR * len(bars) + AROUND_BARS))
    return found


def _paint(title: str, bars: dict[str, float], looks: dict[str, Look], log: bool, axes: Axes) -> None:
    longest, shortest = max(bars.values()), min(bars.values())
    for place, (row, mean) in enumerate(bars.items()):
        look = looks[row]
        axes.barh(place, mean, height=0.72, color=look.color, alpha=1.0 if look.dashes == "-" else 0.55)
        end: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"{mean:,.{decimals(mean)}f}", (max(mean, 0), place), fontsize=8, color=INK, **end)
    axes.set_yticks(range(len(bars)), list(bars), fontsize=8)
    for label, row in zip(axes.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if looks[row].ours else "normal")
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_title(title)
    if log:
        make_log(axes, "x")
        room = (longest / shortest) ** 0.3  # for the value of the longest bar
        axes.set_xlim(shortest / 2, max(10 * shortest, longest * max(2.0, room)))
    else:
        axes.set_xlim(min(shortest, 0), 1.25 * max(longest, 0) or 1)
