"""A model on shards as it was before a change that takes long: shards keep copies, which readers ask meanwhile."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from ripplevec.cluster.driver_reads import Reads
from ripplevec.cluster.shard import NOT_HELD
from ripplevec.cluster.transport import Crew, Lost

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine

_numbers = count(1)
_KNOWN = ("parameters", "anchor_growth", "start_size", "next_arrival", "_vertices", "_edges", "spare")


class HeldState(Reads):
    """What an engine was when this was made. For readers; it holds until the engine has been changed."""

    def __init__(self, engine: ClusterEngine) -> None:
        number = next(_numbers)
        engine.ask("hold", copy=number)
        self.crew: Crew = HeldCrew(engine.crew, number)
        self.rule = engine.rule.copy()
        vars(self).update(engine.counters(), **{name: getattr(engine, name) for name in _KNOWN})
        weakref.finalize(self, engine.crew.call, "release", copy=number).atexit = False


class HeldCrew:
    """Asks the copies that shards keep."""

    def __init__(self, crew: Crew, number: int) -> None:
        self.size, self._crew, self._number = crew.size, crew, number

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask every copy."""
        return self._crew.call(
            "of_held", *columns, parts=parts, copy=self._number, question=method, constants=constants
        )

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """Answers to look at; Lost where a shard has gone with its copy."""
        try:
            found = self._crew.get(answers)
        except Lost as error:
            raise Lost("a shard is being recovered: ask again") from error
        if any(isinstance(answer, str) and answer == NOT_HELD for answer in found):
            raise Lost("a shard is being recovered: ask again")
        return found

    def open(self) -> None:
        """Copies are made by shards that are there."""
        raise NotImplementedError
