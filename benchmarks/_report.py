"""What the benchmarks that keep a record have in common: options, a printed table, a JSON file."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripplevec.lab.experiments.record import describe_environment


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least of a few timings: what the work takes when nothing else does."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def run(
    about: str | None,
    measure: Callable[[int], dict[str, Any]],
    size: str,
    default: int,
    draw: Callable[[dict[str, Any], Path], None] | None = None,
) -> None:
    """Measure at the size asked for, print every figure, and write them down, or `draw` them, if asked."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{size}", dest="size", type=int, default=default)
    parser.add_argument("--json", type=Path)
    if draw:
        parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    figures = measure(options.size)
    for name, value in figures.items():
        print(f"{name:32} {value:,.2f}")
    if options.json:
        write(options.json, figures)
    if draw and options.figure:
        draw(figures, options.figure)


def write(path: Path, figures: dict[str, Any]) -> None:
    """Keep figures, with what they may depend on: versions, machine, commit."""
    path.write_text(json.dumps({**figures, "environment": describe_environment()}, indent=1) + "\n")
