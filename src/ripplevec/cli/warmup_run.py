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

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities
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
    model.partial_fit(edges[len(edges) // 2 :])


def _use_rule_paper() -> None:
    _use_model(Embedder(dim=DIM, rule="paper").fit(growing_communities(vertices=200, communities=4).edges), [0, 1, 2])


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


WORKLOADS: dict[str, Callable[[], None]] = {
    "text ids": _use_text_ids,
    "integer ids": _use_integer_ids,
    "large batches": _use_large_batches,
    "rule paper": _use_rule_paper,
}
