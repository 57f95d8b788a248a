"""Against what a user would pick instead: how long until the embedding is up to date again, and how good it is then.

    python benchmarks/peers.py [--json results/peers.json] [--figure results/figures/peers.svg] [--environment FOLDER]

On Blog and on a generated graph the arrivals come in three steps, the same for all. The peers come from PyPI into an
environment of their own, thrown away afterwards unless a folder is named for it. Compiling is left out for all where
it can be: PecanPy compiles whenever it walks.
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
from typing import Any

import numpy as np
from _environment import install, interpreter, own_variables, versions
from _peers_figure import save_figure
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.lab.evaluation.label_metrics import Classifier
from ripplevec.lab.experiments.record import describe_environment

REQUIREMENTS = (
    *("numpy==1.26.4", "scipy==1.17.1", "numba==0.68.1", "gensim==4.4.0"),
    *("pecanpy==2.0.9", "pycleora==3.2.1", "scikit-network==0.33.5"),
)
NAMED = ("pecanpy", "gensim", "pycleora", "scikit-network", "numpy", "scipy", "numba")
OURS, ONE_BY_ONE = "ripplevec", "ripplevec, one at a time"
TRAINED_ON = 3_000  # vertices of the start, at most half of it: the classifier is not what is measured

Rows = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """How a graph is used: columns, what the walks of node2vec are like, and seeds."""

    columns: int
    walks: int
    length: int
    window: int
    seeds: int


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A graph with its vertices in order of arrival: sizes at the start and after every step."""

    edges: NDArray[np.int64]
    labels: NDArray[np.int64]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, dataset: datasets.Dataset, order: NDArray[np.int64], steps: tuple[int, ...]) -> Stream:
        """The vertices in this order, the last of them in steps."""
        place = np.argsort(order)
        renamed = datasets.Dataset.from_pairs(dataset.name, place[dataset.edges], dataset.labels[order])
        sizes = np.cumsum([dataset.vertices - sum(steps), *steps])
        return cls(renamed.edges, renamed.labels, tuple(sizes.tolist()))

    def between(self, first: int, last: int) -> NDArray[np.int64]:
        """The edges that the arrivals from `first` to before `last` bring."""
        return self.edges[slice(*np.searchsorted(self.edges[:, 1], [first, last]))]


def blog(seed: int) -> Stream:
    """Blog in random order; half of it is the start, and there are not ten thousand to arrive."""
    dataset = datasets.load("blog")
    arrivals = dataset.vertices - dataset.vertices // 2
    return Stream.of(dataset, np.random.default_rng(seed).permutation(dataset.vertices), (1, 100, arrivals - 101))


def communities(seed: int, vertices: int) -> Stream:
    """Communities that grow, in their own order of arrival; two edges in five lead anywhere."""
    dataset = growing_communities(vertices, communities=60, noise=0.4, seed=seed)
    return Stream.of(dataset, np.arange(vertices), (1, 100, vertices // 10))


def ours(stream: Stream, setting: Setting, seed: int, whole: bool) -> Iterator[tuple[float, Rows | None]]:
    """Ripplevec as it is by default: seconds of the start, then of every step with the vectors after it.

    A step is one call, or one call per arrival; its time ends when the vectors can be read.
    """
    model = Embedder(dim=setting.columns, seed=seed)
    began = time.perf_counter()
    model.fit(stream.between(0, stream.sizes[0]))
    yield time.perf_counter() - began, None
    for known, vertices in zip(stream.sizes, stream.sizes[1:], strict=False):
        edges = stream.between(known, vertices)
        ends = np.searchsorted(edges[:, 1], np.arange(known, vertices), side="right").tolist()
        around = [part.tolist() for part in np.split(edges[:, 0], ends[:-1])]
        began = time.perf_counter()
        if whole:
            _ = model.partial_fit(edges).vectors
        else:
            for vertex, neighbors in enumerate(around, known):
                model.add_vertex(vertex, neighbors)
        yield time.perf_counter() - began, vectors_of(model, vertices)


def vectors_of(model: Embedder, vertices: int) -> Rows:
    """A row per vertex; those that have not been seen, having no edges, are zero."""
    rows = np.zeros((vertices, model.dim), np.float32)
    rows[model.ids] = model.to_numpy()
    return rows


def theirs(python: Path, stream: Stream, setting: Setting, seed: int) -> Iterator[tuple[dict[str, Any], Rows | None]]:
    """What the peers report, with the vectors after every step; they wait while these are looked at."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        numbers = {**asdict(setting), "seed": seed}
        np.savez(place / "task.npz", edges=stream.edges, sizes=np.array(stream.sizes), **numbers)
        script = Path(__file__).with_name("_peers.py")
        command = [str(python), str(script), str(place / "task.npz"), folder]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes, env=own_variables(PYTHONHASHSEED="0")) as process:
            for line in process.stdout:
                told = json.loads(line)
                yield told, np.load(place / f"{told['step']}.npy") if "step" in told else None
                process.stdin.write("\n")
                process.stdin.flush()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


def score(vectors: Rows, stream: Stream, seed: int) -> dict[str, float]:
    """Micro-F1 of a classifier trained on part of the start, as its vectors are now: on all others, on newcomers."""
    start = stream.sizes[0]
    order = np.random.default_rng(seed).permutation(start)
    cut = min(TRAINED_ON, start // 2)
    classifier = Classifier.train(vectors[order[:cut]], stream.labels[order[:cut]])
    newcomers = np.arange(start, len(vectors))
    tested = {"micro": np.concatenate([order[cut:], newcomers]), "newcomers": newcomers}
    return {name: classifier.score(vectors[rows], stream.labels[rows]).micro for name, rows in tested.items()}


class Table:
    """What is known so far of every system on a graph: a list per figure, an entry per seed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.systems: dict[str, dict[str, Any]] = {}

    def begin(self, system: str, seconds: float) -> None:
        """Note the start of a system for another seed."""
        if self.failed(system):
            return
        row = self.systems.setdefault(system, {"start": [], "seconds": [], "micro": [], "newcomers": []})
        row["start"].append(seconds)
        for figure in ("seconds", "micro", "newcomers"):
            row[figure].append([])
        self.say(system, f"start {seconds:.2f} s")

    def add(self, system: str, seconds: float, scores: dict[str, float]) -> None:
        """Note a step."""
        if self.failed(system):
            return
        row = self.systems[system]
        for figure, value in {"seconds": seconds, **scores}.items():
            row[figure][-1].append(value)
        said = f"up to date in {seconds:.4f} s, micro-F1 {scores['micro']:.3f}, newcomers {scores['newcomers']:.3f}"
        self.say(system, f"step {len(row['seconds'][-1])}: {said}")

    def failed(self, system: str) -> bool:
        """Whether a system could not be run, with whatever seed."""
        return "failed" in self.systems.get(system, {})

    def fail(self, system: str, why: str) -> None:
        """Note that a system could not be run; it has no figures then."""
        self.systems[system] = {"failed": why}
        self.say(system, why)

    def say(self, system: str, what: str) -> None:
        """Show how far it is."""
        print(f"{self.name:12} {system:28} {what}", flush=True)


def measure(table: Table, python: Path, stream: Stream, setting: Setting, seed: int) -> None:
    """All systems on one stream."""
    for system, whole in ((OURS, True), (ONE_BY_ONE, False)):
        for seconds, vectors in ours(stream, setting, seed, whole):
            if vectors is None:
                table.begin(system, seconds)
            else:
                table.add(system, seconds, score(vectors, stream, seed))
    for told, vectors in theirs(python, stream, setting, seed):
        if "failed" in told:
            table.fail(told["system"], told["failed"])
        elif vectors is None:
            table.begin(told["system"], told["seconds"])
        else:
            table.add(told["system"], told["seconds"], score(vectors, stream, seed))


def warm_up(setting: Setting) -> None:
    """Compile what ours needs: small batches and large ones take different ways."""
    stream = blog(0)
    for whole in (True, False):
        for _ in ours(stream, setting, 0, whole):
            pass


def graph_record(table: Table, stream: Stream, setting: Setting) -> dict[str, Any]:
    """What was measured on a graph."""
    sizes = {"vertices": stream.sizes[-1], "edges": len(stream.edges), "start": stream.sizes[0]}
    steps = np.diff(stream.sizes).tolist()
    return {**sizes, "arrivals": steps, "settings": asdict(setting), "systems": table.systems}


def measured(python: Path, vertices: int, seeds: int) -> dict[str, Any]:
    """Both graphs, all seeds."""
    began, where = time.perf_counter(), describe_environment()
    installed = versions(python)
    graphs = {}
    plan = {
        "Blog": (blog, Setting(columns=90, walks=10, length=40, window=7, seeds=seeds)),
        "communities": (lambda seed: communities(seed, vertices), Setting(64, walks=10, length=20, window=5, seeds=1)),
    }
    for name, (make, setting) in plan.items():
        table = Table(name)
        warm_up(setting)
        for seed in range(setting.seeds):
            stream = make(seed)
            measure(table, python, stream, setting, seed)
        graphs[name] = graph_record(table, stream, setting)
    took = time.perf_counter() - began
    peers = {name: installed[name] for name in NAMED}
    return {"environment": where, "peers": peers, "trained_on": TRAINED_ON, "took": took, "graphs": graphs}


def main() -> int:
    """Install, measure, write down if asked; 1 where a peer failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=100_000, help="of the generated graph; a tenth arrives last")
    parser.add_argument("--seeds", type=int, default=3, help="on Blog; the generated graph has one")
    parser.add_argument("--environment", type=Path, help="where the peers are installed, to be used again")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = options.environment or Path(folder) / "venv"
        python = interpreter(place) if interpreter(place).exists() else install(place, REQUIREMENTS)
        record = measured(python, options.vertices, options.seeds)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.figure:
        save_figure(record, options.figure)
    print(f"{record['took'] / 60:.1f} minutes on {os.cpu_count()} cores")
    return int(any("failed" in row for graph in record["graphs"].values() for row in graph["systems"].values()))


if __name__ == "__main__":
    sys.exit(main())
