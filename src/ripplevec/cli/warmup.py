"""The command `ripplevec warmup`: compile the kernels in advance; `warmup_run` has the models that use them."""

from __future__ import annotations

from time import perf_counter

from ripplevec.cli.console import format_count, print_json, print_message, show_progress
from ripplevec.cli.options import Json


def warmup(json: Json = False) -> None:
    """Compile the kernels now, in parallel, so that the first model starts at once. Compiled kernels are kept."""
    from ripplevec.cli import warmup_run

    began = perf_counter()
    with show_progress() as bars:
        task = bars.add_task("compile", total=len(warmup_run.WORKLOADS), note="")
        kernels = 0
        for name, compiled in warmup_run.run_workloads():
            kernels += compiled
            bars.update(task, advance=1, note=name)
    seconds = perf_counter() - began
    if json:
        print_json({"kernels": kernels, "seconds": seconds})
    else:
        print_message(f"{format_count(kernels, 'kernel')} compiled in {seconds:.1f} s")
