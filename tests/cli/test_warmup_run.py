from __future__ import annotations

import subprocess
import sys

import pytest

from ripplevec.cli import warmup_run


def test_warmup_workloads_run_in_processes(monkeypatch):
    monkeypatch.setattr(warmup_run, "WORKLOADS", {"integer ids": warmup_run.WORKLOADS["integer ids"]})
    assert [name for name, _ in warmup_run.run_workloads()] == ["integer ids"]


def test_warmup_workload_uses_the_kernels_of_single_arrivals():
    from ripplevec.rules._arrival_kernel import apply_arrival

    warmup_run.WORKLOADS["text ids"]()
    assert apply_arrival.signatures


# Run in a process of its own, whose kernels are only those that the workloads and the steps after them use.
USE_ALL = """
import sys, tempfile
import numpy as np
from numba.core.dispatcher import Dispatcher
from ripplevec import Embedder, LinkScorer, Session
from ripplevec.cli import warmup_run
from ripplevec.lab.datasets.synthetic import growing_communities
from ripplevec.service.lifecycle import warm_up

def used():
    kernels = [value for name, module in list(sys.modules.items()) if name.startswith("ripplevec")
               for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {(kernel.py_func.__qualname__, str(signature)) for kernel in kernels for signature in kernel.signatures}

for use in warmup_run.WORKLOADS.values():
    use()
warm = used()
edges = growing_communities(vertices=8_000, communities=4).edges
with tempfile.TemporaryDirectory() as folder:
    for settings in ({}, {"half_life": 10.0, "expire_after": 20.0}, {"attribute_dim": 4}):
        state = folder + "/" + "-".join(["state", *settings])
        with Session(state, dim=8, **settings) as session:  # a service: its model, its start and a later one
            warm_up(session.model)
            for batch in np.array_split(edges, 20):
                session.partial_fit(batch)
            session.add_vertex("new", [1, 2], **({"attributes": {"name": 1.0}} if "attribute_dim" in settings else {}))
            session.remove_vertex(3)
        with Session(state) as session:
            session.nearest(1)
new = used() - warm
print(sorted({name for name, _ in new}))
"""


@pytest.mark.timeout(1200)  # in a fresh clone on a busy machine, one process compiles nearly all kernels
def test_warmup_compiles_the_kernels_of_a_session_that_is_opened_again():
    done = subprocess.run([sys.executable, "-c", USE_ALL], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
