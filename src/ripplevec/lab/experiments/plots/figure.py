"""A figure in our style, and its text as SVG: the same text for the same picture."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ripplevec.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT = "#1f2430", "#d8dbe2"
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


@contextmanager
def style(more: dict[Any, Any] | None = None) -> Iterator[Callable[[float, float], Figure]]:
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


def svg(figure: Figure, salt: str) -> str:
    """A picture as an <svg> element: the same text for the same picture, its ids unlike those of another salt."""
    text = io.StringIO()
    with style({"svg.hashsalt": salt}):
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return _slim(text.getvalue()) + "\n"


def _slim(text: str) -> str:
    """The <svg> element without ids that nothing refers to, digits that nobody sees, and space between elements."""
    element = text[text.index("<svg") :].strip()
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', element))
    element = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in referred else "", element)
    element = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda found: _rounded(found[0]), element)
    return re.sub(r">\s+<", "><", element)


def _rounded(numbers: str) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", " " + " ".join(numbers.split()))
