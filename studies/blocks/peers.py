"""Blocks of docs/peers.md: Ripplevec compared with other libraries, in time until up to date and in quality."""

from __future__ import annotations

from statistics import fmean, median
from textwrap import fill
from typing import Any

from blocks.records import MISSING, RESULTS, format_number, format_points, markdown_table, read_record

RECORD, PICTURE, OURS = "peers.json", "figures/peers.svg", "ripplevec"
SHARED_START = {"gensim, warm start": "PecanPy, neighbor mean"}  # trained once for both, timed with the latter
NEGLIGIBLE_SECONDS = 1e-4  # shorter starts did no work


def peers(graph: str) -> str:
    """Return a row per system: start, seconds per step with the ratio to Ripplevec, and micro-F1."""
    record = read_record(RECORD)
    if record is None:
        return MISSING
    run = record["graphs"][graph]
    steps = [f"{count:,} arrivals" for count in run["arrivals"]]
    steps[0] = "1 arrival"
    systems = run["systems"]
    ours = _by_step(systems[OURS], "seconds")
    rows = {name: [_format_start(name, systems), *_format_row(system, ours)] for name, system in systems.items()}
    return markdown_table(["start", *steps, "micro-F1", "newcomers"], rows)


def setting(graph: str) -> str:
    """Return the size of the graph and the settings of the systems."""
    record = read_record(RECORD)
    if record is None:
        return MISSING
    run = record["graphs"][graph]
    used = run["settings"]
    return fill(
        f"{run['vertices']:,} vertices, {run['edges']:,} edges; the start has {run['start']:,} vertices; "
        f"{used['columns']} dimensions; node2vec with {used['walks']} walks of {used['length']} steps and a window of "
        f"{used['window']}; {_format_seeds(used['seeds'])}.",
        120,
    )


def picture() -> str:
    """Return the picture, if it exists."""
    return (
        f"![Seconds until the embedding is up to date](../results/{PICTURE})"
        if (RESULTS / PICTURE).exists()
        else MISSING
    )


def versions() -> str:
    """Return the versions of the other libraries, and the machine."""
    record = read_record(RECORD)
    if record is None:
        return MISSING
    libraries = ", ".join(f"{name} {version}" for name, version in record["peers"].items())
    machine = record["environment"]["machine"]
    return fill(
        f"{libraries}; {machine['cores']} cores of {machine['cpu']}; {record['took'] / 60:.0f} minutes in total.", 120
    )


def _format_start(name: str, systems: dict[str, Any]) -> str:
    """Return the seconds of the start, including a shared start; missing if the system recomputes everything."""
    parts = [systems[part].get("start") for part in (name, SHARED_START.get(name)) if part]
    seconds = sum(median(part) for part in parts) if all(parts) else 0.0
    return _format_time(seconds) if seconds > NEGLIGIBLE_SECONDS else MISSING


def _format_row(system: dict[str, Any], ours: list[float]) -> list[str]:
    if "failed" in system:
        return [MISSING] * (len(ours) + 2)
    seconds, micro = _by_step(system, "seconds"), _by_step(system, "micro")
    return [
        *(
            f"{_format_time(other)} ({format_number(other / base)} ×)"
            for other, base in zip(seconds, ours, strict=True)
        ),
        " / ".join(format_points(100 * value) for value in micro),
        format_points(100 * _by_step(system, "newcomers")[-1]),
    ]


def _by_step(system: dict[str, Any], metric: str) -> list[float]:
    """Aggregate over seeds per step: the median of times, which is robust to disturbances, and the mean of scores."""
    aggregate = median if metric == "seconds" else fmean
    return [aggregate(seeds) for seeds in zip(*system[metric], strict=True)]


def _format_time(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.3g} s"


def _format_seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds (median of times, mean of scores)"
