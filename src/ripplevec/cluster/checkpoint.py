"""A model on shards as plain arrays: what each shard holds under its number, and what only the driver knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.engine.counters import COUNTERS
from ripplevec.errors import FormatError
from ripplevec.graph.graph import strip_prefix

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine
    from ripplevec.cluster.transport import Transport

Arrays = dict[str, NDArray[Any]]


class ClusterSnapshot:
    """The state of a cluster at one moment, for whoever saves it while the cluster goes on.

    What the shards copied stays where they put it until it is asked for, and is then fetched from one after the other.
    The digest is that of the moment: it asks all shards many times, so that it cannot be left for later.
    """

    def __init__(self, engine: ClusterEngine) -> None:
        self.sequence, self._transport = engine.sequence, engine.transport
        self._own, self._answers = _own_arrays(engine), engine.submit("state")
        self._digest = engine.digest()

    def state(self) -> LazyClusterState:
        """Everything as plain arrays."""
        return LazyClusterState(self._own, self._transport, self._answers)

    def digest(self) -> str:
        """The digest the cluster had."""
        return self._digest


class LazyClusterState(Mapping[str, NDArray[Any]]):
    """Everything as plain arrays, of which those of one shard at a time are here."""

    def __init__(self, own: Arrays, transport: Transport, answers: list[Any]) -> None:
        self._own, self._transport, self._answers = own, transport, answers
        self._held: tuple[int, Arrays] = -1, {}

    def _of_shard(self, number: int) -> Arrays:
        if self._held[0] != number:
            self._held = -1, {}  # before another takes its place
            (found,) = self._transport.get([self._answers[number]])
            self._held = number, found
        return self._held[1]

    def __getitem__(self, name: str) -> NDArray[Any]:
        shard, _, rest = name.removeprefix("shard").partition("_")
        if name in self._own or not shard.isdigit():
            return self._own[name]
        return self._of_shard(int(shard))[rest]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        for number in range(len(self._answers)):
            for name in list(self._of_shard(number)):
                yield f"shard{number}_{name}"

    def __len__(self) -> int:
        return sum(1 for _ in self)


def lazy_state(engine: ClusterEngine) -> LazyClusterState:
    """Everything as plain arrays, copied now and fetched later."""
    return LazyClusterState(_own_arrays(engine), engine.transport, engine.transport.call("state"))


def gather_state(engine: ClusterEngine) -> Arrays:
    """Everything as plain arrays."""
    return dict(lazy_state(engine))


def split_state(state: Arrays, size: int) -> list[Arrays]:
    """What each of so many shards is to hold; an error where it was another number of them."""
    saved = saved_shard_count(state)
    if saved != size:
        raise FormatError(f"the saved model was on {saved:,} shards and this cluster has {size:,}: take as many shards")
    return [strip_prefix(f"shard{number}_", state) for number in range(size)]


def saved_shard_count(state: Arrays) -> int:
    """How many shards a saved model was on."""
    if "shards" not in state:
        raise FormatError("the saved model was not on a cluster: load it on one machine")
    return int(state["shards"])


def _own_arrays(engine: ClusterEngine) -> Arrays:
    return {
        "shards": np.array(engine.transport.size),
        "next_arrival": np.array(engine.next_arrival),
        "counters": np.array(list(engine.counters().values())),
        **{f"rule_{name}": array for name, array in engine.rule.state().items()},
    }


def counters_of(state: Arrays) -> dict[str, int]:
    """The counters of a state by name."""
    return dict(zip(COUNTERS, state["counters"].tolist(), strict=True))
