"""Tests of sessions on shards: the session directory survives the loss of the driver and of the shards."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import ray

from ripplevec import Embedder, Session
from ripplevec.cluster import Sharded
from ripplevec.durability.maintenance import inspect_directory, verify_directory
from ripplevec.errors import InvalidValueError
from ripplevec.io.registry import sink_to, stream_from

PARAMETERS: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}
DRIVER = Path(__file__).parent / "programs" / "driver.py"


def edges(seed: int, count: int = 40, vertices: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


BATCHES = [edges(seed) for seed in range(8)]


def digest_after(batches: list[list[tuple[int, int]]]) -> str:
    single = Embedder(**PARAMETERS)
    for batch in batches:
        single.partial_fit(batch)
    return single.digest()


def run_and_kill_driver(directory: Path, at: str, **settings: Any) -> None:
    """Run a driver on a session directory until it prints `at`, then kill it."""
    address = ray.get_runtime_context().gcs_address
    settings |= {
        "directory": str(directory),
        "address": address,
        "shards": 2,
        "parameters": PARAMETERS,
        "batches": BATCHES,
    }
    command = [sys.executable, str(DRIVER), json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert at in (line.strip() for line in driver.stdout)
        driver.send_signal(signal.SIGKILL)
    assert driver.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("at", "snapshot_every"), [("begin 6", 60), ("done 3", 10**9)])
def test_session_after_killed_driver_continues_bit_for_bit(
    tmp_path: Path, kill_shard: Any, at: str, snapshot_every: int
) -> None:
    run_and_kill_driver(tmp_path, at, snapshot_every=snapshot_every)
    with Session(tmp_path, model=Sharded(2)) as session:
        done = session.model.sequence
        assert int(at[-1]) - at.startswith("begin") <= done < len(BATCHES)
        assert (session.recovery.snapshot > 0) == (snapshot_every == 60)
        assert session.model.digest() == digest_after(BATCHES[:done])
        for batch in BATCHES[done:]:
            session.apply(batch)
        assert session.model.digest() == digest_after(BATCHES)
        kill_shard(session.model._actors, 0)
        session.apply(edges(9))
        assert session.model.digest() == digest_after([*BATCHES, edges(9)])
        session.model.close()


def files(directory: Path) -> dict[str, bytes]:
    """Return the content of all files, without those of SQLite that a read may create."""
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file() and "-" not in path.name}


def test_session_directory_with_other_shard_count_is_refused(tmp_path: Path) -> None:
    sharded, single = tmp_path / "sharded", tmp_path / "plain"
    with Session(sharded, model=Sharded(2), **PARAMETERS) as session:
        session.apply(BATCHES[0])
        session.snapshot()
        digest = session.model.digest()
        session.model.close()
    with Session(single, **PARAMETERS) as session:
        session.apply(BATCHES[0])
        session.snapshot()
        assert session.model.digest() == digest
    before = files(tmp_path)
    with pytest.raises(
        InvalidValueError, match=r"^shards: expected 2, .* got 3\. Open it with the same number of shards"
    ):
        Session(sharded, model=Sharded(3))
    with pytest.raises(InvalidValueError, match=r"^shards: expected 2, .* got none \(a model on one machine\)"):
        Session(sharded)
    with pytest.raises(InvalidValueError, match=r"^shards: expected none \(a model on one machine\), .* got 2"):
        Session(single, model=Sharded(2))
    assert inspect_directory(sharded)["shards"] == 2
    assert [fault[:18] for fault in verify_directory(sharded)["faults"]] == ["shards: expected 2"]
    assert files(tmp_path) == before
    with Session(sharded, model=Sharded(2)) as session:
        assert session.model.digest() == digest
        session.model.close()


def test_session_run_on_shards_matches_single_machine(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("".join(f"{u},{v}\n" for batch in BATCHES for u, v in batch))
    results = []
    for name, model in (("plain", {}), ("sharded", {"model": Sharded(2)})):
        changes = tmp_path / f"{name}.jsonl"
        source, sink = stream_from(file, batch_size=50), sink_to(changes)
        with (
            Session(tmp_path / name, **PARAMETERS | model) as session,
            closing(cast(Any, source)),
            closing(cast(Any, sink)),
        ):
            results.append((session.run(source, [sink]), session.model.digest(), changes.read_bytes()))
    session.model.close()
    assert results[0] == results[1]
    assert results[0][0] > 1
