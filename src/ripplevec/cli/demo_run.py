"""What `ripplevec demo` measures: a stream of arrivals under both rules, against recomputing everything at the end."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch
from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.io.rebatch import concatenate
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.lab.evaluation.label_metrics import Classifier
from ripplevec.lab.evaluation.label_metrics import cluster

if TYPE_CHECKING:
    from rich.progress import Progress

COMMUNITIES, EDGES_PER_VERTEX, NOISE = 10, 5, 0.3
DIM = 64
START = 0.2
MOMENTS = (0.2, 0.4, 0.6, 0.8, 1.0)
SHOWN_EVERY = 100

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Line:
    """One way to get vectors, what they are worth, and what they cost."""

    name: str
    micro_f1: float
    nmi: float
    seconds: float
    micros_per_arrival: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """What the demo found; `vectors` are those of all vertices so far, at a few moments of the stream."""

    edges: int
    arrivals: int
    lines: list[Line]
    vectors: list[Vectors]
    labels: NDArray[np.int64]

    def summary(self) -> dict[str, Any]:
        """The figures, for a program."""
        sizes = {"vertices": len(self.labels), "edges": self.edges, "arrivals": self.arrivals}
        return {**sizes, "results": [asdict(line) for line in self.lines]}

    def caption(self) -> str:
        """The figures in one sentence."""
        _, end, _, again = self.lines
        return (
            f"{self.arrivals:,} arrivals, {end.micros_per_arrival:,.0f} µs each · micro-F1 {end.micro_f1:.1%} at the "
            f"end, {again.micro_f1:.1%} when all is recomputed ({again.seconds:.1f} s)"
        )


def run(vertices: int, seed: int, bars: Progress) -> Result:
    """Stream the graph under both rules, recompute at the end, and judge the vectors."""
    _need_extras()
    warm_up(bars)
    data = growing_communities(vertices, COMMUNITIES, EDGES_PER_VERTEX, NOISE, seed)
    ripple = Stream(data, Embedder(dim=DIM, seed=seed)).run("ripple", bars)
    paper = Stream(data, Embedder(dim=DIM, rule="paper", seed=seed)).run("paper", bars)
    task = bars.add_task("again", total=1, note="the whole graph at once")
    began = perf_counter()
    again = Embedder(dim=DIM, seed=seed).fit(first_part(data, vertices)).to_numpy()
    seconds = perf_counter() - began
    bars.advance(task)
    lines = [
        ripple.line("ripple, on arrival", ripple.moments[0], ripple.on_arrival),
        ripple.line("ripple, at the end", *ripple.at_the_end()),
        paper.line("paper, at the end", *paper.at_the_end()),
        Line("all recomputed", *judge(again[: ripple.first], again[ripple.first :], data.labels), seconds, None),
    ]
    return Result(len(data.edges), vertices - ripple.first, lines, ripple.moments, data.labels)


class Stream:
    """A data set that arrives vertex by vertex, and the vectors a model gives to it."""

    def __init__(self, data: Dataset, model: Embedder) -> None:
        self.data, self.model = data, model
        self.first = round(START * data.vertices)
        self.on_arrival = np.zeros((data.vertices - self.first, model.dim), np.float32)
        self.moments: list[Vectors] = []
        self.seconds = 0.0

    def run(self, name: str, bars: Progress) -> Stream:
        """Start on the first vertices, then add one after another."""
        self.model.fit(first_part(self.data, self.first))
        task = bars.add_task(name, total=len(self.on_arrival), note="")
        last = self.first
        for stop in (round(share * self.data.vertices) for share in MOMENTS):
            for first in range(last, stop, SHOWN_EVERY):
                self._arrive(first, min(first + SHOWN_EVERY, stop))
                arrived = min(first + SHOWN_EVERY, stop) - self.first
                rate = f"{arrived / self.seconds:,.0f} arrivals/s, {self.seconds / arrived * 1e6:,.0f} µs each"
                bars.update(task, completed=arrived, note=rate)
            self.moments.append(self.model.vectors(range(stop)))
            last = stop
        return self

    def _arrive(self, first: int, last: int) -> None:
        older, newer = self.data.edges.T
        cuts = np.searchsorted(newer, np.arange(first, last + 1))
        neighbors = [older[cuts[i] : cuts[i + 1]].tolist() for i in range(last - first)]
        began = perf_counter()
        vectors = [self.model.add_vertex(first + i, near) for i, near in enumerate(neighbors)]
        self.seconds += perf_counter() - began
        self.on_arrival[first - self.first : last - self.first] = vectors

    def at_the_end(self) -> tuple[Vectors, Vectors]:
        """The last vectors: of the vertices of the start, and of those that arrived."""
        return self.moments[-1][: self.first], self.moments[-1][self.first :]

    def line(self, name: str, train: Vectors, test: Vectors) -> Line:
        """What vectors of this stream are worth, and what an arrival cost."""
        micros = self.seconds / len(self.on_arrival) * 1e6
        return Line(name, *judge(train, test, self.data.labels), self.seconds, micros)


def first_part(data: Dataset, size: int) -> Batch:
    """The first vertices of a data set, also those without edges, and the edges between them."""
    edges = data.edges[data.edges[:, 1] < size]
    return concatenate([Batch.vertices(np.arange(size)), Batch.of(edges[:, 0], edges[:, 1])])


def judge(train: Vectors, test: Vectors, labels: NDArray[np.int64]) -> tuple[float, float]:
    """Micro-F1 of a classifier trained on the vertices of the start, and NMI of k-means, both on the arrivals."""
    truth = labels[len(train) :]
    return Classifier.train(train, labels[: len(train)]).score(test, truth).micro, cluster(test, truth, 3).nmi


def warm_up(bars: Progress) -> None:
    """Have the kernels compiled before anything is timed; after the first time they come from a cache."""
    task = bars.add_task("warm up", total=2, note="compiles once")
    data = growing_communities(500, COMMUNITIES, EDGES_PER_VERTEX, NOISE)
    for rule in ("ripple", "paper"):
        model = Embedder(dim=DIM, rule=rule).fit(first_part(data, 250))
        for vertex in range(250, 350):
            model.add_vertex(vertex, [vertex - 1, vertex - 2])
        bars.advance(task)
    bars.remove_task(task)


def table(result: Result) -> None:
    """The figures, for a person."""
    from rich.console import Console
    from rich.table import Table

    title = f"{len(result.labels):,} vertices, {result.edges:,} edges, {result.arrivals:,} arrivals"
    shown = Table(title=title)
    shown.add_column("vectors", no_wrap=True)
    for column in ("micro-F1", "NMI", "seconds", "µs/arrival", "arrivals/s"):
        shown.add_column(column, justify="right")
    for line in result.lines:
        micros = line.micros_per_arrival
        cost = [f"{micros:,.0f}", f"{1e6 / micros:,.0f}"] if micros else ["–", "–"]
        shown.add_row(line.name, f"{line.micro_f1:.1%}", f"{line.nmi:.3f}", f"{line.seconds:.2f}", *cost)
    Console().print(shown)


def _need_extras() -> None:
    try:
        import matplotlib  # noqa: F401
        import plotly  # noqa: F401
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("ripplevec demo", "demo") from error
