"""A process that feeds a table of LanceDB is killed in the middle of it; the next one brings the table in step."""

from __future__ import annotations

import subprocess
import sys

import lancedb
import numpy as np
import pytest

from ripplevec import Session
from ripplevec.io import sink_to, stream_from
from ripplevec.lab.datasets.synthetic import planted_partition

FEED = """
import os, signal, sys
from ripplevec import Session
from ripplevec.io import sink_to, stream_from
from ripplevec.io.sinks.lance import LanceSink

place, moment, flushes = sys.argv[1], sys.argv[2], int(sys.argv[3])
write, left = getattr(LanceSink, moment), flushes

def killed(self, *arguments):
    global left
    left -= 1
    done = write(self, *arguments)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(LanceSink, moment, killed)
with Session(place + "/state", dim=4, change_threshold=0.0) as session:
    session.run(stream_from(place + "/edges.csv", batch_size=20), [sink_to("lancedb://" + place + "/store")])
"""


@pytest.mark.parametrize("moment", ["write", "_opened", "flush"])
def test_killed_between_the_session_and_the_table(tmp_path, moment):
    edges = planted_partition(communities=3, size=40, seed=1).edges.tolist()
    removals = [f"{vertex},,remove_vertex\n" for vertex in range(5)]
    lines = ["src,dst,op\n", *(f"{a},{b},\n" for a, b in edges), *removals]
    (tmp_path / "edges.csv").write_text("".join(lines))
    command = [sys.executable, "-c", FEED, str(tmp_path), moment, "1"]
    assert subprocess.run(command, check=False).returncode == -9
    with Session(tmp_path / "state") as session:
        source, sink = stream_from(tmp_path / "edges.csv", batch_size=20), sink_to(f"lancedb://{tmp_path}/store")
        session.run(source, [sink])
        source.close()
        sink.close()
        model = session.model
        rows = lancedb.connect(tmp_path / "store").open_table("vertices").to_arrow().to_pylist()
        found = {int(row["id"]): row["vector"] for row in rows}
        assert sorted(found) == sorted(model.ids)
        assert len(rows) == 115
        assert np.array_equal(np.array([found[name] for name in model.ids], np.float32), model.to_numpy())
