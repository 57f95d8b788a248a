"""A driver with a session on shards that prints its progress before and after each batch, until it is killed."""

from __future__ import annotations

import json
import sys

from ripplevec import Session
from ripplevec.cluster import Sharded

if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    model = Sharded(settings["shards"], settings["address"])
    with Session(
        settings["directory"], model=model, snapshot_every=settings["snapshot_every"], **settings["parameters"]
    ) as session:
        for batch in settings["batches"]:
            print("begin", session.model.sequence + 1, flush=True)
            print("done", session.apply([tuple(edge) for edge in batch]).sequence, flush=True)
