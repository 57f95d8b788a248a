"""A short soak: traffic, reads and kills as in `make soak`; nothing acknowledged is lost, nothing applied twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
SMALL = {"minutes": 0.25, "kills": 2, "vertices": 1000, "arrivals": 25, "dim": 16, "snapshot-every": 5000}


def test_a_service_that_is_killed_under_traffic_ends_where_one_left_alone_does(tmp_path: Path) -> None:
    options = SMALL | {"json": tmp_path / "record.json", "picture": tmp_path / "soak.svg"}
    command = [
        sys.executable,
        str(SOAK),
        *(word for name, value in options.items() for word in (f"--{name}", str(value))),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "RIPPLET_BENCH_DIR": str(tmp_path)}, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["faults"] == []  # the digest, the place of every batch, every read of what was acknowledged
    assert record["killed"] == 2
    assert record["sent_again"] > 0
    assert record["snapshots"] > 1
    assert record["anchors"] > 1
    assert min(record["reads"], record["searches"], record["looks_at_changes"]) > 0
    assert len(record["samples"]) > 5
    assert ElementTree.parse(tmp_path / "soak.svg").getroot().tag.endswith("svg")
