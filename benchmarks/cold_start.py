"""Seconds until the first vectors of a new process: with an empty cache of compiled kernels, and with a full one.

    python benchmarks/cold_start.py [--json FILE]

Every process imports the package, fits six edges, reads a vector, adds a vertex, and runs the rest of the first example
of the README. Each step has its wall clock from the first import, and the processor time of the process until then,
which depends less on what else the machine does. `processor` also counts the second process, which compiles at the same
time (`util/compile_ahead.py`). `alone` is without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from _report import run_benchmark

EXAMPLE = """
import json, os, sys, tempfile, time
began, marks = time.perf_counter(), {}
def mark(name):
    marks[name] = time.perf_counter() - began
    marks[name + "_processor"] = time.process_time()
import ripplevec
model = ripplevec.Embedder(dim=16, seed=0)
mark("import")
model.fit([("ann", "bob"), ("bob", "cat"), ("cat", "ann"), ("cat", "dan"), ("dan", "eve"), ("eve", "fay")])
mark("fit")
model["ann"]
mark("first_vector")
model.add_vertex("gus", ["dan", "eve"])
mark("first_arrival")
model.partial_fit([("hal", "gus"), ("hal", "fay", 2.0)])
model.nearest("gus", k=3)
model.preview(["ann", "bob"])
with tempfile.TemporaryDirectory() as directory:
    model.save(directory + "/model")
    ripplevec.load(directory + "/model")
mark("example")
from ripplevec.util.compile_ahead import is_compiling_ahead
while is_compiling_ahead():
    time.sleep(0.1)
marks["processor"] = sum(os.times()[:4])
json.dump(marks, sys.stdout)
"""


def measure(repeats: int) -> dict[str, float]:
    """Run the example with empty caches, then `repeats` times with a full one; return the seconds until each step."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as together, tempfile.TemporaryDirectory() as alone:
        cold = run_example(together)
        cold_alone = run_example(alone, RIPPLEVEC_COMPILE_AHEAD="0")
        warm = [run_example(together) for _ in range(repeats)]
    best = {step: min(run[step] for run in warm) for step in warm[0]}
    cases = {"cold": cold, "alone": cold_alone, "warm": best}
    seconds = {f"{case}_{step}": value for case, steps in cases.items() for step, value in steps.items()}
    return seconds | {"load_average": load}


def run_example(cache: str, **environment: str) -> dict[str, Any]:
    """Run the example in a new process with this cache directory; return its times."""
    variables = os.environ | {"NUMBA_CACHE_DIR": cache} | environment
    done = subprocess.run([sys.executable, "-c", EXAMPLE], env=variables, capture_output=True, text=True, check=True)
    marks: dict[str, Any] = json.loads(done.stdout)
    return marks


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "repeats", 5)
