"""Compare the figures of `ripplevec bench` with another run: the packaged record, or a record of your own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ripplevec.cli.bench_run import Size
from ripplevec.cli.console import print_table, say
from ripplevec.errors import FormatError
from ripplevec.io.atomic_file import atomic_write
from ripplevec.lab.experiments.record import describe_environment

RECORD = Path(__file__).with_name("bench.json")


class Figure(NamedTuple):
    """What a figure is called for people, how many digits it is worth, and whether more of it is better."""

    label: str
    digits: int
    more_is_better: bool


FIGURES = {
    "arrivals_per_second": Figure("arrivals per second, one by one", 0, True),
    "arrival_p50_us": Figure("an arrival, µs: half take no longer", 1, False),
    "arrival_p99_us": Figure("99 % take no longer", 1, False),
    "arrival_p999_us": Figure("99.9 % take no longer", 1, False),
    "edges_per_second": Figure("edges per second, in batches", 0, True),
    "reads_per_second": Figure("vectors read per second, one by one", 0, True),
    "nearest_ms": Figure("the ten nearest, exact, ms", 2, False),
    "anchor_seconds": Figure("an anchor, seconds", 2, False),
    "bytes_per_vertex": Figure("bytes per vertex", 0, False),
    "bytes_per_edge": Figure("bytes per edge", 1, False),
}


def read(path: Path, size: str) -> dict[str, Any]:
    """What a record holds of runs of this size: `figures` and `environment`, or nothing where there was none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get(size, {})
        if found and not (_machine(found["environment"]) and all(found["figures"][name] > 0 for name in FIGURES)):
            raise ValueError("a figure that is not above 0")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"{path}: expected a record that `ripplevec bench --save` wrote, got {error!r}") from error
    return found


def write(path: Path, size: str, figures: dict[str, float]) -> None:
    """Put the figures of a run into a record; those of the other size stay."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise FormatError(f"{path}: expected a record that `ripplevec bench --save` wrote, got {error!r}") from error
    content = kept | {size: {"figures": figures, "environment": describe_environment()}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def ratios(figures: dict[str, float], record: dict[str, Any]) -> dict[str, float]:
    """How many times as good as the record each figure is: above 1 is faster, or smaller."""
    if not record:
        return {}
    then = record["figures"]
    return {
        name: figures[name] / then[name] if figure.more_is_better else then[name] / figures[name]
        for name, figure in FIGURES.items()
    }


def summary(size: Size, figures: dict[str, float], record: dict[str, Any]) -> dict[str, Any]:
    """Everything, for a program."""
    here = {"size": asdict(size), "figures": figures, "environment": describe_environment()}
    return {**here, "ratios": ratios(figures, record), "record": record}


def compared(size: Size, figures: dict[str, float], record: dict[str, Any]) -> None:
    """Everything, for a person."""
    better = ratios(figures, record)
    rows = []
    for name, figure in FIGURES.items():
        shown = [f"{figures[name]:,.{figure.digits}f}"]
        if record:
            shown += [f"{record['figures'][name]:,.{figure.digits}f}", f"{better[name]:.2f}"]
        rows.append((figure.label, *shown))
    headings = ["here", "record", "× as good"] if record else ["here"]
    print_table(f"{size.vertices:,} vertices, then {size.arrivals:,} arrivals", [""], headings, rows)
    if record:
        say(f"the record: {_machine(record['environment'])}; here: {_machine(describe_environment())}; above 1 is better here")
    else:
        say(f"the record has no run of size {size.name!r} to compare with")


def _machine(environment: dict[str, Any]) -> str:
    machine = environment["machine"]
    return f"{machine['cores']} × {machine['cpu']}, ripplevec {environment['versions']['ripplevec']}"
