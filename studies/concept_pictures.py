"""The pictures of docs/concepts.md, from the record that studies/concepts.py makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripplevec.lab.experiments.plots.figure import FAINT, INK, style, svg
from ripplevec.lab.experiments.plots.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = dict[str, list[float]]
PLACES = {  # of the vertices in the drawing of the graph
    "a": (1.1, -0.1), "b": (1.75, -0.75), "c": (0.75, -0.95), "d": (-0.75, -0.95), "e": (-1.75, -0.75),
    "f": (-1.1, -0.1), "g": (-0.5, 0.75), "h": (0.0, 1.45), "i": (0.5, 0.75), "j": (0.75, -1.9),
}  # fmt: skip
CIRCLE = dict(zip("abcdefghij", [*[COLORS[0]] * 3, *[COLORS[1]] * 3, *[COLORS[2]] * 3, COLORS[5]], strict=True))
WIDTH, HEIGHT = 6.0, 3.0
STYLE = {"axes.grid": False, "font.size": 11, "axes.titlesize": 11}


def draw(record: dict[str, Any]) -> dict[str, str]:
    """Every picture by its name, as SVG."""
    paint = {"start": _start, "arrival": _arrival, "influence": _influence, "adjustment": _adjustment}
    found = {name: _picture(name, record, picture, 2) for name, picture in paint.items()}
    found["anchor"] = _picture("anchor", record, _anchor, 3)
    found["batch"] = _picture("batch", record, _batch, 2)
    return found


def _picture(name: str, record: dict[str, Any], paint: Any, panels: int) -> str:
    with style(STYLE) as figure_of:
        figure = figure_of(WIDTH, 2 * HEIGHT / panels)
        paint(record, *figure.subplots(1, panels))
        return svg(figure, f"concepts-{name}")


def _start(record: dict[str, Any], left: Axes, right: Axes) -> None:
    _graph(left, record["edges"])
    _vectors(right, record["start"])


def _arrival(record: dict[str, Any], left: Axes, right: Axes) -> None:
    new, edges = record["newcomer"], [(record["newcomer"], u) for u in record["its_edges"]]
    _graph(left, record["edges"], edges)
    _vectors(right, record["start"] | {new: record["preview"]})
    for _, u in edges:
        _line(right, record["start"][u], record["preview"], color=CIRCLE[new], linestyle=":")


def _influence(record: dict[str, Any], left: Axes, right: Axes) -> None:
    edges = [(record["newcomer"], u) for u in record["its_edges"]]
    _graph(left, record["edges"], edges)
    for vertex in set(record["changed"]) & set(record["its_edges"]):
        left.plot(*PLACES[vertex], "o", markersize=26, markerfacecolor="none", markeredgecolor=CIRCLE["j"], zorder=1)
    shares = [record["influenced"][u] / record["seeds"] for u in record["its_edges"]]
    right.bar(record["its_edges"], shares, color=[CIRCLE[u] for u in record["its_edges"]], width=0.6)
    for place, u in enumerate(record["its_edges"]):
        right.plot([place - 0.4, place + 0.4], [record["chances"][u]] * 2, color=INK, linewidth=2)
    right.set_title("influenced, share of 1,000 draws")
    right.set_ylim(0, 0.5)


def _adjustment(record: dict[str, Any], left: Axes, right: Axes) -> None:
    before = record["start"] | {record["newcomer"]: record["preview"]}
    for panel, title in ((left, "vectors"), (right, "closer")):
        _vectors(panel, record["after"], title)
        for vertex in record["changed"]:
            _moved(panel, before[vertex], record["after"][vertex])
    right.set(xlim=(0.35, 1.25), ylim=(-1.0, -0.1))


def _anchor(record: dict[str, Any], *panels: Axes) -> None:
    (inside, turned), (before, after) = record["anchor"]["inside"], record["anchor"]["served"]
    _vectors(panels[0], inside, "inside, before")
    _vectors(panels[1], turned, "inside, after")
    _vectors(panels[2], after, "served")
    for vertex, point in after.items():
        _moved(panels[2], before[vertex], point)


def _batch(record: dict[str, Any], left: Axes, right: Axes) -> None:
    start = record["start"]
    for panel, kind, title in ((left, "together", "one batch"), (right, "apart", "an edge at a time")):
        vectors = record["batch"][kind]["vectors"]
        _vectors(panel, vectors, title)
        for vertex in start.keys() & vectors.keys():
            _moved(panel, start[vertex], vectors[vertex])


def _graph(panel: Axes, edges: list[Any], new: list[tuple[str, str]] | None = None) -> None:
    for a, b, *_ in edges:
        _line(panel, PLACES[a], PLACES[b], color=INK, linewidth=1.2)
    for a, b in new or []:
        _line(panel, PLACES[a], PLACES[b], color=CIRCLE["j"], linewidth=2)
    shown = PLACES if new else {name: place for name, place in PLACES.items() if name != "j"}
    _dots(panel, {name: list(place) for name, place in shown.items()}, 17)
    panel.set(title="graph", xlim=(-2.2, 2.2), ylim=(-2.3, 1.9), aspect="equal")
    panel.axis("off")


def _vectors(panel: Axes, points: Points, title: str = "vectors") -> None:
    panel.axhline(0, color=FAINT, zorder=0)
    panel.axvline(0, color=FAINT, zorder=0)
    _dots(panel, points, 11)
    panel.set(title=title, xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), aspect="equal", xticks=[], yticks=[])


def _dots(panel: Axes, points: Points, size: float) -> None:
    for name, (x, y) in points.items():
        panel.plot(x, y, "o", color=CIRCLE[name], markersize=size, zorder=3, alpha=0.85)
        panel.text(x, y, name, color="white", ha="center", va="center", fontsize=size * 0.65, zorder=4, clip_on=True)


def _line(panel: Axes, some: Any, other: Any, **look: Any) -> None:
    panel.plot([some[0], other[0]], [some[1], other[1]], zorder=2, **look)


def _moved(panel: Axes, before: list[float], after: list[float]) -> None:
    """An empty dot where a vector was, and a line to where it is."""
    if before != after:
        panel.plot(*before, "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, zorder=2)
        _line(panel, before, after, color=INK, linewidth=1.2)
