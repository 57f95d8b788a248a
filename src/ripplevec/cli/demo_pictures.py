"""The map that `ripplevec demo` draws: where vertices stand among ten centers, while the graph grows around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.io.atomic_file import atomic_write
from ripplevec.lab.evaluation.label_metrics import normalize_rows

COLORS = (
    "#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2",
    "#6cc5b0", "#9c6b4e", "#ff8ab7", "#97bbf5", "#5b6470",
)  # fmt: skip
SHARPNESS = 4.0
INK, FAINT = "#1f2430", "#8a91a0"
TITLE = "Ripplevec: a graph grows, its map stays"
LEGEND = "color: the true community · place: likeness of the vector to ten k-means centers"

Points = NDArray[np.float64]
Labels = NDArray[np.int64]


def places(moments: list[NDArray[np.float32]], labels: Labels) -> list[Points]:
    """A place in the plane for every vector at every moment: between the centers of k-means, by likeness to each.

    The centers are those of the last moment and stand on a circle. Labels say only how many, so that the colors show
    what the vectors know.
    """
    from scipy.special import softmax
    from sklearn.cluster import KMeans

    count = len(np.unique(labels))
    centers = normalize_rows(KMeans(count, n_init=8, random_state=0).fit(normalize_rows(moments[-1])).cluster_centers_)
    angles = 2 * np.pi * np.arange(count) / count
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    points = [softmax(SHARPNESS * normalize_rows(vectors) @ centers.T, axis=1) @ corners for vectors in moments]
    return [place / np.abs(points[-1]).max() for place in points]


def write_png(path: Path, moments: list[Points], labels: Labels, caption: str) -> None:
    """Three moments side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 6), facecolor="white")
    FigureCanvasAgg(figure)
    for panel, moment in enumerate((0, len(moments) // 2, len(moments) - 1)):
        _draw(figure.add_axes((panel / 3 + 0.01, 0.02, 0.313, 0.8)), moments[moment], labels)
    figure.text(0.02, 0.93, TITLE, fontsize=19, color=INK, weight="bold")
    figure.text(0.02, 0.88, caption, fontsize=12, color=FAINT)
    figure.text(0.98, 0.88, LEGEND, fontsize=10, color=FAINT, ha="right")
    with atomic_write(path) as part:
        figure.savefig(part, dpi=110, format="png")


def _draw(axes: Any, points: Points, labels: Labels) -> None:
    order = np.random.default_rng(0).permutation(len(points))  # no community on top of the others
    colors = np.array(COLORS)[labels[order] % len(COLORS)]
    axes.scatter(*points[order].T, c=colors, s=5, alpha=0.55, linewidths=0)
    axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal")
    axes.set_title(f"{len(points):,} vertices", fontsize=12, color=INK)
    axes.axis("off")


def write_html(path: Path, moments: list[Points], labels: Labels, caption: str) -> None:
    """A page that needs nothing else: a slider over the moments, names under the pointer."""
    import plotly.graph_objects as go

    frames = [go.Frame(data=_traces(points, labels), name=f"{len(points):,}") for points in moments]
    layout = _layout(caption, [frame.name for frame in frames])
    figure = go.Figure(data=_traces(moments[-1], labels), frames=frames, layout=layout)
    with atomic_write(path) as part:
        figure.write_html(part, include_plotlyjs=True, full_html=True, auto_play=False)


def _traces(points: Points, labels: Labels) -> list[Any]:
    import plotly.graph_objects as go

    traces = []
    for community in np.unique(labels):
        rows = np.flatnonzero(labels[: len(points)] == community)
        x, y = points[rows].round(3).T
        marker = {"size": 4, "opacity": 0.6, "color": COLORS[community % len(COLORS)]}
        hover = f"vertex %{{customdata}}<extra>community {community}</extra>"
        name = f"community {community}"
        traces.append(
            go.Scattergl(x=x, y=y, mode="markers", name=name, marker=marker, customdata=rows, hovertemplate=hover)
        )
    return traces


def _layout(caption: str, names: list[str]) -> dict[str, Any]:
    at_once = {"mode": "immediate", "frame": {"duration": 700, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": name, "method": "animate", "args": [[name], at_once]} for name in names]
    play = {"label": "grow", "method": "animate", "args": [None, {**at_once, "fromcurrent": False}]}
    hidden = {"visible": False, "range": [-1.1, 1.1]}
    return {
        "title": {"text": f"{TITLE}<br><sub>{caption}<br>{LEGEND}</sub>"},
        "template": "plotly_white",
        "font": {"color": INK},
        "xaxis": hidden,
        "yaxis": {**hidden, "scaleanchor": "x"},
        "sliders": [{"steps": steps, "active": len(steps) - 1, "currentvalue": {"prefix": "vertices: "}}],
        "updatemenus": [{"type": "buttons", "buttons": [play], "x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}],
    }
