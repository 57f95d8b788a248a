"""LanceDB sink: a killed process leaves a partial table, and the next one completes it."""

from __future__ import annotations

import subprocess
import sys

import lancedb
import numpy as np
import pytest

from ripplevec import Session
from ripplevec.io import sink_to, stream_from
from ripplevec.lab.datasets.synthetic import planted_partition

KILLED_FEED = """
import os, signal, sys
from ripplevec import Session
from ripplevec.io import sink_to, stream_from
from ripplevec.io.sinks.lance import LanceSink

directory, method, calls_left = sys.argv[1], sys.argv[2], int(sys.argv[3])
function = getattr(LanceSink, method)

def call_and_kill(self, *arguments):
    global calls_left
    calls_left -= 1
    result = function(self, *arguments)
    if not calls_left:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(LanceSink, method, call_and_kill)
with Session(directory + "/state", dim=4, change_threshold=0.0) as session:
    session.run(stream_from(directory + "/edges.csv", batch_size=20), [sink_to("lancedb://" + directory + "/store")])
"""


@pytest.mark.parametrize("method", ["write", "_open_table", "flush"])
def test_lance_sink_killed_process_is_completed_by_next_run(tmp_path, method):
    edges = planted_partition(communities=3, size=40, seed=1).edges.tolist()
    removals = [f"{vertex},,remove_vertex\n" for vertex in range(5)]
    lines = ["src,dst,op\n", *(f"{a},{b},\n" for a, b in edges), *removals]
    (tmp_path / "edges.csv").write_text("".join(lines))
    command = [sys.executable, "-c", KILLED_FEED, str(tmp_path), method, "1"]
    assert subprocess.run(command, check=False).returncode == -9
    with Session(tmp_path / "state") as session:
        source, sink = stream_from(tmp_path / "edges.csv", batch_size=20), sink_to(f"lancedb://{tmp_path}/store")
        session.run(source, [sink])
        source.close()
        sink.close()
        model = session.model
        rows = lancedb.connect(tmp_path / "store").open_table("vertices").to_arrow().to_pylist()
        vectors = {int(row["id"]): row["vector"] for row in rows}
        assert sorted(vectors) == sorted(model.ids)
        assert len(rows) == 115
        assert np.array_equal(np.array([vectors[vertex] for vertex in model.ids], np.float32), model.to_numpy())
