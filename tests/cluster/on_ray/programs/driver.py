"""A driver with a session on shards that says before and after each batch where it is: to be killed meanwhile."""

from __future__ import annotations

import json
import sys

from ripplevec import Session
from ripplevec.cluster import Sharded

if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    model = Sharded(told["shards"], told["address"])
    with Session(told["directory"], model=model, snapshot_every=told["snapshot_every"], **told["how"]) as session:
        for batch in told["batches"]:
            print("begin", session.model.sequence + 1, flush=True)
            print("done", session.apply([tuple(edge) for edge in batch]).sequence, flush=True)
