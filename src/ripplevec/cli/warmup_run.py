"""Small models that use the kernels of common models, so that `ripplevec warmup` compiles them.

Numba compiles one kernel at a time, so the models run in processes of their own. A kernel that two of them need at the
same time is compiled twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.link_scoring.link_scorer import LinkScorer
from ripplevec.util.compilation import report_compilation
from ripplevec.util.compile_ahead import SWITCH
from ripplevec.util.parallel import resolve_threads

DIM = 16


def run_workloads() -> Iterator[tuple[str, int]]:
    """Run all workloads, as many at once as there are cores; yield the name and compiled kernels of finished ones."""
    with ProcessPoolExecutor(resolve_threads(None), get_context("spawn")) as pool:
        jobs = {pool.submit(_run_workload, name): name for name in WORKLOADS}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def _run_workload(name: str) -> int:
    """Run one workload; return the number of kernels that were compiled for it."""
    logging.getLogger("ripplevec").setLevel(logging.ERROR)  # the command shows the progress
    os.environ[SWITCH] = "0"  # there is one process per core already
    WORKLOADS[name]()
    return report_compilation().kernels


def _use_text_ids() -> None:
    edges = [(f"v{u}", f"v{v}") for u, v in growing_communities(vertices=200, communities=4).edges.tolist()]
    _use_model(Embedder(dim=DIM).fit(edges), [f"v{vertex}" for vertex in range(3)])


def _use_integer_ids() -> None:
    _use_model(Embedder(dim=DIM).fit(growing_communities(vertices=200, communities=4).edges), [0, 1, 2])


def _use_large_batches() -> None:
    edges = growing_communities(vertices=20_000, communities=4).edges
    model = Embedder(dim=DIM).fit(edges[: len(edges) // 2])
    *batches, last = np.array_split(edges[len(edges) // 2 :], 50)
    for batch in batches:  # a gradual anchor begins and ends between them
        model.partial_fit(batch)
    model.partial_fit(np.concatenate([last, edges + len(edges)]))


def _use_rule_paper() -> None:
    _use_model(Embedder(dim=DIM, rule="paper").fit(growing_communities(vertices=200, communities=4).edges), [0, 1, 2])


def _use_times() -> None:
    edges = [(f"v{vertex}", f"v{(vertex + step) % 60}") for step in (1, 2, 5) for vertex in range(60)]
    model = Embedder(dim=DIM, half_life=1_000, expire_after=100)
    model.partial_fit(edges, time=[float(number) for number in range(len(edges))])
    model.add_vertex("new", ["v1", "v2"], time=400)
    _save_and_load(model)


def _use_attributes() -> None:
    edges = [(f"v{vertex}", f"v{(vertex + step) % 60}") for step in (1, 2, 5) for vertex in range(60)]
    sparse = {f"v{vertex}": {f"name {vertex % 7}": 1.0} for vertex in range(50)}
    dense = {f"v{vertex}": [float(vertex % 7), float(vertex % 3)] for vertex in range(50)}
    for attributes in (sparse, dense):
        model = Embedder(dim=DIM).fit(edges, attributes=attributes)
        model.add_vertex("new", ["v1", "v2"], attributes=attributes["v0"])
        model.add_vertex("alone", attributes=attributes["v1"])
        model.set_attributes(["v1"], [attributes["v2"]])
        model.nearest_by_attributes(attributes["v0"], k=3)
        model.anchor()
        _save_and_load(model)
    model = Embedder(dim=DIM, attribute_dim=DIM // 2)  # begins empty, like that of a service
    model.partial_fit(edges)
    model.add_vertex("new", ["v1", "v2"], attributes=sparse["v0"])
    model.add_vertex("later", ["v1", "new"])
    model.preview(["v1", "new"])
    _save_and_load(model)


def _use_link_scorer() -> None:
    scorer = LinkScorer(Embedder(dim=DIM))
    edges = [(f"u{vertex}", f"v{(vertex * step) % 30}") for step in (1, 2, 5) for vertex in range(60)]
    scorer.partial_fit(edges)
    scorer.score(edges[:2])
    scorer.recommend("u1", k=2)


def _use_model(model: Embedder, known: list[int] | list[str]) -> None:
    """Read and change a model in every common way."""
    new: list[int | str] = [f"new {number}" if isinstance(known[0], str) else 1000 + number for number in range(3)]
    model.add_vertex(new[0], known)
    model.add_vertex(new[1], known, weights=np.ones(len(known)))
    model.partial_fit([(new[2], known[0]), (new[2], known[1], 2.0)])
    model.nearest(known[0], k=3)
    model.nearest(model[known[0]], k=3)
    model.preview(known)
    model.neighbors(known[0])
    model.remove_edges([(new[2], known[0])])
    model.remove_vertex(new[2])
    model.anchor()
    _save_and_load(model)


def _save_and_load(model: Embedder) -> None:
    """Use the kernels that check a saved model: those of the first start of a service, too."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        Embedder.load(Path(folder) / "model").digest()


WORKLOADS: dict[str, Callable[[], None]] = {
    "text ids": _use_text_ids,
    "integer ids": _use_integer_ids,
    "large batches": _use_large_batches,
    "rule paper": _use_rule_paper,
    "times": _use_times,
    "attributes": _use_attributes,
    "link scorer": _use_link_scorer,
}
