"""The peers of peers.py, called as their documents say. Runs in their environment: nothing of ours is imported here.

    python _peers.py TASK.npz FOLDER

Every peer brings its embedding up to date step after step; after each a line of JSON says how long it took, and the
vectors are in FOLDER. Compilers and caches are warmed up before, on a small graph.
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
WARM_UP = 400  # vertices


@dataclass(frozen=True, eq=False)
class Task:
    """A graph whose vertices are numbered as they arrive, and how large it is at the start and after every step.

    Edges stand in the order of the later end, which comes second.
    """

    edges: Any
    sizes: tuple[int, ...]
    columns: int
    walks: int
    length: int
    window: int
    seed: int

    def between(self, first: int, last: int) -> Any:
        """The edges that the arrivals from `first` to before `last` bring."""
        return self.edges[slice(*np.searchsorted(self.edges[:, 1], [first, last]))]


class Peer(Protocol):
    """What keeps an embedding up to date."""

    def __init__(self, task: Task) -> None: ...

    def start(self) -> None:
        """Embed the start."""

    def update(self, known: int, vertices: int) -> None:
        """Take in the arrivals from `known` to before `vertices`."""

    def vectors(self, vertices: int) -> Any:
        """A row per vertex."""


class NeighborMean:
    """PecanPy's node2vec of the start; a newcomer has the mean of its neighbors and nobody else moves."""

    def __init__(self, task: Task) -> None:
        self.task, self.rows = task, np.zeros((task.sizes[-1], task.columns), np.float32)

    def start(self) -> None:
        self.rows[: self.task.sizes[0]] = rows_of(trained_start(self.task), self.task.sizes[0])

    def update(self, known: int, vertices: int) -> None:
        edges = self.task.between(known, vertices)
        newcomers = np.arange(known, vertices)
        ends = np.searchsorted(edges[:, 1], newcomers, side="right")
        for vertex, begin, end in zip(newcomers, np.r_[0, ends[:-1]], ends, strict=True):
            if end > begin:
                self.rows[vertex] = self.rows[edges[begin:end, 0]].mean(axis=0)

    def vectors(self, vertices: int) -> Any:
        return self.rows[:vertices]


class Retrained:
    """PecanPy's node2vec, trained again on everything."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None: ...

    def update(self, known: int, vertices: int) -> None:
        self.model = trained(self.task, vertices)

    def vectors(self, vertices: int) -> Any:
        return rows_of(self.model, vertices)


class WarmStart:
    """Skip-gram that goes on, on walks from newcomers and their neighbors, as dynnode2vec does."""

    def __init__(self, task: Task) -> None:
        self.task, self.draw = task, random.Random(task.seed)
        self.neighbors: list[list[int]] = [[] for _ in range(task.sizes[-1])]
        self.names = [str(vertex) for vertex in range(task.sizes[-1])]

    def start(self) -> None:
        self.model = trained_start(self.task)
        self.model.sample = 0  # the words of a small corpus all look frequent, and most would be left out
        self.link(self.task.between(0, self.task.sizes[0]))

    def update(self, known: int, vertices: int) -> None:
        edges = self.task.between(known, vertices)
        self.link(edges)
        touched = np.unique(edges).tolist() * self.task.walks
        self.draw.shuffle(touched)
        corpus = [self.walk(vertex) for vertex in touched]
        self.model.build_vocab(corpus, update=True)
        self.model.train(corpus, total_examples=len(corpus), epochs=1)

    def link(self, edges: Any) -> None:
        """Note new edges."""
        for older, newer in edges.tolist():
            self.neighbors[older].append(newer)
            self.neighbors[newer].append(older)

    def walk(self, vertex: int) -> list[str]:
        """A walk that sets out from a vertex."""
        words = [self.names[vertex]]
        for _ in range(self.task.length):
            around = self.neighbors[vertex]
            vertex = around[int(self.draw.random() * len(around))]
            words.append(self.names[vertex])
        return words

    def vectors(self, vertices: int) -> Any:
        return rows_of(self.model, vertices)


class Cleora:
    """pycleora's `embed_inductive`: goes on from the vectors it had, on the whole graph built anew."""

    FORMAT = "complex::reflexive::vertex"

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None:
        self.lines = lines_of(self.task.between(0, self.task.sizes[0]))
        self.graph = pycleora.SparseMatrix.from_iterator(iter(self.lines), self.FORMAT)
        self.rows = pycleora.embed(self.graph, feature_dim=self.task.columns, seed=self.task.seed)

    def update(self, known: int, vertices: int) -> None:
        new = lines_of(self.task.between(known, vertices))
        np.random.seed(self.task.seed)  # noqa: NPY002  it draws the newcomers' first vectors from there
        found = pycleora.embed_inductive(self.graph, self.rows, self.lines, new, self.FORMAT)
        self.graph, self.rows = found
        self.lines += new

    def vectors(self, vertices: int) -> Any:
        rows = np.zeros((vertices, self.task.columns), np.float32)
        rows[[int(name) for name in self.graph.entity_ids]] = self.rows
        return rows


class Recomputed:
    """scikit-network's spectral embedding of everything."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def start(self) -> None: ...

    def update(self, known: int, vertices: int) -> None:
        self.rows = Spectral(self.task.columns).fit_transform(matrix_of(self.task.between(0, vertices), vertices))

    def vectors(self, vertices: int) -> Any:
        return self.rows


class Projected:
    """scikit-network's GSVD of the start; newcomers are projected by their edges to the start, all that it can use."""

    def __init__(self, task: Task) -> None:
        self.task, self.rows = task, np.zeros((task.sizes[-1], task.columns))

    def start(self) -> None:
        size = self.task.sizes[0]
        self.model = GSVD(self.task.columns).fit(matrix_of(self.task.between(0, size), size))
        self.rows[:size] = self.model.embedding_

    def update(self, known: int, vertices: int) -> None:
        size, edges = self.task.sizes[0], self.task.between(known, vertices)
        older, newer = edges[edges[:, 0] < size].T
        shape = (vertices - known, size)
        self.rows[known:vertices] = self.model.predict(csr_matrix((np.ones(len(older)), (newer - known, older)), shape))

    def vectors(self, vertices: int) -> Any:
        return self.rows[:vertices]


PEERS: dict[str, type[Peer]] = {
    "PecanPy, neighbor mean": NeighborMean,
    "gensim, warm start": WarmStart,  # goes on with the model of the one before
    "PecanPy, retrained": Retrained,
    "pycleora, update": Cleora,
    "scikit-network, recomputed": Recomputed,
    "scikit-network, projected": Projected,
}


@cache
def trained_start(task: Task) -> Any:
    """node2vec of the start, trained once for all that begin with it."""
    return trained(task, task.sizes[0])


def trained(task: Task, vertices: int) -> Any:
    """What PecanPy's `embed` does, with the model kept."""
    matrix = matrix_of(task.between(0, vertices), vertices)
    graph = FirstOrderUnweighted(p=1, q=1, workers=WORKERS, random_state=task.seed)
    graph.set_node_ids([str(vertex) for vertex in range(vertices)])
    graph.indptr, graph.indices = matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32)
    graph.data = matrix.data.astype(np.float32)
    walks = graph.simulate_walks(task.walks, task.length)
    sizes = {"vector_size": task.columns, "window": task.window}
    return Word2Vec(walks, **sizes, sg=1, min_count=0, workers=WORKERS, epochs=1, seed=task.seed)


def rows_of(model: Any, vertices: int) -> Any:
    """The vectors of a skip-gram model by vertex."""
    rows = np.zeros((vertices, model.vector_size), np.float32)
    rows[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    return rows


def lines_of(edges: Any) -> list[str]:
    """Edges as pycleora reads them."""
    return [f"{older} {newer}" for older, newer in edges.tolist()]


def matrix_of(edges: Any, vertices: int) -> csr_matrix:
    """The symmetric adjacency matrix."""
    older, newer = edges.T
    ends = np.concatenate([older, newer]), np.concatenate([newer, older])
    matrix = csr_matrix((np.ones(2 * len(edges)), ends), (vertices, vertices))
    matrix.sort_indices()
    return matrix


def run(name: str, task: Task, folder: Path | None) -> None:
    """Let a peer go through all steps."""
    peer = PEERS[name](task)
    report(folder, name, {"seconds": timed(peer.start)})
    for step, (known, vertices) in enumerate(zip(task.sizes, task.sizes[1:], strict=False)):
        seconds = timed(peer.update, known, vertices)
        if folder is not None:
            np.save(folder / f"{step}.npy", peer.vectors(vertices))
        report(folder, name, {"step": step, "seconds": seconds})


def report(folder: Path | None, name: str, told: dict[str, Any]) -> None:
    """Say a line and wait until it has been read, so that vectors are not written over and scoring takes no time."""
    if folder is not None:
        print(json.dumps({"system": name, **told}), flush=True)
        if not sys.stdin.readline():
            sys.exit("nobody reads any more")


def timed(work: Any, *arguments: int) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def small(task: Task) -> Task:
    """The same on a graph that takes no time."""
    newer = np.repeat(np.arange(1, WARM_UP), 4)
    older = np.random.default_rng(0).integers(newer)
    edges = np.unique(np.column_stack([newer, older]), axis=0)[:, ::-1]
    return replace(task, edges=edges, sizes=(WARM_UP - 30, WARM_UP - 20, WARM_UP), columns=16)


def main() -> None:
    """Warm up, then all peers; one that fails says so and leaves the others alone."""
    stored, folder = np.load(sys.argv[1]), Path(sys.argv[2])
    numbers = {name: int(stored[name]) for name in ("columns", "walks", "length", "window", "seed")}
    task = Task(edges=stored["edges"], sizes=tuple(stored["sizes"].tolist()), **numbers)
    for name in PEERS:
        try:
            run(name, small(task), None)
            run(name, task, folder)
        except Exception as error:
            report(folder, name, {"failed": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
