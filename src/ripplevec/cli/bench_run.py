"""The benchmark of `ripplevec bench`: its measurements on a growing graph, and the comparison with a recorded run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.cli.console import print_message, print_table
from ripplevec.embedder import Embedder
from ripplevec.errors import FormatError
from ripplevec.graph._block_kernels import ARENA_TOP
from ripplevec.lab.datasets.synthetic import preferential_attachment
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.util.checked_directory import atomic_write
from ripplevec.util.compile_ahead import wait_for_all_kernels

if TYPE_CHECKING:
    from rich.progress import Progress

DIM, EDGES_PER_VERTEX, BATCH_SIZE, NEAREST_COUNT = 128, 10, 10_000, 10
START_SHARE = 0.1  # of `Workload.vertices`; the other vertices arrive in batches
CALLS_PER_PROGRESS_UPDATE = 100
PACKAGED_RECORD = Path(__file__).with_name("bench.json")


@dataclass(frozen=True, slots=True)
class Workload:
    """Size of a benchmark run: `vertices` exist before the single arrivals; the other numbers count timed calls."""

    name: str
    vertices: int
    arrivals: int
    reads: int
    searches: int


FULL = Workload("full", 500_000, 200_000, 500_000, 200)
QUICK = Workload("quick", 50_000, 50_000, 200_000, 200)
WARM_UP = Workload("warm up", 20_000, 200, 200, 5)


class Metric(NamedTuple):
    """How a metric is printed: its label, its decimal digits, and whether a higher value is better."""

    label: str
    digits: int
    higher_is_better: bool


METRICS = {
    "arrivals_per_second": Metric("arrivals per second, one by one", 0, True),
    "arrival_p50_us": Metric("arrival latency p50, µs", 1, False),
    "arrival_p99_us": Metric("arrival latency p99, µs", 1, False),
    "arrival_p999_us": Metric("arrival latency p99.9, µs", 1, False),
    "edges_per_second": Metric("edges per second, in batches", 0, True),
    "reads_per_second": Metric("vectors read per second, one by one", 0, True),
    "nearest_ms": Metric("exact search, 10 nearest, ms", 2, False),
    "anchor_seconds": Metric("anchor, seconds", 2, False),
    "bytes_per_vertex": Metric("bytes per vertex", 0, False),
    "bytes_per_edge": Metric("bytes per edge", 1, False),
}


def run_benchmark(workload: Workload, bars: Progress) -> dict[str, float]:
    """Measure all metrics, after two small warm-up runs: the first one may begin while another process compiles."""
    measure(WARM_UP, bars)
    wait_for_all_kernels()
    measure(WARM_UP, bars)
    return measure(workload, bars)


def measure(workload: Workload, bars: Progress) -> dict[str, float]:
    """Measure all metrics on one graph with hubs; automatic anchors are off, so that the anchor is timed separately."""
    edges = preferential_attachment(workload.vertices + workload.arrivals, EDGES_PER_VERTEX).edges
    newer = edges[:, 1]
    start_edges, batched_edges = np.searchsorted(newer, [round(START_SHARE * workload.vertices), workload.vertices])
    model = Embedder(dim=DIM, anchor_growth=0, search="exact")
    _time_calls(model.fit, _with_bar(bars, "start", [(edges[:start_edges],)]))
    batches = [
        edges[first : min(first + BATCH_SIZE, batched_edges)] for first in range(start_edges, batched_edges, BATCH_SIZE)
    ]
    batch_seconds = sum(_time_calls(model.partial_fit, _with_bar(bars, "batches", [(batch,) for batch in batches])))
    memory = _measure_memory(model)
    arrivals = np.array(
        _time_calls(model.add_vertex, _with_bar(bars, "arrivals", _list_arrivals(edges[batched_edges:])))
    )
    queried = np.random.default_rng(0).integers(len(model), size=workload.reads + workload.searches).tolist()
    reads = _time_calls(
        model.__getitem__, _with_bar(bars, "reads", [(vertex,) for vertex in queried[: workload.reads]])
    )
    searches = [(vertex, NEAREST_COUNT) for vertex in queried[workload.reads :]]
    search_seconds = _time_calls(model.nearest, _with_bar(bars, "nearest", searches))
    (anchor_seconds,) = _time_calls(model.anchor, _with_bar(bars, "anchor", [()]))
    p50, p99, p999 = 1e6 * np.percentile(arrivals, [50, 99, 99.9])
    return {
        "arrivals_per_second": len(arrivals) / float(arrivals.sum()),
        "arrival_p50_us": float(p50),
        "arrival_p99_us": float(p99),
        "arrival_p999_us": float(p999),
        "edges_per_second": float(batched_edges - start_edges) / batch_seconds,
        "reads_per_second": len(reads) / sum(reads),
        "nearest_ms": 1e3 * median(search_seconds),
        "anchor_seconds": anchor_seconds,
        **memory,
    }


def _list_arrivals(edges: NDArray[np.int64]) -> list[tuple[int, list[int]]]:
    """List new vertices with their neighbors as Python integers, so that only the arrival itself is timed."""
    older, newer = edges.T
    vertices, first = np.unique(newer, return_index=True)
    neighbor_lists = np.split(older, first[1:])
    return [(vertex, neighbors.tolist()) for vertex, neighbors in zip(vertices.tolist(), neighbor_lists, strict=True)]


def _time_calls(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[float]:
    """Return the seconds that each call takes."""
    seconds = []
    for arguments in calls:
        began = perf_counter()
        function(*arguments)
        seconds.append(perf_counter() - began)
    return seconds


def _with_bar(bars: Progress, name: str, calls: list[Any]) -> Iterator[Any]:
    """Yield the calls one by one and show their progress in a bar."""
    task = bars.add_task(name, total=len(calls), note="")
    for done, call in enumerate(calls):
        if done % CALLS_PER_PROGRESS_UPDATE == 0:
            bars.update(task, completed=done)
        yield call
    bars.remove_task(task)


def _measure_memory(model: Embedder) -> dict[str, float]:
    """Divide the bytes of the model's arrays between edges (adjacency slots) and vertices (everything else)."""
    links, sizes = model.engine.graph.adjacency.links, model.diagnostics()
    slots = int(links.allocator[ARENA_TOP]) * links.neighbor.strides[0]
    return {
        "bytes_per_vertex": (sizes["bytes"] - slots) / sizes["vertices"],
        "bytes_per_edge": slots / sizes["edges"],
    }


def read_record(path: Path, workload_name: str) -> dict[str, Any]:
    """Read the recorded run of a workload, with the keys `figures` and `environment`; empty if it was not recorded."""
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get(workload_name, {})
        if run and not (_describe_machine(run["environment"]) and all(run["figures"][name] > 0 for name in METRICS)):
            raise ValueError("a metric that is not above 0")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _not_a_record(path, error) from error
    return run


def write_record(path: Path, workload_name: str, metrics: dict[str, float]) -> None:
    """Write a run into a record file and keep the runs of other workloads in it."""
    try:
        runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise _not_a_record(path, error) from error
    content = runs | {workload_name: {"figures": metrics, "environment": describe_environment()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _not_a_record(path: Path, error: Exception) -> FormatError:
    return FormatError(f"{path}: expected a record written by `ripplevec bench --save`, got {error!r}")


def compute_ratios(metrics: dict[str, float], record: dict[str, Any]) -> dict[str, float]:
    """Divide each metric by the recorded one, or inversely, so that a ratio above 1 means faster or smaller."""
    if not record:
        return {}
    recorded = record["figures"]
    return {
        name: metrics[name] / recorded[name] if metric.higher_is_better else recorded[name] / metrics[name]
        for name, metric in METRICS.items()
    }


def summarize(workload: Workload, metrics: dict[str, float], record: dict[str, Any]) -> dict[str, Any]:
    """Return the run and its comparison with the record as JSON data."""
    run = {"size": asdict(workload), "figures": metrics, "environment": describe_environment()}
    return {**run, "ratios": compute_ratios(metrics, record), "record": record}


def print_comparison(workload: Workload, metrics: dict[str, float], record: dict[str, Any]) -> None:
    """Print a table of the metrics of this run, of the record, and their ratios."""
    ratios = compute_ratios(metrics, record)
    rows = []
    for name, metric in METRICS.items():
        cells = [f"{metrics[name]:,.{metric.digits}f}"]
        if record:
            cells += [f"{record['figures'][name]:,.{metric.digits}f}", f"{ratios[name]:.2f}"]
        rows.append((metric.label, *cells))
    headings = ["this machine", "record", "ratio"] if record else ["this machine"]
    print_table(f"{workload.vertices:,} vertices, then {workload.arrivals:,} arrivals", [""], headings, rows)
    if record:
        recorded, here = _describe_machine(record["environment"]), _describe_machine(describe_environment())
        print_message(f"record: {recorded}; this machine: {here}; a ratio above 1 means that this machine is better")
    else:
        print_message(f"the record has no run of size {workload.name!r} to compare with")


def _describe_machine(environment: dict[str, Any]) -> str:
    machine = environment["machine"]
    return f"{machine['cores']} × {machine['cpu']}, ripplevec {environment['versions']['ripplevec']}"
