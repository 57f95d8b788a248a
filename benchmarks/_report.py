"""Shared code of the benchmarks: command-line options, the JSON record, timing, and the memory of this process."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ripplevec.lab.experiments.record import describe_environment


def best_seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    """Return the shortest of several timings, the one least disturbed by other processes."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


class Stopwatch:
    """Wraps a function and adds up the seconds spent in it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        began = time.perf_counter()
        result = self.function(*arguments)
        self.seconds += time.perf_counter() - began
        return result


def process_memory_mb(field: str) -> float:
    """Return megabytes of this process: `VmRSS` now, `VmHWM` the peak since `reset_peak_memory`."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


def reset_peak_memory() -> None:
    """Restart the measurement of the peak memory of this process."""
    Path("/proc/self/clear_refs").write_text("5")


def run_benchmark(
    description: str | None,
    measure: Callable[[int], dict[str, Any]],
    size_option: str,
    default_size: int,
    draw: Callable[[dict[str, Any], Path], None] | None = None,
) -> None:
    """Parse the options, measure, print the metrics, and write the record (`--json`) and the plot (`--figure`)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{size_option}", dest="size", type=int, default=default_size)
    parser.add_argument("--json", type=Path)
    if draw:
        parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    metrics = measure(options.size)
    for name, value in metrics.items():
        print(f"{name:32} {value:,.2f}")
    if options.json:
        write_record(options.json, metrics)
    if draw and options.figure:
        draw(metrics, options.figure)


def run_parts(
    description: str | None,
    measure: Callable[[str, int], dict[str, float]],
    option: str,
    names: Sequence[str],
    seeds: int,
) -> None:
    """Parse the options, measure the named parts one by one, and add each to the record (`--json`), which is kept.

    `environments` in the record has the environment of each part; `environment` is that of parts from older records.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument(f"--{option}", dest="names", nargs="+", choices=names, default=list(names))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for name in options.names:
        metrics = measure(name, options.seeds)
        for metric, value in metrics.items():
            print(f"{metric:40} {value:,.2f}", flush=True)
        if options.json:
            known = json.loads(options.json.read_text()) if options.json.exists() else {}
            environments = known.get("environments", {}) | {name: describe_environment()}
            options.json.write_text(json.dumps(known | metrics | {"environments": environments}, indent=1) + "\n")


def write_record(path: Path, metrics: dict[str, Any]) -> None:
    """Write metrics with the versions, machine and commit that they depend on."""
    path.write_text(json.dumps({**metrics, "environment": describe_environment()}, indent=1) + "\n")
