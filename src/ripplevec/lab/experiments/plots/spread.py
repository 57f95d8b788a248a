"""How values are spread: how many per cent of them are below each, a panel per data set.

The figures are quantiles: their names end in @ and the per cent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripplevec.lab.experiments.plots.common import Panel, make_log
from ripplevec.lab.experiments.plots.line_plot import Lines, with_legend
from ripplevec.lab.experiments.plots.style import plain_look
from ripplevec.lab.experiments.report import Cells
from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """The legend, and the data sets of which something was measured."""
    return with_legend(study, plot, cells, _paint)


def _paint(plot: Plot, dataset: str, lines: Lines, places: dict[str, int], axes: Axes) -> None:
    for label, points in lines.items():
        shown = [point for point in points if point.mean > 0 or not plot.log]
        axes.plot([point.mean for point in shown], [point.x for point in shown], **plain_look(places[label]))
    if plot.log:
        make_log(axes, "x")
    axes.set(title=dataset, xlabel=plot.x, ylabel="% of them below")
