"""Draw the plots of a study from its record: as a whole picture, panel by panel, or into a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ripplevec.lab.experiments.plots import charts
from ripplevec.lab.experiments.plots.style import INK, WIDTH, Panel, figure_style, render_svg
from ripplevec.lab.experiments.record import Record
from ripplevec.lab.experiments.report import collect_results, picture_path
from ripplevec.lab.experiments.study import Study
from ripplevec.util.checked_directory import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHARTS = {
    "shares": charts.shares_chart,
    "bars": charts.bars_chart,
    "sweep": charts.sweep_chart,
    "growth": charts.growth_chart,
    "along": charts.along_chart,
    "spread": charts.spread_chart,
}
"""Chart functions by the `kind` of a plot."""


def draw_plot(study: Study, name: str, record: Record) -> Figure:
    """Draw a whole picture, with its panels in two columns."""
    panels = _build_panels(study, name, record)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    with figure_style() as create_figure:
        figure = create_figure(WIDTH * columns, rows * max(panel.height for panel in panels) + 0.4)
        figure.suptitle(study.plots[name].title, fontsize=12, fontweight="bold", wrap=True)
        grid = figure.add_gridspec(rows, columns)
        for position, panel in enumerate(panels):
            panel.paint(figure.add_subplot(grid[position]))
    return figure


def draw_panels(study: Study, name: str, record: Record) -> list[Figure]:
    """Draw the panels of a picture as separate figures, without the title."""
    figures = []
    with figure_style() as create_figure:
        for panel in _build_panels(study, name, record):
            figure = create_figure(WIDTH, panel.height)
            panel.paint(figure.add_subplot())
            figures.append(figure)
    return figures


def save_plot(study: Study, name: str, record: Record, results: Path) -> Path:
    """Write a picture into the results folder, where the report refers to it; return its path."""
    path = results / picture_path(study, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_text(render_svg(draw_plot(study, name, record), path.stem), encoding="utf-8")
    return path


def _build_panels(study: Study, name: str, record: Record) -> list[Panel]:
    plot = study.plots[name]
    return CHARTS[plot.kind](study, plot, collect_results(study, record)) or [Panel(_paint_placeholder, height=1.0)]


def _paint_placeholder(axes: Axes) -> None:
    axes.axis("off")
    axes.text(0.5, 0.5, "nothing measured yet", ha="center", va="center", color=INK)
