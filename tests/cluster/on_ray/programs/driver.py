"""A driver with a session on shards that prints its progress before and after each batch, until it is killed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from ripplevec import Session
from ripplevec.cluster import Sharded


def wait_for_snapshot(session: Session, snapshot_every: int) -> None:
    """Once a snapshot is due, wait until one has been written: a slow disk must not decide the outcome."""
    deadline = time.monotonic() + 60
    while session.model.engine.events >= snapshot_every and time.monotonic() < deadline:
        if any(Path(session.directory, "snapshots").glob("[0-9]*")):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    model = Sharded(settings["shards"], settings["address"])
    with Session(
        settings["directory"], model=model, snapshot_every=settings["snapshot_every"], **settings["parameters"]
    ) as session:
        for batch in settings["batches"]:
            wait_for_snapshot(session, settings["snapshot_every"])
            print("begin", session.model.sequence + 1, flush=True)
            print("done", session.apply([tuple(edge) for edge in batch]).sequence, flush=True)
