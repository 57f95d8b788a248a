"""The alternative systems of peers.py, used as documented. Runs in their virtual environment, without our package.

    python _peer_process.py TASK.npz FOLDER

Every system updates its embedding step by step. After each step it prints a line of JSON with the seconds and stores
the vectors in FOLDER. Compilers and caches are warmed up beforehand on a small graph.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pycleora
from gensim.models import Word2Vec
from pecanpy.pecanpy import FirstOrderUnweighted
from scipy.sparse import csr_matrix
from sknetwork.embedding import GSVD, Spectral

WORKERS = os.cpu_count() or 1
WARM_UP_SIZE = 400  # vertices


@dataclass(frozen=True, eq=False)
class Task:
    """A graph whose vertices are numbered by arrival, its sizes at the start and after every step, and parameters.

    Edges are sorted by their later endpoint, which is in the second column.
    """

    edges: Any
    sizes: tuple[int, ...]
    columns: int
    walks: int
    length: int
    window: int
    seed: int

    def edges_between(self, first: int, last: int) -> Any:
        """Return the edges of the arrivals from `first` to before `last`."""
        return self.edges[slice(*np.searchsorted(self.edges[:, 1], [first, last]))]


class Peer(Protocol):
    """A system that keeps an embedding up to date."""

    def __init__(self, task: Task) -> None: ...

    def start(self) -> None:
        """Embed the initial graph."""

    def update(self, previous: int, vertices: int) -> None:
        """Update the embedding with the arrivals from `previous` to before `vertices`."""

    def vectors(self, vertices: int) -> Any:
        """Return a row per vertex."""


class NeighborMean:
    """node2vec (PecanPy) of the initial graph; a new vertex gets the mean of its neighbors, other vectors stay."""

    def __init__(self, task: Task) -> None:
        self.task, self.rows = task, np.zeros((task.sizes[-1], task.columns), np.float32)

    def start(self) -> None:
        self.rows[: self.task.sizes[0]] = vectors_by_vertex(train_start(self.task), self.task.sizes[0])

    def update(self, previous: int, vertices: int) -> None:
        edges = self.task.edges_between(previous, vertices)
        new = np.arange(previous, vertices)
        ends = np.searchsorted(edges[:, 1], new, side="right")
        for vertex, begin, end in zip(new, np.r_[0, ends[:-1]], ends, strict=True):
            if end > begin:
                self.rows[vertex] = self.rows[edges[begin:end, 0]].mean(axis=0)

    def vectors(self, vertices: int) -> Any:
        return self.rows[:vertices]


class Retrained:
    """node2vec (PecanPy), retrained on the whole graph."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None: ...

    def update(self, previous: int, vertices: int) -> None:
        self.model = train(self.task, vertices)

    def vectors(self, vertices: int) -> Any:
        return vectors_by_vertex(self.model, vertices)


class WarmStart:
    """Skip-gram that continues training on walks from new vertices and their neighbors, like dynnode2vec."""

    def __init__(self, task: Task) -> None:
        self.task, self.random = task, random.Random(task.seed)
        self.neighbors: list[list[int]] = [[] for _ in range(task.sizes[-1])]
        self.names = [str(vertex) for vertex in range(task.sizes[-1])]

    def start(self) -> None:
        self.model = train_start(self.task)
        self.model.sample = 0  # in a small corpus all words look frequent, and downsampling would drop most of them
        self.add_edges(self.task.edges_between(0, self.task.sizes[0]))

    def update(self, previous: int, vertices: int) -> None:
        edges = self.task.edges_between(previous, vertices)
        self.add_edges(edges)
        touched = np.unique(edges).tolist() * self.task.walks
        self.random.shuffle(touched)
        corpus = [self.walk(vertex) for vertex in touched]
        self.model.build_vocab(corpus, update=True)
        self.model.train(corpus, total_examples=len(corpus), epochs=1)

    def add_edges(self, edges: Any) -> None:
        """Add edges to the neighbor lists."""
        for older, newer in edges.tolist():
            self.neighbors[older].append(newer)
            self.neighbors[newer].append(older)

    def walk(self, vertex: int) -> list[str]:
        """Return a random walk from a vertex."""
        words = [self.names[vertex]]
        for _ in range(self.task.length):
            neighbors = self.neighbors[vertex]
            vertex = neighbors[int(self.random.random() * len(neighbors))]
            words.append(self.names[vertex])
        return words

    def vectors(self, vertices: int) -> Any:
        return vectors_by_vertex(self.model, vertices)


class Cleora:
    """`embed_inductive` (pycleora): continues from the previous vectors, on the whole graph rebuilt."""

    FORMAT = "complex::reflexive::vertex"

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None:
        self.lines = format_edges(self.task.edges_between(0, self.task.sizes[0]))
        self.graph = pycleora.SparseMatrix.from_iterator(iter(self.lines), self.FORMAT)
        self.rows = pycleora.embed(self.graph, feature_dim=self.task.columns, seed=self.task.seed)

    def update(self, previous: int, vertices: int) -> None:
        new = format_edges(self.task.edges_between(previous, vertices))
        np.random.seed(self.task.seed)  # noqa: NPY002  pycleora draws the first vectors of new vertices from it
        self.graph, self.rows = pycleora.embed_inductive(self.graph, self.rows, self.lines, new, self.FORMAT)
        self.lines += new

    def vectors(self, vertices: int) -> Any:
        rows = np.zeros((vertices, self.task.columns), np.float32)
        rows[[int(name) for name in self.graph.entity_ids]] = self.rows
        return rows


class Recomputed:
    """Spectral embedding (scikit-network), recomputed on the whole graph."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None: ...

    def update(self, previous: int, vertices: int) -> None:
        self.rows = Spectral(self.task.columns).fit_transform(
            adjacency_matrix(self.task.edges_between(0, vertices), vertices)
        )

    def vectors(self, vertices: int) -> Any:
        return self.rows


class Projected:
    """GSVD (scikit-network) of the initial graph; new vertices are projected, which only uses edges to that graph."""

    def __init__(self, task: Task) -> None:
        self.task, self.rows = task, np.zeros((task.sizes[-1], task.columns))

    def start(self) -> None:
        size = self.task.sizes[0]
        self.model = GSVD(self.task.columns).fit(adjacency_matrix(self.task.edges_between(0, size), size))
        self.rows[:size] = self.model.embedding_

    def update(self, previous: int, vertices: int) -> None:
        size, edges = self.task.sizes[0], self.task.edges_between(previous, vertices)
        older, newer = edges[edges[:, 0] < size].T
        shape = (vertices - previous, size)
        self.rows[previous:vertices] = self.model.predict(
            csr_matrix((np.ones(len(older)), (newer - previous, older)), shape)
        )

    def vectors(self, vertices: int) -> Any:
        return self.rows[:vertices]


PEERS: dict[str, type[Peer]] = {
    "PecanPy, neighbor mean": NeighborMean,
    "gensim, warm start": WarmStart,  # continues training the start model of the previous entry
    "PecanPy, retrained": Retrained,
    "pycleora, update": Cleora,
    "scikit-network, recomputed": Recomputed,
    "scikit-network, projected": Projected,
}


@cache
def train_start(task: Task) -> Any:
    """Train node2vec on the initial graph, once for all systems that begin with it."""
    return train(task, task.sizes[0])


def train(task: Task, vertices: int) -> Any:
    """Train node2vec as `embed` of PecanPy does, but return the model."""
    matrix = adjacency_matrix(task.edges_between(0, vertices), vertices)
    graph = FirstOrderUnweighted(p=1, q=1, workers=WORKERS, random_state=task.seed)
    graph.set_node_ids([str(vertex) for vertex in range(vertices)])
    graph.indptr, graph.indices = matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32)
    graph.data = matrix.data.astype(np.float32)
    walks = graph.simulate_walks(task.walks, task.length)
    sizes = {"vector_size": task.columns, "window": task.window}
    return Word2Vec(walks, **sizes, sg=1, min_count=0, workers=WORKERS, epochs=1, seed=task.seed)


def vectors_by_vertex(model: Any, vertices: int) -> Any:
    """Return the vectors of a skip-gram model in the order of the vertices."""
    rows = np.zeros((vertices, model.vector_size), np.float32)
    rows[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    return rows


def format_edges(edges: Any) -> list[str]:
    """Format edges as lines that pycleora reads."""
    return [f"{older} {newer}" for older, newer in edges.tolist()]


def adjacency_matrix(edges: Any, vertices: int) -> csr_matrix:
    """Return the symmetric adjacency matrix."""
    older, newer = edges.T
    endpoints = np.concatenate([older, newer]), np.concatenate([newer, older])
    matrix = csr_matrix((np.ones(2 * len(edges)), endpoints), (vertices, vertices))
    matrix.sort_indices()
    return matrix


def run_peer(name: str, task: Task, folder: Path | None) -> None:
    """Run all steps of a system."""
    peer = PEERS[name](task)
    report(folder, name, {"seconds": time_call(peer.start)})
    for step, (previous, vertices) in enumerate(zip(task.sizes, task.sizes[1:], strict=False)):
        seconds = time_call(peer.update, previous, vertices)
        if folder is not None:
            np.save(folder / f"{step}.npy", peer.vectors(vertices))
        report(folder, name, {"step": step, "seconds": seconds})


def report(folder: Path | None, name: str, values: dict[str, Any]) -> None:
    """Print a line and wait until it has been read, so that vectors are not overwritten and scoring is not timed."""
    if folder is not None:
        print(json.dumps({"system": name, **values}), flush=True)
        if not sys.stdin.readline():
            sys.exit("standard input was closed")


def time_call(function: Any, *arguments: int) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


def small_task(task: Task) -> Task:
    """Return the task with a very small graph, to warm up."""
    newer = np.repeat(np.arange(1, WARM_UP_SIZE), 4)
    older = np.random.default_rng(0).integers(newer)
    edges = np.unique(np.column_stack([newer, older]), axis=0)[:, ::-1]
    return replace(task, edges=edges, sizes=(WARM_UP_SIZE - 30, WARM_UP_SIZE - 20, WARM_UP_SIZE), columns=16)


def main() -> None:
    """Warm up and run all systems; a failure is reported and does not affect the others."""
    stored, folder = np.load(sys.argv[1]), Path(sys.argv[2])
    numbers = {name: int(stored[name]) for name in ("columns", "walks", "length", "window", "seed")}
    task = Task(edges=stored["edges"], sizes=tuple(stored["sizes"].tolist()), **numbers)
    for name in PEERS:
        try:
            run_peer(name, small_task(task), None)
            run_peer(name, task, folder)
        except Exception as error:
            report(folder, name, {"failed": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
