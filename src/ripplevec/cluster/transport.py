"""Transport between the driver and its shards: queries to each shard, and programs that all shards run together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from ripplevec.cluster.mesh import ShardLostError, connect_locally

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard


class Transport(Protocol):
    """Calls methods on all shards: `run` for programs, in which the shards exchange data, and `call` for queries."""

    size: int

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Run a method on all shards at the same time and return the results; it may exchange data between the shards.

        If it fails on one shard, it fails on all of them, and the state of the shards is undefined.

        Parameters
        ----------
        method
            Name of a `Shard` method.
        *columns
            Positional arguments: shard i receives entry i of every column.
        **constants
            Keyword arguments, the same for all shards.
        """

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard, without data from other shards; return a reference to each result.

        Calls do not wait for each other; a method that changes the state must have returned before `run` is called.
        """

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Resolve references; raise `ShardLostError` if a shard cannot deliver its result."""

    def wait(self, results: Sequence[Any]) -> None:
        """Wait until results are computed, without fetching them."""

    def drop(self) -> None:
        """Drop all shards, whose state is not needed any more."""


class LocalTransport:
    """Shards in this process."""

    def __init__(self, size: int, new_shard: Callable[[int], Shard]) -> None:
        self.size, self.shards = size, [new_shard(index) for index in range(size)]
        self._connect()

    def drop(self) -> None:
        """Drop all shards."""
        self.shards = []

    def _connect(self) -> None:
        for shard, mesh in zip(self.shards, connect_locally(self.size), strict=True):
            shard.mesh = mesh

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Run a method on one thread per shard; raise the first error that is not a consequence of another."""

        def run_on(index: int) -> Any:
            shard = self.shards[index]
            try:
                return getattr(shard, method)(*(column[index] for column in columns), **constants)
            except BaseException:
                shard.mesh.close()
                raise

        with ThreadPoolExecutor(self.size, thread_name_prefix="shard") as threads:
            futures = [threads.submit(run_on, index) for index in range(self.size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            self._connect()  # new queues, without the messages that were not received
            raise min(errors, key=lambda error: isinstance(error, ShardLostError))
        return [future.result() for future in futures]

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on every shard; return the results themselves instead of references."""
        return [
            getattr(shard, method)(*(column[index] for column in columns), **constants)
            for index, shard in enumerate(self.shards)
        ]

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Return the results: they are already in this process."""
        return list(results)

    def wait(self, results: Sequence[Any]) -> None:
        """Return: the results are already computed."""
