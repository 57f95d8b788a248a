"""Processor time of the fastest retrained methods, beside the start and the stream of Ripplevec, on the five data sets.

    python benchmarks/retraining.py [--dim 90] [--json results/retraining.json]

One thread. A retrained method embeds the final graph once. Ripplevec starts with half of the vertices;
the others arrive one at a time in random order, anchors included. Processor time depends less on other load on the
machine than elapsed time. The quality of all methods is in the study `classification`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

from _report import run_benchmark
from threadpoolctl import threadpool_limits

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.baselines import get_baseline
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import stream

RETRAINED = ("prone", "fastrp", "spectral")


def measure(dim: int) -> dict[str, Any]:
    """Return the processor seconds of every method on every data set."""
    with threadpool_limits(limits=1):
        measure_dataset(planted_partition(communities=2, size=500), dim)  # compiles all kernels
        return {
            f"{name}_{method}": seconds
            for name in datasets.available()
            for method, seconds in measure_dataset(datasets.load(name), dim).items()
        }


def measure_dataset(dataset: datasets.Dataset, dim: int) -> dict[str, float]:
    """Return the processor seconds of the retrained methods and of a whole stream."""
    graph = dataset.adjacency()
    seconds = {name: time_call(partial(get_baseline(name)(dim=dim).embed, graph)) for name in RETRAINED}
    return seconds | {"ripplevec": time_call(lambda: stream(Embedder(dim=dim, threads=1), dataset, 0.5))}


def time_call(function: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    began = process_time()
    function()
    return process_time() - began


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "dim", 90)
