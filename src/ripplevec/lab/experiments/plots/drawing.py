"""From a plot of a study and its record to a picture: whole, panel by panel, or in a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ripplevec.io.atomic_file import atomic_write
from ripplevec.lab.experiments.plots import bars, growth, line_plot, shares, spread, sweep
from ripplevec.lab.experiments.plots.common import WIDTH, Panel
from ripplevec.lab.experiments.plots.figure import INK, style, svg
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import measured, picture
from ripplevec.lab.experiments.spec import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {
    "shares": shares.panels,
    "bars": bars.panels,
    "sweep": sweep.panels,
    "growth": growth.panels,
    "along": line_plot.panels,
    "spread": spread.panels,
}


def draw(study: Study, name: str, record: Record) -> Figure:
    """A whole picture, its panels in two columns."""
    panels = _panels(study, name, record)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    with style() as figure_of:
        figure = figure_of(WIDTH * columns, rows * max(panel.height for panel in panels) + 0.4)
        figure.suptitle(study.plots[name].title, fontsize=12, fontweight="bold")
        grid = figure.add_gridspec(rows, columns)
        for place, panel in enumerate(panels):
            panel.paint(figure.add_subplot(grid[place]))
    return figure


def draw_apart(study: Study, name: str, record: Record) -> list[Figure]:
    """The panels of a picture, each by itself and without the title."""
    figures = []
    with style() as figure_of:
        for panel in _panels(study, name, record):
            figure = figure_of(WIDTH, panel.height)
            panel.paint(figure.add_subplot())
            figures.append(figure)
    return figures


def save(study: Study, name: str, record: Record, results: Path) -> Path:
    """Write a picture where the report looks for it, under the folder of the results."""
    path = results / picture(study, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_text(svg(draw(study, name, record), path.stem), encoding="utf-8")
    return path


def _panels(study: Study, name: str, record: Record) -> list[Panel]:
    plot = study.plots[name]
    return KINDS[plot.kind](study, plot, measured(study, record)) or [Panel(_nothing, height=1.0)]


def _nothing(axes: Axes) -> None:
    axes.axis("off")
    axes.text(0.5, 0.5, "nothing measured yet", ha="center", va="center", color=INK)
