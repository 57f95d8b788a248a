"""The pictures of a study: what its plots ask for, drawn from its record, as SVG.

A picture is made of panels, mostly the legend and one per data set: side by side in the file of the picture, each by
itself in the report, where a phone shows one below the other. What has not been measured is left out.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ripplet.errors import MissingExtraError
from ripplet.experiments.record import Record
from ripplet.experiments.report import Cells, measured, picture, values_of
from ripplet.experiments.spec import Plot, Study
from ripplet.io.write import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, TUNED = "ripplet", ", tuned"
BLACK, INK, FAINT = "#000000", "#1f2430", "#d8dbe2"
# Of Okabe and Ito, and of Tol: told apart with any kind of colour vision. Black is ours.
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933", "#777777", "#332288",
    "#117733", "#c9a26b", "#aa4499",
)  # fmt: skip
MARKERS = "osD^vP<X>ph"  # fewer than colours, and no common divisor: no two families have both in common
STYLE: dict[Any, Any] = {  # as matplotlib names it
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],  # the one that is always there: the same layout everywhere
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
}
WIDTH, HEIGHT = 4.6, 3.7  # of a panel, in inches: a phone held upright shows it at about its own size
BAR, AROUND_BARS, LEGEND_ROW = 0.19, 0.75, 0.175
WIDE = 30.0  # numbers that differ by more than this factor stand on a logarithmic axis
SIZE = re.compile(r"\d[\d,]*")


class Panel(NamedTuple):
    """A part of a picture: how to draw it, and its height in inches."""

    paint: Callable[[Axes], object]
    height: float = HEIGHT


class Look(NamedTuple):
    """How a setting is told from the others: a family of settings shares colour and marker."""

    colour: str
    dashes: str
    marker: str
    ours: bool

    def line(self) -> dict[str, Any]:
        """Ours are bold and in front."""
        width, size, layer = (2.6, 5.0, 4) if self.ours else (1.2, 3.5, 3)
        shape = {"color": self.colour, "linestyle": self.dashes, "marker": self.marker}
        return shape | {"linewidth": width, "markersize": size, "zorder": layer}


class Point(NamedTuple):
    """A mean over seeds, and how far they are from it."""

    x: float
    mean: float
    deviation: float


def draw(study: Study, name: str, record: Record) -> Figure:
    """A whole picture, its panels in two columns."""
    panels = _panels(study, name, record)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    with _style() as figure_of:
        figure = figure_of(WIDTH * columns, rows * max(panel.height for panel in panels) + 0.4)
        figure.suptitle(study.plots[name].title, fontsize=12, fontweight="bold")
        grid = figure.add_gridspec(rows, columns)
        for place, panel in enumerate(panels):
            panel.paint(figure.add_subplot(grid[place]))
    return figure


def draw_apart(study: Study, name: str, record: Record) -> list[Figure]:
    """The panels of a picture, each by itself and without the title."""
    figures = []
    with _style() as figure_of:
        for panel in _panels(study, name, record):
            figure = figure_of(WIDTH, panel.height)
            panel.paint(figure.add_subplot())
            figures.append(figure)
    return figures


def svg(figure: Figure, salt: str) -> str:
    """A picture as an <svg> element: the same text for the same picture, its ids unlike those of another salt."""
    text = io.StringIO()
    with _style({"svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _slim(text.getvalue()) + "\n"


def save(study: Study, name: str, record: Record, results: Path) -> Path:
    """Write a picture where the report looks for it, under the folder of the results."""
    path = results / picture(study, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text(svg(draw(study, name, record), path.stem), encoding="utf-8")
    return path


@contextmanager
def _style(more: dict[Any, Any] | None = None) -> Iterator[Callable[[float, float], Figure]]:
    """Our style, whatever the user's own, for as long as it takes; gives what makes a figure of a size."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("a picture", "eval") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | (more or {}))
        yield lambda width, height: Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _slim(text: str) -> str:
    """The <svg> element without ids that nothing refers to, digits that nobody sees, and space between elements."""
    element = text[text.index("<svg") :].strip()
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', element))
    element = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in referred else "", element)
    element = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: _rounded(found[0]), element)
    return re.sub(r">\s+<", "><", element)


def _rounded(numbers: str) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", " " + " ".join(numbers.split()))


def _panels(study: Study, name: str, record: Record) -> list[Panel]:
    plot = study.plots[name]
    return KINDS[plot.kind](study, plot, measured(study, record)) or [Panel(_nothing, height=1.0)]


def _nothing(axes: Axes) -> None:
    axes.axis("off")
    axes.text(0.5, 0.5, "nothing measured yet", ha="center", va="center", color=INK)


# ---------------------------------------------------------------------- shares


def _shares(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    looks = _looks(study.settings)
    lines = {
        dataset: _some({setting: _over_shares(cells, plot.figure, setting, dataset) for setting in _rows(study, plot)})
        for dataset in study.datasets
    }

    def paint(dataset: str, axes: Axes) -> None:
        for setting, points in lines[dataset].items():
            _line(axes, points, looks[setting].line(), 0.2 if looks[setting].ours else 0.12)
        axes.set(title=dataset, xlabel="train share (%)")

    drawn = [setting for setting in _rows(study, plot) if any(setting in of for of in lines.values())]
    panels = [Panel(partial(paint, dataset)) for dataset, of in lines.items() if of]
    return [Panel(partial(_legend, drawn, looks), LEGEND_ROW * len(drawn) + 0.3), *panels] if panels else []


def _over_shares(cells: Cells, figure: str, setting: str, dataset: str) -> list[Point]:
    """A figure at every train share that is recorded; its name there is figure@per cent."""
    of_share = re.compile(re.escape(figure) + r"@(\d+)")
    names = {name for figures in cells.get((setting, dataset), ()) for name in figures}
    shares = sorted(int(found[1]) for name in names if (found := of_share.fullmatch(name)))
    return _points((share, values_of(cells, f"{figure}@{share}", setting, dataset)) for share in shares)


def _legend(settings: Sequence[str], looks: dict[str, Look], axes: Axes) -> None:
    axes.axis("off")
    for setting in settings:
        axes.plot([], [], label=setting, **looks[setting].line())
    legend = axes.legend(loc="center", fontsize=9.5, handlelength=3.6, labelspacing=0.3)
    for text, setting in zip(legend.get_texts(), settings, strict=True):
        text.set_fontweight("bold" if looks[setting].ours else "normal")


# ---------------------------------------------------------------------- bars


def _bars(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    """A bar per setting; or per figure, where a plot has several, of its one setting."""
    rows = _rows(study, plot)
    of = {label: (rows[0], figure) for figure, label in plot.figures.items()} or {
        row: (row, plot.figure) for row in rows
    }
    looks = _looks(plot.figures.values() or study.settings)
    panels = []
    for dataset in study.datasets:
        bars = {
            label: point.mean
            for label, (row, figure) in of.items()
            for point in _points([(0.0, values_of(cells, figure, row, dataset))])
            if point.mean > 0 or not plot.log
        }
        if bars:
            paint = partial(_bar_panel, dataset, bars, looks, plot.log)
            panels.append(Panel(paint, BAR * len(bars) + AROUND_BARS))
    return panels


def _bar_panel(title: str, bars: dict[str, float], looks: dict[str, Look], log: bool, axes: Axes) -> None:
    longest, shortest = max(bars.values()), min(bars.values())
    for place, (row, mean) in enumerate(bars.items()):
        look = looks[row]
        axes.barh(place, mean, height=0.72, color=look.colour, alpha=1.0 if look.dashes == "-" else 0.55)
        end: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(_digits(mean), (max(mean, 0), place), fontsize=8, color=INK, **end)
    axes.set_yticks(range(len(bars)), list(bars), fontsize=8)
    for label, row in zip(axes.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if looks[row].ours else "normal")
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_title(title)
    if log:
        _log(axes, "x")
        room = (longest / shortest) ** 0.3  # for the value of the longest bar
        axes.set_xlim(shortest / 2, max(10 * shortest, longest * max(2.0, room)))
    else:
        axes.set_xlim(min(shortest, 0), 1.25 * max(longest, 0) or 1)


# ---------------------------------------------------------------------- sweep


def _sweep(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    group = f"{plot.x}: "
    names = [row.removeprefix(group) for row in _rows(study, plot) if row.startswith(group)]
    places, scale = _places(names)
    rows = sorted(zip(places, names, strict=True))
    lines = _some({
        dataset: _points((x, values_of(cells, plot.figure, group + name, dataset)) for x, name in rows)
        for dataset in study.datasets
    })  # fmt: skip

    def paint(axes: Axes) -> None:
        for of, (dataset, points) in enumerate(lines.items()):
            _line(axes, points, {**_plain_look(of), "label": dataset}, 0.12)
        if scale == "log":
            _log(axes, "x")
        if plot.log:
            _log(axes, "y")
        axes.set_xticks([x for x, _ in rows], [name for _, name in rows])
        axes.set_xticks([], minor=True)
        axes.set_xlabel(plot.x)
        _legend_below(axes)

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


# ---------------------------------------------------------------------- growth


def _growth(study: Study, plot: Plot, cells: Cells) -> list[Panel]:
    sizes = {row: float(found[0].replace(",", "")) for row in _rows(study, plot) if (found := SIZE.search(row))}
    panels = []
    for dataset in study.datasets:
        lines = _some({
            label: _positive(_points((size, values_of(cells, figure, row, dataset)) for row, size in sizes.items()))
            for figure, label in plot.figures.items()
        })  # fmt: skip
        if lines:
            title = dataset if len(study.datasets) > 1 else ""
            panels.append(Panel(partial(_growth_panel, title, lines), HEIGHT + 0.2 * len(lines)))
    return panels


def _positive(points: list[Point]) -> list[Point]:
    return [point for point in points if point.x > 0 and point.mean > 0]


def _growth_panel(title: str, lines: dict[str, list[Point]], axes: Axes) -> None:
    for of, (label, points) in enumerate(lines.items()):
        x, y = np.array([(point.x, point.mean) for point in sorted(points)]).T
        look = _plain_look(of)
        if len(set(x)) > 1:
            slope, height = np.polyfit(np.log(x), np.log(y), 1)
            axes.plot(x, np.exp(height) * x**slope, color=look["color"], linestyle=":", linewidth=1)
            label = f"{label}: n^{slope:.2f}"
        axes.plot(x, y, **look, label=label)
    everything = [point for points in lines.values() for point in points]
    for axis, values in (("x", [point.x for point in everything]), ("y", [point.mean for point in everything])):
        _log(axes, axis)
        decades = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        axes.set(**{f"{axis}lim": (0.7 * 10.0 ** decades[0], 1.4 * 10.0 ** decades[1])})
    axes.set(title=title, xlabel="vertices")
    _legend_below(axes, columns=1)


# ---------------------------------------------------------------------- what they share


def _rows(study: Study, plot: Plot) -> list[str]:
    return [setting for setting in study.settings if not plot.settings or setting in plot.settings]


def _looks(names: Iterable[str]) -> dict[str, Look]:
    """The looks of all settings, so that a method has one colour in all pictures of a study."""
    families: dict[str, list[str]] = {}
    for setting in names:
        family = OURS if setting.startswith(OURS) else setting.removesuffix(TUNED)
        families.setdefault(family, []).append(setting)
    looks = {}
    others = 0
    for family, settings in families.items():
        ours = family == OURS
        colour, marker = (BLACK, "o") if ours else (COLOURS[others % len(COLOURS)], MARKERS[others % len(MARKERS)])
        others += not ours
        plain = iter(["-", ":", "-."] + ["-"] * len(settings))
        for setting in settings:
            looks[setting] = Look(colour, "--" if setting.endswith(TUNED) else next(plain), marker, ours)
    return looks


def _plain_look(place: int) -> dict[str, Any]:
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    return {"color": colour, "marker": marker, "linewidth": 1.8, "markersize": 4.5, "zorder": 3}


def _points(of: Iterable[tuple[float, list[float]]]) -> list[Point]:
    """Mean and deviation at every place that has values."""
    points = []
    for x, values in of:
        if finite := [value for value in values if math.isfinite(value)]:
            points.append(Point(float(x), fmean(finite), stdev(finite) if len(finite) > 1 else 0.0))
    return points


def _some(lines: dict[str, list[Point]]) -> dict[str, list[Point]]:
    return {name: points for name, points in lines.items() if points}


def _line(axes: Axes, points: list[Point], look: dict[str, Any], shade: float) -> None:
    x, mean, deviation = np.array(points).T
    axes.plot(x, mean, **look)
    if deviation.any():
        axes.fill_between(x, mean - deviation, mean + deviation, color=look["color"], alpha=shade, linewidth=0)


def _legend_below(axes: Axes, columns: int = 3) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def _log(axes: Axes, axis: str) -> None:
    """A logarithmic axis whose numbers are written out: powers of ten would need glyphs of their own."""
    from matplotlib.ticker import NullFormatter

    axes.set(**{f"{axis}scale": "log"})
    of = axes.xaxis if axis == "x" else axes.yaxis
    of.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    of.set_minor_formatter(NullFormatter())


def _digits(value: float) -> str:
    """Three digits, without powers of ten."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}" if value else "0"


KINDS = {"shares": _shares, "bars": _bars, "sweep": _sweep, "growth": _growth}
