"""The crew: all shards, wherever they are. What is asked of each is a method by name; what it answers may be elsewhere.

Answers that go from shard to shard are handed on without being looked at: on Ray they never come to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ripplevec.errors import StateError

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard


class ShardLostError(StateError):
    """A shard has gone, or no longer knows what it knew."""


class Transport(Protocol):
    """Shards that can be asked, all at once."""

    size: int

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask every shard, the i-th with the i-th of each column; the answers, or of each answer its parts.

        Columns may hold answers that have not been looked at. What each shard is asked comes in the order of the calls.
        """

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """Answers to look at; Lost where a shard can no longer be asked."""

    def reset(self) -> None:
        """Have empty shards, whatever there was."""


class LocalTransport:
    """Shards in this process."""

    def __init__(self, size: int, new: Callable[[int], Shard]) -> None:
        self.size, self._new = size, new
        self.reset()

    def reset(self) -> None:
        """Have empty shards."""
        self.shards = [self._new(number) for number in range(self.size)]

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask one after the other."""
        return [
            getattr(shard, method)(*(column[number] for column in columns), **constants)
            for number, shard in enumerate(self.shards)
        ]

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """They are here."""
        return list(answers)
