"""A session on shards is in its directory: whatever becomes of the driver, and of the shards with it."""

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
from ripplevec.cli.main import ExitCode, run
from ripplevec.cluster import Sharded
from ripplevec.durability.inspection import inspect_directory, verify_directory
from ripplevec.errors import InvalidValueError
from ripplevec.io.registry import sink_to, stream_from

HOW: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "threads": 1}
DRIVER = Path(__file__).parent / "programs" / "driver.py"


def edges(seed: int, count: int = 40, vertices: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, vertices, (count, 2))
    return [(u, v) for u, v in drawn.tolist() if u != v]


BATCHES = [edges(turn) for turn in range(8)]


def uninterrupted(batches: list[list[tuple[int, int]]]) -> str:
    alone = Embedder(**HOW)
    for batch in batches:
        alone.partial_fit(batch)
    return alone.digest()


def killed(directory: Path, at: str, **told: Any) -> None:
    """Have a driver work on a directory until it says this, and kill it then."""
    address = ray.get_runtime_context().gcs_address
    told |= {"directory": str(directory), "address": address, "shards": 2, "how": HOW, "batches": BATCHES}
    command = [sys.executable, str(DRIVER), json.dumps(told)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert at in (line.strip() for line in driver.stdout)
        driver.send_signal(signal.SIGKILL)
    assert driver.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("at", "snapshot_every"), [("begin 6", 60), ("done 3", 10**9)])
def test_killed_in_the_middle_of_a_stream_nothing_is_lost(tmp_path: Path, at: str, snapshot_every: int) -> None:
    killed(tmp_path, at, snapshot_every=snapshot_every)
    with Session(tmp_path, model=Sharded(2)) as session:
        done = session.model.sequence
        assert int(at[-1]) - at.startswith("begin") <= done < len(BATCHES)
        assert (session.recovery.snapshot > 0) == (snapshot_every == 60)
        assert session.model.digest() == uninterrupted(BATCHES[:done])
        for batch in BATCHES[done:]:
            session.apply(batch)
        assert session.model.digest() == uninterrupted(BATCHES)
        ray.kill(session.model._actors.handles[0], no_restart=False)
        session.apply(edges(9))
        assert session.model.digest() == uninterrupted([*BATCHES, edges(9)])
        session.model.close()


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_directory_is_of_as_many_shards_as_it_was_made_with(tmp_path: Path) -> None:
    sharded, plain = tmp_path / "sharded", tmp_path / "plain"
    with Session(sharded, model=Sharded(2), **HOW) as session:
        session.apply(BATCHES[0])
        session.snapshot()
        digest = session.model.digest()
        session.model.close()
    with Session(plain, **HOW) as session:
        session.apply(BATCHES[0])
        session.snapshot()
        assert session.model.digest() == digest
    before = files(tmp_path)
    with pytest.raises(InvalidValueError, match=r"^shards: expected 2, .* got 3; open it as it was made"):
        Session(sharded, model=Sharded(3))
    with pytest.raises(InvalidValueError, match=r"^shards: expected 2, .* got none \(a model on one machine\)"):
        Session(sharded)
    with pytest.raises(InvalidValueError, match=r"^shards: expected none \(a model on one machine\), .* got 2"):
        Session(plain, model=Sharded(2))
    assert inspect_directory(sharded)["shards"] == 2
    assert [fault[:18] for fault in verify_directory(sharded)["faults"]] == ["shards: expected 2"]
    with pytest.raises(SystemExit, match=str(int(ExitCode.BAD_INPUT))):
        run(["state", "cut", str(sharded)])
    assert files(tmp_path) == before
    with Session(sharded, model=Sharded(2)) as session:
        assert session.model.digest() == digest
        session.model.close()


def test_a_file_runs_into_a_session_on_shards_as_into_any_other(tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("".join(f"{u},{v}\n" for batch in BATCHES for u, v in batch))
    found = []
    for name, model in (("plain", {}), ("sharded", {"model": Sharded(2)})):
        changes = tmp_path / f"{name}.jsonl"
        source, sink = stream_from(file, batch_size=50), sink_to(changes)
        with Session(tmp_path / name, **HOW | model) as session, closing(cast(Any, source)), closing(cast(Any, sink)):
            found.append((session.run(source, [sink]), session.model.digest(), changes.read_bytes()))
    session.model.close()
    assert found[0] == found[1]
    assert found[0][0] > 1
