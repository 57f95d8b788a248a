"""A model on shards as it was before a change that takes long: shards keep copies, which readers ask meanwhile."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from ripplevec.cluster.driver_reads import DriverReads
from ripplevec.cluster.shard import SNAPSHOT_GONE
from ripplevec.cluster.transport import ShardLostError, Transport

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine

_numbers = count(1)
_KNOWN = ("parameters", "anchor_growth", "start_size", "next_arrival", "_vertices", "_edges", "spare")


class ReadSnapshot(DriverReads):
    """What an engine was when this was made. For readers; it holds until the engine has been changed."""

    def __init__(self, engine: ClusterEngine) -> None:
        number = next(_numbers)
        engine.query("create_read_snapshot", copy=number)
        self.transport: Transport = SnapshotTransport(engine.transport, number)
        self.rule = engine.rule.copy()
        vars(self).update(engine.counters(), **{name: getattr(engine, name) for name in _KNOWN})
        weakref.finalize(self, engine.transport.call, "drop_read_snapshot", copy=number).atexit = False


class SnapshotTransport:
    """Asks the copies that shards keep."""

    def __init__(self, transport: Transport, number: int) -> None:
        self.size, self._transport, self._number = transport.size, transport, number

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask every copy."""
        return self._transport.call(
            "query_read_snapshot", *columns, parts=parts, copy=self._number, question=method, constants=constants
        )

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """Answers to look at; Lost where a shard has gone with its copy."""
        try:
            found = self._transport.get(answers)
        except ShardLostError as error:
            raise ShardLostError("a shard is being recovered: ask again") from error
        if any(isinstance(answer, str) and answer == SNAPSHOT_GONE for answer in found):
            raise ShardLostError("a shard is being recovered: ask again")
        return found

    def reset(self) -> None:
        """Copies are made by shards that are there."""
        raise NotImplementedError
