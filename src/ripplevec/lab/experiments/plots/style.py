"""The house style of pictures: fonts, colors, markers, panels, legends and axes, and deterministic SVG output."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ripplevec.errors import MissingExtraError
from ripplevec.lab.experiments.study import Plot, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIPPLEVEC_PREFIX, TUNED_SUFFIX = "ripplevec", ", tuned"
BLACK = "#000000"
# By Okabe and Ito, and by Tol: distinguishable with any kind of color vision. Black is reserved for Ripplevec.
COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933", "#777777", "#332288",
    "#117733", "#c9a26b", "#aa4499",
)  # fmt: skip
MARKERS = "osD^vP<X>ph"  # fewer than colors and coprime to them, so that no two lines share both
INK, FAINT = "#1f2430", "#d8dbe2"
RC_PARAMS: dict[Any, Any] = {
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that the layout is the same everywhere
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


class LineStyle(NamedTuple):
    """Appearance of a setting; settings of one family share color and marker."""

    color: str
    dashes: str
    marker: str
    is_ripplevec: bool

    def line_arguments(self) -> dict[str, Any]:
        """Return the arguments of `Axes.plot`; Ripplevec's lines are bold and in front."""
        width, size, layer = (2.6, 5.0, 4) if self.is_ripplevec else (1.2, 3.5, 3)
        shape = {"color": self.color, "linestyle": self.dashes, "marker": self.marker}
        return shape | {"linewidth": width, "markersize": size, "zorder": layer}


def assign_styles(names: Iterable[str]) -> dict[str, LineStyle]:
    """Assign a style to every setting, so that a method has one color in all pictures of a study."""
    families: dict[str, list[str]] = {}
    for setting in names:
        family = RIPPLEVEC_PREFIX if setting.startswith(RIPPLEVEC_PREFIX) else setting.removesuffix(TUNED_SUFFIX)
        families.setdefault(family, []).append(setting)
    styles = {}
    others = 0
    for family, settings in families.items():
        is_ripplevec = family == RIPPLEVEC_PREFIX
        color, marker = COLORS[others % len(COLORS)], MARKERS[others % len(MARKERS)]
        if is_ripplevec:
            color, marker = BLACK, "o"
        others += not is_ripplevec
        dashes = iter(["-", ":", "-."] + ["-"] * len(settings))
        for setting in settings:
            line = "--" if setting.endswith(TUNED_SUFFIX) else next(dashes)
            styles[setting] = LineStyle(color, line, marker, is_ripplevec)
    return styles


def numbered_style(index: int) -> dict[str, Any]:
    """Return the `Axes.plot` arguments of the line with this index, for lines that do not stand for settings."""
    color, marker = COLORS[index % len(COLORS)], MARKERS[index % len(MARKERS)]
    return {"color": color, "marker": marker, "linewidth": 1.8, "markersize": 4.5, "zorder": 3}


@contextmanager
def figure_style(more: dict[Any, Any] | None = None) -> Iterator[Callable[[float, float], Figure]]:
    """Apply the house style regardless of the user's settings; yield a function that creates a figure of a size."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("a picture", "eval") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC_PARAMS | (more or {}))
        yield lambda width, height: Figure(figsize=(width, height), layout="constrained", facecolor="white")


def render_svg(figure: Figure, salt: str) -> str:
    """Return a figure as an <svg> element: deterministic text, with ids that differ for different salts."""
    text = io.StringIO()
    with figure_style({"svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _minify(text.getvalue()) + "\n"


def _minify(text: str) -> str:
    """Return the <svg> element without unused ids, invisible digits, and space between elements."""
    element = text[text.index("<svg") :].strip()
    referenced = set(re.findall(r'(?:href="|url\()#([^")]+)', element))
    element = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in referenced else "", element)
    element = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda match: _round_numbers(match[0]), element)
    return re.sub(r">\s+<", "><", element)


def _round_numbers(attribute: str) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", " " + " ".join(attribute.split()))


WIDTH, HEIGHT = 4.6, 3.7  # of a panel, in inches; about the size of a phone screen


class Panel(NamedTuple):
    """A part of a picture: a function that paints it, and its height in inches."""

    paint: Callable[[Axes], object]
    height: float = HEIGHT


class Point(NamedTuple):
    """A mean over seeds, and its standard deviation."""

    x: float
    mean: float
    deviation: float


def plotted_settings(study: Study, plot: Plot) -> list[str]:
    """Return the settings that a plot shows, in the order of the study."""
    return [setting for setting in study.settings if not plot.settings or setting in plot.settings]


def summarize_points(samples: Iterable[tuple[float, list[float]]]) -> list[Point]:
    """Return mean and standard deviation at every x that has finite values."""
    points = []
    for x, values in samples:
        if finite := [value for value in values if math.isfinite(value)]:
            points.append(Point(float(x), fmean(finite), stdev(finite) if len(finite) > 1 else 0.0))
    return points


def drop_empty_lines(lines: dict[str, list[Point]]) -> dict[str, list[Point]]:
    """Return the lines that have at least one point."""
    return {name: points for name, points in lines.items() if points}


def draw_line(axes: Axes, points: list[Point], arguments: dict[str, Any], band_opacity: float) -> None:
    """Draw a line through the means, and a band of the standard deviations around it."""
    x, mean, deviation = np.array(points).T
    axes.plot(x, mean, **arguments)
    if deviation.any():
        color = arguments["color"]
        axes.fill_between(x, mean - deviation, mean + deviation, color=color, alpha=band_opacity, linewidth=0)


def place_legend_below(axes: Axes, columns: int = 3) -> None:
    """Place the legend under the x-axis."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def set_log_scale(axes: Axes, axis: str) -> None:
    """Make an axis logarithmic with plain numbers, because powers of ten would need extra glyphs."""
    from matplotlib.ticker import NullFormatter

    axes.set(**{f"{axis}scale": "log"})
    target = axes.xaxis if axis == "x" else axes.yaxis
    target.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    target.set_minor_formatter(NullFormatter())
