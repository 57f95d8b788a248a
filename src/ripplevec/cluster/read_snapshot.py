"""Read-only snapshot of a model on shards, which serves reads during a long update."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from copy import deepcopy
from itertools import count
from typing import TYPE_CHECKING, Any

from ripplevec.cluster.driver_reads import ShardReads
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.shard import SNAPSHOT_GONE
from ripplevec.cluster.transport import Transport

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine

RECOVERING = "A shard is being recovered; retry."

_snapshot_numbers = count(1)
_COPIED_ATTRIBUTES = (
    *("parameters", "anchor_growth", "start_size", "growth_slack"),
    *("next_arrival", "vertices", "edges", "weight_scale"),
)


class ReadSnapshot(ShardReads):
    """The state that an engine had when this snapshot was created, for readers until an update is complete.

    Every shard keeps a copy of its state until the snapshot is garbage-collected.
    """

    def __init__(self, engine: ClusterEngine) -> None:
        snapshot = next(_snapshot_numbers)
        engine.query("create_read_snapshot", snapshot=snapshot)
        self.transport: Transport = SnapshotTransport(engine.transport, snapshot)
        self.rule, self.aging = engine.rule.copy(), deepcopy(engine.aging)
        vars(self).update(engine.counters(), **{name: getattr(engine, name) for name in _COPIED_ATTRIBUTES})
        weakref.finalize(self, engine.transport.call, "drop_read_snapshot", snapshot=snapshot).atexit = False


class SnapshotTransport:
    """Calls methods on the copies that the shards keep for a snapshot."""

    def __init__(self, transport: Transport, snapshot: int) -> None:
        self.size, self._transport, self._snapshot = transport.size, transport, snapshot

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every copy."""
        return self._transport.call(
            "query_read_snapshot", *columns, snapshot=self._snapshot, read_method=method, constants=constants
        )

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Not supported: a snapshot is read-only."""
        raise NotImplementedError

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Resolve references; raise `ShardLostError` if a shard lost its copy."""
        try:
            values = self._transport.get(results)
        except ShardLostError as error:
            raise ShardLostError(RECOVERING) from error
        if any(isinstance(value, str) and value == SNAPSHOT_GONE for value in values):
            raise ShardLostError(RECOVERING)
        return values

    def wait(self, results: Sequence[Any]) -> None:
        """Wait until results are computed."""
        self._transport.wait(results)

    def drop(self) -> None:
        """Not supported: a snapshot is read-only."""
        raise NotImplementedError
