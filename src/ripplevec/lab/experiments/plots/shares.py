"""A line per setting over the train shares, a panel per data set, and a legend for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ripplevec.lab.experiments.plots.common import Panel, Point, draw_line, measured_lines, points_of, rows_of
from ripplevec.lab.experiments.plots.style import Look, looks_of
from ripplevec.lab.experiments.report import Cells, values_of
from ripplevec.lab.experiments.spec import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND_ROW = 0.175  # in inches


def panels(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """The legend, and the data sets of which something was measured."""
    rows, looks = rows_of(study, plot), looks_of(study.settings)
    lines = {
        dataset: measured_lines({row: over_shares(cells, plot.figure, row, dataset) for row in rows})
        for dataset in study.datasets
    }

    def paint(dataset: str, axes: Axes) -> None:
        for setting, points in lines[dataset].items():
            draw_line(axes, points, looks[setting].line(), 0.2 if looks[setting].ours else 0.12)
        axes.set(title=dataset, xlabel="train share (%)")

    drawn = [row for row in rows if any(row in of for of in lines.values())]
    if not drawn:
        return []
    legend = Panel(partial(_legend, drawn, looks), LEGEND_ROW * len(drawn) + 0.3)
    return [legend, *(Panel(partial(paint, dataset)) for dataset, of in lines.items() if of)]


def over_shares(cells: Cells, figure: str, setting: str, dataset: str) -> list[Point]:
    """A figure at every train share that is recorded; its name there is figure@per cent."""
    of_share = re.compile(re.escape(figure) + r"@(\d+)")
    names = {name for figures in cells.get((setting, dataset), ()) for name in figures}
    shares = sorted(int(found[1]) for name in names if (found := of_share.fullmatch(name)))
    return points_of((share, values_of(cells, f"{figure}@{share}", setting, dataset)) for share in shares)


def _legend(settings: Sequence[str], looks: dict[str, Look], axes: Axes) -> None:
    axes.axis("off")
    for setting in settings:
        axes.plot([], [], label=setting, **looks[setting].line())
    legend = axes.legend(loc="center", fontsize=9.5, handlelength=3.6, labelspacing=0.3)
    for text, setting in zip(legend.get_texts(), settings, strict=True):
        text.set_fontweight("bold" if looks[setting].ours else "normal")
