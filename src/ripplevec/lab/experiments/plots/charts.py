"""Charts of a study: over train shares, along a stream, distributions, parameter sweeps, graph growth, and bars.

Each chart function draws one `kind` of plot (`shares_chart` draws kind `shares`) and returns the panels of a picture.
Most charts have one panel per data set, and a common legend. Settings and data sets that have not been measured
are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ripplevec.lab.experiments.plots.style import (
    HEIGHT,
    INK,
    LineStyle,
    Panel,
    Point,
    assign_styles,
    draw_line,
    drop_empty_lines,
    numbered_style,
    place_legend_below,
    plotted_settings,
    set_log_scale,
    summarize_points,
)
from ripplevec.lab.experiments.report import Results, count_decimals, select_values
from ripplevec.lab.experiments.study import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEGEND_ROW_HEIGHT = 0.175  # in inches
BAR_HEIGHT, BARS_MARGIN = 0.19, 0.75  # in inches
LOG_SCALE_RATIO = 30.0  # sweep values whose ratio is larger are shown on a logarithmic axis
SIZE_PATTERN = re.compile(r"\d[\d,]*")

Lines = dict[str, list[Point]]
LinePainter = Callable[[Plot, str, Lines, dict[str, int], "Axes"], object]
"""Paints the panel of a data set from its lines, given the style index of every line."""


def shares_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw one line per setting over the train shares, a panel per data set, and a common legend.

    With several metrics, a line shows the first of them that its setting has.
    """
    settings, styles = plotted_settings(study, plot), assign_styles(study.settings)
    metrics = [*plot.figures] or [plot.figure]

    def first_measured(setting: str, dataset: str) -> list[Point]:
        lines = (points_by_share(results, metric, setting, dataset) for metric in metrics)
        return next(filter(None, lines), [])

    lines = {
        dataset: drop_empty_lines({setting: first_measured(setting, dataset) for setting in settings})
        for dataset in study.datasets
    }

    def paint(dataset: str, axes: Axes) -> None:
        for setting, points in lines[dataset].items():
            style = styles[setting]
            draw_line(axes, points, style.line_arguments(), 0.2 if style.is_ripplevec else 0.12)
        axes.set(title=dataset, xlabel="train share (%)")

    drawn = [setting for setting in settings if any(setting in of_dataset for of_dataset in lines.values())]
    if not drawn:
        return []
    legend = Panel(partial(_paint_settings_legend, drawn, styles), LEGEND_ROW_HEIGHT * len(drawn) + 0.3)
    return [legend, *(Panel(partial(paint, dataset)) for dataset, of_dataset in lines.items() if of_dataset)]


def points_by_share(results: Results, metric: str, setting: str, dataset: str) -> list[Point]:
    """Return the points of a metric at every recorded share; its name there is `metric@percent`."""
    pattern = re.compile(re.escape(metric) + r"@(\d+)")
    names = {name for metrics in results.get((setting, dataset), ()) for name in metrics}
    shares = sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))
    return summarize_points((share, select_values(results, f"{metric}@{share}", setting, dataset)) for share in shares)


def _paint_settings_legend(settings: Sequence[str], styles: dict[str, LineStyle], axes: Axes) -> None:
    axes.axis("off")
    for setting in settings:
        axes.plot([], [], label=setting, **styles[setting].line_arguments())
    legend = axes.legend(loc="center", fontsize=9.5, handlelength=3.6, labelspacing=0.3)
    for text, setting in zip(legend.get_texts(), settings, strict=True):
        text.set_fontweight("bold" if styles[setting].is_ripplevec else "normal")


def along_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw metrics along a stream, whose names end in @ and the percentage of vertices present.

    A metric without percentages, such as the time of a retraining, is a horizontal line.
    """
    return _panels_with_legend(study, plot, results, _paint_along)


def spread_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw cumulative distributions from quantile metrics, whose names end in @ and the percentage."""
    return _panels_with_legend(study, plot, results, _paint_spread)


def _panels_with_legend(study: Study, plot: Plot, results: Results, paint: LinePainter) -> list[Panel]:
    """Return a common legend, then a panel per data set with one line per setting and metric."""
    line_of = _label_lines(study, plot)
    lines = {dataset: drop_empty_lines(_lines_by_share(results, line_of, dataset)) for dataset in study.datasets}
    drawn = [label for label in line_of if any(label in of_dataset for of_dataset in lines.values())]
    if not drawn:
        return []
    index_of = {label: index for index, label in enumerate(line_of)}
    paint_legend = partial(_paint_numbered_legend, {label: index_of[label] for label in drawn})
    legend = Panel(paint_legend, LEGEND_ROW_HEIGHT * len(drawn) + 0.3)
    panels = [
        Panel(partial(paint, plot, dataset, of_dataset, index_of))
        for dataset, of_dataset in lines.items()
        if of_dataset
    ]
    return [legend, *panels]


def _lines_by_share(results: Results, line_of: dict[str, tuple[str, str]], dataset: str) -> Lines:
    """Return the points of every line; a metric without percentages has the same value at all those of the others."""
    lines = {label: points_by_share(results, metric, setting, dataset) for label, (setting, metric) in line_of.items()}
    shares = sorted({point.x for points in lines.values() for point in points})
    return {
        label: points or summarize_points((x, select_values(results, metric, setting, dataset)) for x in shares)
        for (label, points), (setting, metric) in zip(lines.items(), line_of.values(), strict=True)
    }


def _label_lines(study: Study, plot: Plot) -> dict[str, tuple[str, str]]:
    """Return setting and metric of every line, by a label made of the one that varies, or of both."""
    settings, metrics = plotted_settings(study, plot), plot.figures or {plot.figure: ""}
    if len(settings) == 1:
        return {label or settings[0]: (settings[0], metric) for metric, label in metrics.items()}
    return {
        f"{setting}: {label}" if label else setting: (setting, metric)
        for setting in settings
        for metric, label in metrics.items()
    }


def _paint_along(plot: Plot, dataset: str, lines: Lines, index_of: dict[str, int], axes: Axes) -> None:
    for label, points in lines.items():
        if plot.log:  # a band could extend below zero
            points = [point._replace(deviation=0.0) for point in points]
        draw_line(axes, points, numbered_style(index_of[label]), 0.12)
    positive = [point.mean for points in lines.values() for point in points if point.mean > 0]
    if plot.log and positive:
        set_log_scale(axes, "y")
        axes.set_ylim(*_enclosing_decades(positive))
    axes.set(title=dataset, xlabel=plot.x or "vertices present (% of all)")


def _enclosing_decades(values: list[float]) -> tuple[float, float]:
    """Return powers of ten around the values, because only they are labeled on a logarithmic axis."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def _paint_spread(plot: Plot, dataset: str, lines: Lines, index_of: dict[str, int], axes: Axes) -> None:
    for label, points in lines.items():
        drawable = [point for point in points if point.mean > 0 or not plot.log]
        values, percentages = [point.mean for point in drawable], [point.x for point in drawable]
        axes.plot(values, percentages, **numbered_style(index_of[label]))
    if plot.log:
        set_log_scale(axes, "x")
    axes.set(title=dataset, xlabel=plot.x, ylabel="share below (%)")


def _paint_numbered_legend(index_of: dict[str, int], axes: Axes) -> None:
    axes.axis("off")
    for label, index in index_of.items():
        axes.plot([], [], label=label, **numbered_style(index))
    axes.legend(loc="center", fontsize=9.5, handlelength=3.6, labelspacing=0.3)


def sweep_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw a metric over the values of one parameter, one line per data set; settings are named `x: value`."""
    prefix = f"{plot.x}: "
    settings = plotted_settings(study, plot)
    names = [setting.removeprefix(prefix) for setting in settings if setting.startswith(prefix)]
    positions, scale = _axis_positions(names)
    ticks = sorted(zip(positions, names, strict=True))
    lines = drop_empty_lines({
        dataset: summarize_points((x, select_values(results, plot.figure, prefix + name, dataset)) for x, name in ticks)
        for dataset in study.datasets
    })  # fmt: skip

    def paint(axes: Axes) -> None:
        for index, (dataset, points) in enumerate(lines.items()):
            draw_line(axes, points, {**numbered_style(index), "label": dataset}, 0.12)
        if scale == "log":
            set_log_scale(axes, "x")
        if plot.log:
            set_log_scale(axes, "y")
        axes.set_xticks([x for x, _ in ticks], [name for _, name in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(plot.x)
        place_legend_below(axes)

    return [Panel(paint)] if lines else []


def _axis_positions(names: Sequence[str]) -> tuple[list[float], str]:
    """Return the positions of values on the axis and its scale; values that are not numbers are equally spaced."""
    equally_spaced = [float(position) for position in range(len(names))], "linear"
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return equally_spaced
    sizes = [abs(number) for number in numbers if number]
    if not sizes or not all(map(math.isfinite, sizes)):
        return equally_spaced
    if max(sizes) < LOG_SCALE_RATIO * min(sizes):
        return numbers, "linear"
    return (numbers, "log") if min(numbers) > 0 else equally_spaced


def growth_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw metrics over the graph size on logarithmic axes, with fitted exponents, a panel per data set.

    The size is the first number in the name of a setting.
    """
    sizes = {
        setting: float(digits[0].replace(",", ""))
        for setting in plotted_settings(study, plot)
        if (digits := SIZE_PATTERN.search(setting))
    }
    panels = []
    for dataset in study.datasets:
        lines = drop_empty_lines({
            label: _growth_points(results, metric, sizes, dataset) for metric, label in plot.figures.items()
        })  # fmt: skip
        if lines:
            title = dataset if len(study.datasets) > 1 else ""
            panels.append(Panel(partial(_paint_growth, title, lines), HEIGHT + 0.2 * len(lines)))
    return panels


def _growth_points(results: Results, metric: str, sizes: dict[str, float], dataset: str) -> list[Point]:
    samples = ((size, select_values(results, metric, setting, dataset)) for setting, size in sizes.items())
    return [point for point in summarize_points(samples) if point.x > 0 and point.mean > 0]


def _paint_growth(title: str, lines: Lines, axes: Axes) -> None:
    for index, (label, points) in enumerate(lines.items()):
        x, y = np.array([(point.x, point.mean) for point in sorted(points)]).T
        arguments = numbered_style(index)
        if len(set(x)) > 1:
            slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
            axes.plot(x, np.exp(intercept) * x**slope, color=arguments["color"], linestyle=":", linewidth=1)
            label = f"{label}: n^{slope:.2f}"
        axes.plot(x, y, **arguments, label=label)
    all_points = [point for points in lines.values() for point in points]
    for axis, values in (("x", [point.x for point in all_points]), ("y", [point.mean for point in all_points])):
        set_log_scale(axes, axis)
        low, high = _enclosing_decades(values)
        axes.set(**{f"{axis}lim": (0.7 * low, 1.4 * high)})
    axes.set(title=title, xlabel="vertices")
    place_legend_below(axes, columns=1)


def bars_chart(study: Study, plot: Plot, results: Results) -> list[Panel]:
    """Draw one bar per setting, or per metric of a single setting, and a panel per data set."""
    settings = plotted_settings(study, plot)
    bar_of = {label: (settings[0], metric) for metric, label in plot.figures.items()} or {
        setting: (setting, plot.figure) for setting in settings
    }
    styles = assign_styles(plot.figures.values() or study.settings)
    panels = []
    for dataset in study.datasets:
        bars = {
            label: point.mean
            for label, (setting, metric) in bar_of.items()
            for point in summarize_points([(0.0, select_values(results, metric, setting, dataset))])
            if point.mean > 0 or not plot.log
        }
        if bars:
            paint = partial(_paint_bars, dataset, bars, styles, plot.log)
            panels.append(Panel(paint, BAR_HEIGHT * len(bars) + BARS_MARGIN))
    return panels


def _paint_bars(title: str, bars: dict[str, float], styles: dict[str, LineStyle], log: bool, axes: Axes) -> None:
    longest, shortest = max(bars.values()), min(bars.values())
    for position, (name, mean) in enumerate(bars.items()):
        style = styles[name]
        axes.barh(position, mean, height=0.72, color=style.color, alpha=1.0 if style.dashes == "-" else 0.55)
        offset: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        text = f"{mean:,.{count_decimals(mean)}f}"
        axes.annotate(text, (max(mean, 0), position), fontsize=8, color=INK, **offset)
    axes.set_yticks(range(len(bars)), list(bars), fontsize=8)
    for label, name in zip(axes.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if styles[name].is_ripplevec else "normal")
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_title(title)
    if log:
        set_log_scale(axes, "x")
        text_space = (longest / shortest) ** 0.3  # for the value of the longest bar
        axes.set_xlim(shortest / 2, max(10 * shortest, longest * max(2.0, text_space)))
    else:
        axes.set_xlim(min(shortest, 0), 1.25 * max(longest, 0) or 1)
