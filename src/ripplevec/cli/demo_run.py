"""The demo of `ripplevec demo`: stream a growing graph, compare with recomputation, and draw maps of the vectors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch
from ripplevec.cli.console import print_table
from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.io.rebatch import concatenate
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.lab.evaluation.label_metrics import Classifier, cluster, normalize_rows
from ripplevec.util.checked_directory import atomic_write
from ripplevec.util.compilation import working_clock
from ripplevec.util.compile_ahead import wait_for_all_kernels

if TYPE_CHECKING:
    from rich.progress import Progress

COMMUNITIES, EDGES_PER_VERTEX, NOISE = 10, 5, 0.3
DIM = 64
START_SHARE = 0.2
SNAPSHOT_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the vertices; vectors are copied when they have arrived
ARRIVALS_PER_PROGRESS_UPDATE = 100

COLORS = (
    "#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2",
    "#6cc5b0", "#9c6b4e", "#ff8ab7", "#97bbf5", "#5b6470",
)  # fmt: skip
SHARPNESS = 4.0  # of the softmax that places a vertex between the centers
TEXT_COLOR, CAPTION_COLOR = "#1f2430", "#8a91a0"
TITLE = "Ripplevec: the graph grows, the map stays stable"
LEGEND = "color: true community · position: similarity of the vector to ten k-means centers"

Vectors = NDArray[np.float32]
Points = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Score:
    """Quality and cost of one way to compute the vectors."""

    name: str
    micro_f1: float
    nmi: float
    seconds: float
    micros_per_arrival: float


@dataclass(frozen=True, slots=True)
class Result:
    """Result of the demo; `snapshots` hold the vectors of all vertices so far at several times of the stream."""

    edges: int
    arrivals: int
    scores: list[Score]
    snapshots: list[Vectors]
    labels: Labels

    def summarize(self) -> dict[str, Any]:
        """Return sizes and scores as JSON data."""
        sizes = {"vertices": len(self.labels), "edges": self.edges, "arrivals": self.arrivals}
        return {**sizes, "results": [asdict(score) for score in self.scores]}

    def format_caption(self) -> str:
        """Format the most important scores as one line."""
        _, streamed, _, recomputed = self.scores
        return (
            f"{self.arrivals:,} arrivals, {streamed.micros_per_arrival:,.0f} µs each · "
            f"micro-F1 {streamed.micro_f1:.1%} at the end, "
            f"{recomputed.micro_f1:.1%} when recomputed ({recomputed.seconds:.1f} s)"
        )


def run_demo(vertices: int, seed: int, bars: Progress) -> Result:
    """Stream the graph under both rules, recompute the embedding at the end, and score all vectors."""
    _require_extras()
    warm_up(bars)
    data = growing_communities(vertices, COMMUNITIES, EDGES_PER_VERTEX, NOISE, seed)
    ripple = StreamRun(data, Embedder(dim=DIM, seed=seed)).run("ripple", bars)
    paper = StreamRun(data, Embedder(dim=DIM, rule="paper", seed=seed)).run("paper", bars)
    task = bars.add_task("recompute", total=1, note="the whole graph at once")
    began = working_clock()
    recomputed = Embedder(dim=DIM, seed=seed).fit(select_first_vertices(data, vertices)).to_numpy()
    seconds = working_clock() - began
    bars.advance(task)
    train, test = recomputed[: ripple.start_size], recomputed[ripple.start_size :]
    scores = [
        ripple.score("ripple, on arrival", ripple.snapshots[0], ripple.vectors_on_arrival),
        ripple.score("ripple, at the end", *ripple.split_final_vectors()),
        paper.score("paper, at the end", *paper.split_final_vectors()),
        # To be up to date after every arrival, everything would have to be recomputed each time.
        Score("all recomputed", *score_vectors(train, test, data.labels), seconds, 1e6 * seconds),
    ]
    return Result(len(data.edges), vertices - ripple.start_size, scores, ripple.snapshots, data.labels)


class StreamRun:
    """Streams a data set into a model vertex by vertex, and collects the vectors and the time."""

    def __init__(self, data: Dataset, model: Embedder) -> None:
        self.data, self.model = data, model
        self.start_size = round(START_SHARE * data.vertices)
        self.vectors_on_arrival = np.zeros((data.vertices - self.start_size, model.dim), np.float32)
        self.snapshots: list[Vectors] = []
        self.seconds = 0.0

    def run(self, name: str, bars: Progress) -> StreamRun:
        """Fit the first vertices, then add the others one by one."""
        self.model.fit(select_first_vertices(self.data, self.start_size))
        task = bars.add_task(name, total=len(self.vectors_on_arrival), note="")
        last = self.start_size
        for stop in (round(share * self.data.vertices) for share in SNAPSHOT_SHARES):
            for first in range(last, stop, ARRIVALS_PER_PROGRESS_UPDATE):
                self._add_vertices(first, min(first + ARRIVALS_PER_PROGRESS_UPDATE, stop))
                arrived = min(first + ARRIVALS_PER_PROGRESS_UPDATE, stop) - self.start_size
                rate = f"{arrived / self.seconds:,.0f} arrivals/s, {self.seconds / arrived * 1e6:,.0f} µs each"
                bars.update(task, completed=arrived, note=rate)
            self.snapshots.append(self.model.vectors(range(stop)))
            last = stop
        return self

    def _add_vertices(self, first: int, stop: int) -> None:
        older, newer = self.data.edges.T
        bounds = np.searchsorted(newer, np.arange(first, stop + 1))
        neighbor_lists = [older[bounds[i] : bounds[i + 1]].tolist() for i in range(stop - first)]
        began = working_clock()
        vectors = [self.model.add_vertex(first + i, neighbors) for i, neighbors in enumerate(neighbor_lists)]
        self.seconds += working_clock() - began
        self.vectors_on_arrival[first - self.start_size : stop - self.start_size] = vectors

    def split_final_vectors(self) -> tuple[Vectors, Vectors]:
        """Return the final vectors of the initial vertices, and those of the vertices that arrived."""
        return self.snapshots[-1][: self.start_size], self.snapshots[-1][self.start_size :]

    def score(self, name: str, train: Vectors, test: Vectors) -> Score:
        """Score vectors of this stream."""
        micros = self.seconds / len(self.vectors_on_arrival) * 1e6
        return Score(name, *score_vectors(train, test, self.data.labels), self.seconds, micros)


def select_first_vertices(data: Dataset, size: int) -> Batch:
    """Return the first vertices of a data set, including isolated ones, and the edges between them."""
    edges = data.edges[data.edges[:, 1] < size]
    return concatenate([Batch.vertices(np.arange(size)), Batch.of(edges[:, 0], edges[:, 1])])


def score_vectors(train: Vectors, test: Vectors, labels: Labels) -> tuple[float, float]:
    """Return micro-F1 of a classifier trained on the initial vertices, and NMI of k-means, both on the arrivals."""
    test_labels = labels[len(train) :]
    classifier = Classifier.train(train, labels[: len(train)])
    return classifier.score(test, test_labels).micro, cluster(test, test_labels, 3).nmi


def warm_up(bars: Progress) -> None:
    """Compile the kernels before anything is timed; later runs load them from a cache."""
    task = bars.add_task("warm up", total=2, note="compiles once")
    data = growing_communities(500, COMMUNITIES, EDGES_PER_VERTEX, NOISE)
    for rule in ("ripple", "paper"):
        model = Embedder(dim=DIM, rule=rule).fit(select_first_vertices(data, 250))
        wait_for_all_kernels()
        for vertex in range(250, 350):
            model.add_vertex(vertex, [vertex - 1, vertex - 2])
        bars.advance(task)
    bars.remove_task(task)


def print_summary(result: Result) -> None:
    """Print the scores as a table."""
    rows = []
    for score in result.scores:
        micros, rate = score.micros_per_arrival, 1e6 / score.micros_per_arrival
        cost = f"{score.seconds:.2f}", f"{micros:,.0f}", f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        rows.append((score.name, f"{score.micro_f1:.1%}", f"{score.nmi:.3f}", *cost))
    title = f"{len(result.labels):,} vertices, {result.edges:,} edges, {result.arrivals:,} arrivals"
    print_table(title, ["vectors"], ["micro-F1", "NMI", "seconds", "µs/arrival", "arrivals/s"], rows)


def _require_extras() -> None:
    try:
        import matplotlib  # noqa: F401
        import plotly  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("ripplevec demo", "demo") from error


def project_vectors(snapshots: list[Vectors], labels: Labels) -> list[Points]:
    """Place every vector of every snapshot in the plane, between k-means centers, by its similarity to each center.

    The centers are those of the last snapshot and lie on a circle. Of the labels only their number is used: if the
    colors separate, the vectors separate the communities.
    """
    from scipy.special import softmax
    from sklearn.cluster import KMeans

    count = len(np.unique(labels))
    kmeans = KMeans(count, n_init=8, random_state=0).fit(normalize_rows(snapshots[-1]))
    centers = normalize_rows(kmeans.cluster_centers_)
    angles = 2 * np.pi * np.arange(count) / count
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    maps = [softmax(SHARPNESS * normalize_rows(vectors) @ centers.T, axis=1) @ corners for vectors in snapshots]
    return [points / np.abs(maps[-1]).max() for points in maps]


def write_png(path: Path, maps: list[Points], labels: Labels, caption: str) -> None:
    """Draw the first, the middle and the last map side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 6), facecolor="white")
    FigureCanvasAgg(figure)
    for panel, index in enumerate((0, len(maps) // 2, len(maps) - 1)):
        _draw_map(figure.add_axes((panel / 3 + 0.01, 0.02, 0.313, 0.8)), maps[index], labels)
    figure.text(0.02, 0.93, TITLE, fontsize=19, color=TEXT_COLOR, weight="bold")
    figure.text(0.02, 0.88, caption, fontsize=12, color=CAPTION_COLOR)
    figure.text(0.98, 0.88, LEGEND, fontsize=10, color=CAPTION_COLOR, ha="right")
    with atomic_write(path) as part:
        figure.savefig(part, dpi=110, format="png")


def _draw_map(axes: Any, points: Points, labels: Labels) -> None:
    order = np.random.default_rng(0).permutation(len(points))  # so that no community covers the others
    colors = np.array(COLORS)[labels[order] % len(COLORS)]
    axes.scatter(*points[order].T, c=colors, s=5, alpha=0.55, linewidths=0)
    axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal")
    axes.set_title(f"{len(points):,} vertices", fontsize=12, color=TEXT_COLOR)
    axes.axis("off")


def write_html(path: Path, maps: list[Points], labels: Labels, caption: str) -> None:
    """Write a self-contained page with a slider over the maps and vertex names under the pointer."""
    import plotly.graph_objects as go

    frames = [go.Frame(data=_create_traces(points, labels), name=f"{len(points):,}") for points in maps]
    layout = _create_layout(caption, [frame.name for frame in frames])
    figure = go.Figure(data=_create_traces(maps[-1], labels), frames=frames, layout=layout)
    with atomic_write(path) as part:
        figure.write_html(part, include_plotlyjs=True, full_html=True, auto_play=False)


def _create_traces(points: Points, labels: Labels) -> list[Any]:
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


def _create_layout(caption: str, frame_names: list[str]) -> dict[str, Any]:
    animation = {"mode": "immediate", "frame": {"duration": 700, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": name, "method": "animate", "args": [[name], animation]} for name in frame_names]
    play = {"label": "play", "method": "animate", "args": [None, {**animation, "fromcurrent": False}]}
    hidden_axis = {"visible": False, "range": [-1.1, 1.1]}
    return {
        "title": {"text": f"{TITLE}<br><sub>{caption}<br>{LEGEND}</sub>"},
        "template": "plotly_white",
        "font": {"color": TEXT_COLOR},
        "xaxis": hidden_axis,
        "yaxis": {**hidden_axis, "scaleanchor": "x"},
        "sliders": [{"steps": steps, "active": len(steps) - 1, "currentvalue": {"prefix": "vertices: "}}],
        "updatemenus": [{"type": "buttons", "buttons": [play], "x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}],
    }
