"""Transport between the driver and its shards: calls of `Shard` methods by name, on all shards at once.

A call returns references to results. References that are passed on to another call go from shard to shard: on Ray,
their contents never reach the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ripplevec.errors import StateError

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard


class ShardLostError(StateError):
    """A shard is gone, or has lost its state."""


class Transport(Protocol):
    """Calls methods on all shards."""

    size: int

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Call a method on every shard and return a reference to the result of each.

        Each shard executes its calls in the order in which they were made.

        Parameters
        ----------
        method
            Name of a `Shard` method.
        *columns
            Positional arguments: shard i receives entry i of every column. Entries may be references.
        parts
            If positive, every result is a sequence of this length, and the reference to it is a sequence of references
            to its parts.
        **constants
            Keyword arguments, the same for all shards.
        """

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Resolve references; raise `ShardLostError` if a shard cannot deliver its result."""

    def reset(self) -> None:
        """Replace all shards by empty ones."""


class LocalTransport:
    """Shards in this process, called one after the other."""

    def __init__(self, size: int, new_shard: Callable[[int], Shard]) -> None:
        self.size, self._new_shard = size, new_shard
        self.reset()

    def reset(self) -> None:
        """Replace all shards by empty ones."""
        self.shards = [self._new_shard(index) for index in range(self.size)]

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Call a method on every shard; the results are returned as they are."""
        return [
            getattr(shard, method)(*(column[index] for column in columns), **constants)
            for index, shard in enumerate(self.shards)
        ]

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Return the results: they are already in this process."""
        return list(results)
