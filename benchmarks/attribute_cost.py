"""Processor time of an arrival with attributes: Ripplevec, and online DANE with attributes.

    python benchmarks/attribute_cost.py [--datasets blog flickr] [--seeds 1] [--json results/attribute_cost.json]

Every method starts with half of the vertices of a data set and their attributes; the next 1,024 arrive one at a time,
updates and anchors included. 128 dimensions, one thread. Processor time, because it depends less on other load on the
machine. The quality of the methods is measured by `benchmarks/attributes.py` and `benchmarks/attribute_baselines.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from time import process_time
from typing import Any

import numpy as np
from _report import run_parts
from attribute_baselines import ONLINE_DANE
from attributes import DATASETS, DIM, read_attributes
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from ripplevec import Embedder
from ripplevec.lab.baselines.streaming.attributed_dane import OnlineAttributedDANE
from ripplevec.lab.datasets import load
from ripplevec.lab.evaluation.protocols import Arrivals

ARRIVALS = 1024
METHODS = ("ripplevec", *ONLINE_DANE)

AddVertex = Callable[[int, Sequence[int], csr_array], Any]
"""Adds the vertex at a position of the order of arrival, with the positions of its neighbors and its attributes."""


def start_method(method: str, arrivals: Arrivals, rows: csr_array, half: int, seed: int) -> tuple[AddVertex, csr_array]:
    """Start a method with half of the vertices; return the function for arrivals, and the attributes that it takes."""
    if method == "ripplevec":
        model = Embedder(dim=DIM, seed=seed, threads=1)
        model.fit(arrivals.batch(0, half), attributes=(arrivals.order[:half], rows[:half]))
        order = arrivals.order.tolist()

        def add_vertex(position: int, neighbors: Sequence[int], row: csr_array) -> None:
            model.add_vertex(order[position], [order[neighbor] for neighbor in neighbors], attributes=row)

        return add_vertex, rows
    weighted = csr_array(TfidfTransformer().fit(rows[:half]).transform(rows))
    dane = OnlineAttributedDANE(dim=DIM, chunk=ONLINE_DANE[method], seed=seed)
    dane.start(arrivals.graph(half), weighted[:half])
    return dane.add_vertex, weighted


def time_arrival(method: str, name: str, seed: int, count: int = ARRIVALS) -> float:
    """Return the processor microseconds of an arrival."""
    dataset = load(name)
    arrivals, half = Arrivals.from_dataset(dataset, seed), dataset.vertices // 2
    place: NDArray[np.int64] = np.argsort(arrivals.order)
    add_vertex, rows = start_method(method, arrivals, read_attributes(name)[arrivals.order], half, seed)
    seconds = 0.0
    for position in range(half, min(half + count, dataset.vertices)):
        neighbors, row = place[arrivals.neighbors(position)].tolist(), rows[[position]]
        began = process_time()
        add_vertex(position, neighbors, row)
        seconds += process_time() - began
    return 1e6 * seconds / (min(half + count, dataset.vertices) - half)


def measure(name: str, seeds: int) -> dict[str, float]:
    """Return the microseconds of every method on a data set, mean over the seeds."""
    with threadpool_limits(limits=1):
        time_arrival("ripplevec", name, 0)  # compiles
        return {
            f"{name}, {method}": fmean(time_arrival(method, name, seed) for seed in range(seeds)) for method in METHODS
        }


if __name__ == "__main__":
    run_parts(__doc__, measure, "datasets", DATASETS, 1)
