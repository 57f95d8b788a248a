"""The command `ripplevec bench`: its options and output; `bench_run` measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplevec.cli.console import print_json, show_progress
from ripplevec.cli.options import Json


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Use a smaller graph: seconds instead of minutes.")] = False,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record to compare with. By default the one in the package.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Record file to write the results to.")] = None,
    json: Json = False,
) -> None:
    """Benchmark this machine in about two minutes and compare it with a recorded run of another machine."""
    from ripplevec.cli import bench_run

    workload = bench_run.QUICK if quick else bench_run.FULL
    record = bench_run.read_record(against or bench_run.PACKAGED_RECORD, workload.name)
    if save and save.exists():
        bench_run.read_record(save, workload.name)  # reject a file that is not a record before minutes of work
    with show_progress() as bars:
        metrics = bench_run.run_benchmark(workload, bars)
    if save:
        bench_run.write_record(save, workload.name, metrics)
    if json:
        print_json(bench_run.summarize(workload, metrics, record))
    else:
        bench_run.print_comparison(workload, metrics, record)
