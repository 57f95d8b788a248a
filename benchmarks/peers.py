"""Benchmark against alternative systems: seconds until the embedding is up to date again, and its quality then.

    python benchmarks/peers.py [--json results/peers.json] [--figure results/figures/peers.svg] [--environment FOLDER]

Vertices arrive in three steps, the same for all systems, on Blog and on a generated graph. The alternatives are
installed from PyPI into a virtual environment, which is temporary unless --environment names a folder. Compilation is
excluded for all systems where possible; PecanPy compiles whenever it walks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from _venv import create_venv, interpreter_path, isolated_variables, list_versions
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.lab.evaluation.label_metrics import Classifier
from ripplevec.lab.experiments.plots.style import assign_styles, figure_style, render_svg
from ripplevec.lab.experiments.record import describe_environment

REQUIREMENTS = (
    *("numpy==1.26.4", "scipy==1.17.1", "numba==0.68.1", "gensim==4.4.0"),
    *("pecanpy==2.0.9", "pycleora==3.2.1", "scikit-network==0.33.5"),
)
RECORDED_VERSIONS = ("pecanpy", "gensim", "pycleora", "scikit-network", "numpy", "scipy", "numba")
RIPPLEVEC, RIPPLEVEC_ONE_BY_ONE = "ripplevec", "ripplevec, one at a time"
TRAIN_SIZE = 3_000  # initial vertices to train the classifier on, at most half of them

Vectors = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings for a graph: columns of the embedding, parameters of node2vec, and number of seeds."""

    columns: int
    walks: int
    length: int
    window: int
    seeds: int


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalStream:
    """A graph whose vertices are numbered by arrival, and its sizes at the start and after every step."""

    edges: NDArray[np.int64]
    labels: NDArray[np.int64]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, dataset: datasets.Dataset, order: NDArray[np.int64], steps: tuple[int, ...]) -> ArrivalStream:
        """Create a stream with the vertices in this order, the last ones in steps."""
        arrival = np.argsort(order)
        renumbered = datasets.Dataset.from_pairs(dataset.name, arrival[dataset.edges], dataset.labels[order])
        sizes = np.cumsum([dataset.vertices - sum(steps), *steps])
        return cls(renumbered.edges, renumbered.labels, tuple(sizes.tolist()))

    def edges_between(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the edges of the arrivals from `first` to before `last`."""
        return self.edges[slice(*np.searchsorted(self.edges[:, 1], [first, last]))]


def stream_blog(seed: int) -> ArrivalStream:
    """Stream Blog in random order; half of it is the start, the other half (fewer than 10,000) arrives."""
    dataset = datasets.load("blog")
    arrivals = dataset.vertices - dataset.vertices // 2
    return ArrivalStream.of(
        dataset, np.random.default_rng(seed).permutation(dataset.vertices), (1, 100, arrivals - 101)
    )


def stream_communities(seed: int, vertices: int) -> ArrivalStream:
    """Stream growing communities in their order of arrival; two of five edges have a random target."""
    dataset = growing_communities(vertices, communities=60, noise=0.4, seed=seed)
    return ArrivalStream.of(dataset, np.arange(vertices), (1, 100, vertices // 10))


def run_ripplevec(
    stream: ArrivalStream, setting: Setting, seed: int, batched: bool
) -> Iterator[tuple[float, Vectors | None]]:
    """Run Ripplevec with default parameters; yield the seconds of the start, then seconds and vectors of every step.

    A step is one batch, or one call per arrival; its time ends when the vectors can be read.
    """
    model = Embedder(dim=setting.columns, seed=seed)
    began = time.perf_counter()
    model.fit(stream.edges_between(0, stream.sizes[0]))
    yield time.perf_counter() - began, None
    for previous, vertices in zip(stream.sizes, stream.sizes[1:], strict=False):
        edges = stream.edges_between(previous, vertices)
        ends = np.searchsorted(edges[:, 1], np.arange(previous, vertices), side="right").tolist()
        neighbor_lists = [part.tolist() for part in np.split(edges[:, 0], ends[:-1])]
        began = time.perf_counter()
        if batched:
            _ = model.partial_fit(edges).vectors
        else:
            for vertex, neighbors in enumerate(neighbor_lists, previous):
                model.add_vertex(vertex, neighbors)
        yield time.perf_counter() - began, vectors_by_vertex(model, vertices)


def vectors_by_vertex(model: Embedder, vertices: int) -> Vectors:
    """Return a row per vertex; rows of vertices without edges, which the model does not know, are zero."""
    rows = np.zeros((vertices, model.dim), np.float32)
    rows[np.array(model.ids, np.int64)] = model.to_numpy()
    return rows


def run_peers(
    python: Path, stream: ArrivalStream, setting: Setting, seed: int
) -> Iterator[tuple[dict[str, Any], Vectors | None]]:
    """Run the alternatives in a process; yield their reports, with the vectors after every step.

    The process waits after each report, so that scoring does not affect its times.
    """
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        numbers = {**asdict(setting), "seed": seed}
        np.savez(folder / "task.npz", edges=stream.edges, sizes=np.array(stream.sizes), **numbers)
        script = Path(__file__).with_name("_peer_process.py")
        command = [str(python), str(script), str(folder / "task.npz"), folder_name]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes, env=isolated_variables(PYTHONHASHSEED="0")) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                report = json.loads(line)
                yield report, np.load(folder / f"{report['step']}.npy") if "step" in report else None
                process.stdin.write("\n")
                process.stdin.flush()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


def score_vectors(vectors: Vectors, stream: ArrivalStream, seed: int) -> dict[str, float]:
    """Return micro-F1 of a classifier trained on a part of the start: on all other vertices, and on the new ones.

    The classifier is trained on the current vectors.
    """
    start = stream.sizes[0]
    order = np.random.default_rng(seed).permutation(start)
    cut = min(TRAIN_SIZE, start // 2)
    classifier = Classifier.train(vectors[order[:cut]], stream.labels[order[:cut]])
    new = np.arange(start, len(vectors))
    tested = {"micro": np.concatenate([order[cut:], new]), "newcomers": new}
    return {name: classifier.score(vectors[rows], stream.labels[rows]).micro for name, rows in tested.items()}


class Results:
    """Results of every system on a graph so far: a list per metric, with an entry per seed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.systems: dict[str, dict[str, Any]] = {}

    def add_start(self, system: str, seconds: float) -> None:
        """Add the start of a system for the next seed."""
        if self.has_failed(system):
            return
        row = self.systems.setdefault(system, {"start": [], "seconds": [], "micro": [], "newcomers": []})
        row["start"].append(seconds)
        for metric in ("seconds", "micro", "newcomers"):
            row[metric].append([])
        self._print(system, f"start {seconds:.2f} s")

    def add_step(self, system: str, seconds: float, scores: dict[str, float]) -> None:
        """Add a step of a system."""
        if self.has_failed(system):
            return
        row = self.systems[system]
        for metric, value in {"seconds": seconds, **scores}.items():
            row[metric][-1].append(value)
        text = f"up to date in {seconds:.4f} s, micro-F1 {scores['micro']:.3f}, new vertices {scores['newcomers']:.3f}"
        self._print(system, f"step {len(row['seconds'][-1])}: {text}")

    def has_failed(self, system: str) -> bool:
        """Return whether a system failed for any seed."""
        return "failed" in self.systems.get(system, {})

    def add_failure(self, system: str, reason: str) -> None:
        """Replace the metrics of a system by the reason of its failure."""
        self.systems[system] = {"failed": reason}
        self._print(system, reason)

    def _print(self, system: str, text: str) -> None:
        print(f"{self.name:12} {system:28} {text}", flush=True)


def measure(results: Results, python: Path, stream: ArrivalStream, setting: Setting, seed: int) -> None:
    """Measure all systems on one stream."""
    for system, batched in ((RIPPLEVEC, True), (RIPPLEVEC_ONE_BY_ONE, False)):
        for seconds, vectors in run_ripplevec(stream, setting, seed, batched):
            if vectors is None:
                results.add_start(system, seconds)
            else:
                results.add_step(system, seconds, score_vectors(vectors, stream, seed))
    for report, vectors in run_peers(python, stream, setting, seed):
        if "failed" in report:
            results.add_failure(report["system"], report["failed"])
        elif vectors is None:
            results.add_start(report["system"], report["seconds"])
        else:
            results.add_step(report["system"], report["seconds"], score_vectors(vectors, stream, seed))


def warm_up(setting: Setting) -> None:
    """Compile the kernels of Ripplevec; small and large batches use different ones."""
    stream = stream_blog(0)
    for batched in (True, False):
        for _ in run_ripplevec(stream, setting, 0, batched):
            pass


def describe_graph(results: Results, stream: ArrivalStream, setting: Setting) -> dict[str, Any]:
    """Return the sizes, settings and results of a graph."""
    sizes = {"vertices": stream.sizes[-1], "edges": len(stream.edges), "start": stream.sizes[0]}
    steps = np.diff(stream.sizes).tolist()
    return {**sizes, "arrivals": steps, "settings": asdict(setting), "systems": results.systems}


def measure_graphs(python: Path, vertices: int, seeds: int) -> dict[str, Any]:
    """Measure both graphs with all seeds and return the record."""
    began, environment = time.perf_counter(), describe_environment()
    installed = list_versions(python)
    graphs = {}
    plan = {
        "Blog": (stream_blog, Setting(columns=90, walks=10, length=40, window=7, seeds=seeds)),
        "communities": (
            lambda seed: stream_communities(seed, vertices),
            Setting(64, walks=10, length=20, window=5, seeds=1),
        ),
    }
    for name, (create_stream, setting) in plan.items():
        results = Results(name)
        warm_up(setting)
        for seed in range(setting.seeds):
            stream = create_stream(seed)
            measure(results, python, stream, setting, seed)
        graphs[name] = describe_graph(results, stream, setting)
    took = time.perf_counter() - began
    peers = {name: installed[name] for name in RECORDED_VERSIONS}
    return {"environment": environment, "peers": peers, "trained_on": TRAIN_SIZE, "took": took, "graphs": graphs}


def save_figure(record: dict[str, Any], path: Path) -> None:
    """Plot seconds until up to date over the number of arrivals: a panel per graph, a line per system."""
    styles = assign_styles(next(iter(record["graphs"].values()))["systems"])
    with figure_style() as create_figure:
        figure = create_figure(11, 5.4)
        for panel, (name, graph) in enumerate(record["graphs"].items(), 1):
            axes = figure.add_subplot(1, len(record["graphs"]), panel)
            for system, results in graph["systems"].items():
                if "failed" not in results:
                    final_f1 = 100 * fmean(seed[-1] for seed in results["micro"])
                    medians = [median(seeds) for seeds in zip(*results["seconds"], strict=True)]
                    axes.plot(
                        graph["arrivals"],
                        medians,
                        label=f"{system} ({final_f1:.1f})",
                        **styles[system].line_arguments(),
                    )
            axes.set(xscale="log", yscale="log", xlabel="arrivals", ylabel="seconds until up to date")
            axes.set_title(f"{name}, {graph['vertices']:,} vertices (final micro-F1 in %)")
            axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_svg(figure, path.stem), encoding="utf-8")


def main() -> int:
    """Install, measure, and write record and plot if requested; return 1 if a system failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--vertices", type=int, default=100_000, help="size of the generated graph; a tenth arrives in the last step"
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds on Blog; the generated graph has one")
    parser.add_argument("--environment", type=Path, help="folder of the virtual environment, to be reused")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv_folder = options.environment or Path(folder) / "venv"
        python = interpreter_path(venv_folder)
        if not python.exists():
            create_venv(venv_folder, REQUIREMENTS)
        record = measure_graphs(python, options.vertices, options.seeds)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.figure:
        save_figure(record, options.figure)
    print(f"{record['took'] / 60:.1f} minutes on {os.cpu_count()} cores")
    return int(any("failed" in row for graph in record["graphs"].values() for row in graph["systems"].values()))


if __name__ == "__main__":
    sys.exit(main())
