"""Draw the pictures of docs/concepts.md from the record that studies/concepts.py writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripplevec.lab.experiments.plots.style import COLORS, FAINT, INK, figure_style, render_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = dict[str, list[float]]
POSITIONS = {  # of the vertices in the drawing of the graph
    "a": (1.1, -0.1), "b": (1.75, -0.75), "c": (0.75, -0.95), "d": (-0.75, -0.95), "e": (-1.75, -0.75),
    "f": (-1.1, -0.1), "g": (-0.5, 0.75), "h": (0.0, 1.45), "i": (0.5, 0.75), "j": (0.75, -1.9),
}  # fmt: skip
VERTEX_COLOR = dict(zip("abcdefghij", [*[COLORS[0]] * 3, *[COLORS[1]] * 3, *[COLORS[2]] * 3, COLORS[5]], strict=True))
WIDTH, HEIGHT = 6.0, 3.0
STYLE = {"axes.grid": False, "font.size": 11, "axes.titlesize": 11}


def draw_pictures(record: dict[str, Any]) -> dict[str, str]:
    """Return every picture as SVG, by name."""
    with_two_panels = {
        "start": _draw_start,
        "arrival": _draw_arrival,
        "influence": _draw_influence,
        "adjustment": _draw_adjustment,
        "batch": _draw_batch,
    }
    pictures = {name: _render(name, record, draw, 2) for name, draw in with_two_panels.items()}
    return pictures | {"anchor": _render("anchor", record, _draw_anchor, 3)}


def _render(name: str, record: dict[str, Any], draw: Any, panels: int) -> str:
    with figure_style(STYLE) as create_figure:
        figure = create_figure(WIDTH, 2 * HEIGHT / panels)
        draw(record, *figure.subplots(1, panels))
        return render_svg(figure, f"concepts-{name}")


def _draw_start(record: dict[str, Any], left: Axes, right: Axes) -> None:
    _draw_graph(left, record["edges"])
    _draw_vectors(right, record["start"])


def _draw_arrival(record: dict[str, Any], left: Axes, right: Axes) -> None:
    new, edges = record["newcomer"], [(record["newcomer"], u) for u in record["its_edges"]]
    _draw_graph(left, record["edges"], edges)
    _draw_vectors(right, record["start"] | {new: record["preview"]})
    for _, u in edges:
        _draw_line(right, record["start"][u], record["preview"], color=VERTEX_COLOR[new], linestyle=":")


def _draw_influence(record: dict[str, Any], left: Axes, right: Axes) -> None:
    edges = [(record["newcomer"], u) for u in record["its_edges"]]
    _draw_graph(left, record["edges"], edges)
    for vertex in set(record["changed"]) & set(record["its_edges"]):
        left.plot(
            *POSITIONS[vertex], "o", markersize=26, markerfacecolor="none", markeredgecolor=VERTEX_COLOR["j"], zorder=1
        )
    shares = [record["influenced"][u] / record["seeds"] for u in record["its_edges"]]
    right.bar(record["its_edges"], shares, color=[VERTEX_COLOR[u] for u in record["its_edges"]], width=0.6)
    for index, u in enumerate(record["its_edges"]):
        right.plot([index - 0.4, index + 0.4], [record["chances"][u]] * 2, color=INK, linewidth=2)
    right.set_title("influenced, share of 1,000 runs")
    right.set_ylim(0, 0.5)


def _draw_adjustment(record: dict[str, Any], left: Axes, right: Axes) -> None:
    before = record["start"] | {record["newcomer"]: record["preview"]}
    for panel, title in ((left, "vectors"), (right, "close-up")):
        _draw_vectors(panel, record["after"], title)
        for vertex in record["changed"]:
            _draw_move(panel, before[vertex], record["after"][vertex])
    right.set(xlim=(0.35, 1.25), ylim=(-1.0, -0.1))


def _draw_anchor(record: dict[str, Any], *panels: Axes) -> None:
    (internal, rotated), (before, after) = record["anchor"]["inside"], record["anchor"]["served"]
    _draw_vectors(panels[0], internal, "internal, before")
    _draw_vectors(panels[1], rotated, "internal, after")
    _draw_vectors(panels[2], after, "returned")
    for vertex, point in after.items():
        _draw_move(panels[2], before[vertex], point)


def _draw_batch(record: dict[str, Any], left: Axes, right: Axes) -> None:
    start = record["start"]
    for panel, kind, title in ((left, "together", "one batch"), (right, "apart", "one edge at a time")):
        vectors = record["batch"][kind]["vectors"]
        _draw_vectors(panel, vectors, title)
        for vertex in start.keys() & vectors.keys():
            _draw_move(panel, start[vertex], vectors[vertex])


def _draw_graph(panel: Axes, edges: list[Any], new: list[tuple[str, str]] | None = None) -> None:
    for a, b, *_ in edges:
        _draw_line(panel, POSITIONS[a], POSITIONS[b], color=INK, linewidth=1.2)
    for a, b in new or []:
        _draw_line(panel, POSITIONS[a], POSITIONS[b], color=VERTEX_COLOR["j"], linewidth=2)
    shown = POSITIONS if new else {name: position for name, position in POSITIONS.items() if name != "j"}
    _draw_dots(panel, {name: list(position) for name, position in shown.items()}, 17)
    panel.set(title="graph", xlim=(-2.2, 2.2), ylim=(-2.3, 1.9), aspect="equal")
    panel.axis("off")


def _draw_vectors(panel: Axes, points: Points, title: str = "vectors") -> None:
    panel.axhline(0, color=FAINT, zorder=0)
    panel.axvline(0, color=FAINT, zorder=0)
    _draw_dots(panel, points, 11)
    panel.set(title=title, xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), aspect="equal", xticks=[], yticks=[])


def _draw_dots(panel: Axes, points: Points, size: float) -> None:
    for name, (x, y) in points.items():
        panel.plot(x, y, "o", color=VERTEX_COLOR[name], markersize=size, zorder=3, alpha=0.85)
        panel.text(x, y, name, color="white", ha="center", va="center", fontsize=size * 0.65, zorder=4, clip_on=True)


def _draw_line(panel: Axes, start: Any, end: Any, **options: Any) -> None:
    panel.plot([start[0], end[0]], [start[1], end[1]], zorder=2, **options)


def _draw_move(panel: Axes, before: list[float], after: list[float]) -> None:
    """Draw an empty dot at the previous position of a vector and a line to its current one."""
    if before != after:
        panel.plot(*before, "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, zorder=2)
        _draw_line(panel, before, after, color=INK, linewidth=1.2)
