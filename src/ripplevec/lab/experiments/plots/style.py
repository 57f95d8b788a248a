"""The house style of pictures: fonts, colors and markers, and deterministic SVG output."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ripplevec.errors import MissingExtraError

if TYPE_CHECKING:
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
