"""The state of a model on shards as plain arrays, for saving and restoring: arrays of each shard and of the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import FormatError
from ripplevec.graph.graph import strip_prefix

if TYPE_CHECKING:
    from ripplevec.cluster.engine import ClusterEngine
    from ripplevec.cluster.transport import Transport

Arrays = dict[str, NDArray[Any]]


class ClusterSnapshot:
    """The state of a cluster at one moment, which can be saved while the cluster continues.

    Every shard copies its arrays now. The copies stay in the object store until they are read, and are then fetched one
    shard after the other. The digest is computed now: it takes many queries to all shards and cannot be deferred.
    """

    def __init__(self, engine: ClusterEngine) -> None:
        self.sequence, self._state, self._digest = engine.sequence, lazy_state(engine), engine.digest()

    def state(self) -> LazyClusterState:
        """Return the state as plain arrays."""
        return self._state

    def digest(self) -> str:
        """Return the digest that the cluster had."""
        return self._digest


class LazyClusterState(Mapping[str, NDArray[Any]]):
    """The state of a cluster as plain arrays, of which those of one shard at a time are on the driver."""

    def __init__(self, driver_arrays: Arrays, transport: Transport, shard_states: list[Any]) -> None:
        self._driver_arrays, self._transport, self._shard_states = driver_arrays, transport, shard_states
        self._cached: tuple[int, Arrays] = -1, {}  # shard, and its arrays

    def _arrays_of_shard(self, shard: int) -> Arrays:
        if self._cached[0] != shard:
            self._cached = -1, {}  # free the memory before the next state arrives
            (arrays,) = self._transport.get([self._shard_states[shard]])
            self._cached = shard, arrays
        return self._cached[1]

    def __getitem__(self, name: str) -> NDArray[Any]:
        shard, _, shard_array = name.removeprefix("shard").partition("_")
        if name in self._driver_arrays or not shard.isdigit():
            return self._driver_arrays[name]
        return self._arrays_of_shard(int(shard))[shard_array]

    def __iter__(self) -> Iterator[str]:
        yield from self._driver_arrays
        for shard in range(len(self._shard_states)):
            for name in list(self._arrays_of_shard(shard)):
                yield f"shard{shard}_{name}"

    def __len__(self) -> int:
        return sum(1 for _ in self)


def lazy_state(engine: ClusterEngine) -> LazyClusterState:
    """Return the state of a cluster as plain arrays that are copied now and fetched when they are read."""
    return LazyClusterState(_driver_arrays(engine), engine.transport, engine.submit("state"))


def split_state(state: Mapping[str, NDArray[Any]], size: int) -> list[Arrays]:
    """Return the arrays of each shard; raise `FormatError` if the state has another number of shards than `size`."""
    saved = saved_shard_count(state)
    if saved != size:
        raise FormatError(
            f"Wrong number of shards: expected {saved:,} as in the saved model, got {size:,}. "
            f"Open the model with {saved:,} shards."
        )
    return [strip_prefix(f"shard{shard}_", state) for shard in range(size)]


def saved_shard_count(state: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of shards of a saved model."""
    if "shards" not in state:
        raise FormatError(
            "Wrong kind of model: expected a model saved on shards, got one saved on one machine. "
            "Load it with Embedder.load."
        )
    return int(state["shards"])


def _driver_arrays(engine: ClusterEngine) -> Arrays:
    aging = {} if engine.aging is None else engine.aging.state()
    pending = {} if engine.correction is None else engine.correction.state()
    return {
        "shards": np.array(engine.transport.size),
        "next_arrival": np.array(engine.next_arrival),
        "counters": np.array(list(engine.counters().values())),
        **{f"rule_{name}": array for name, array in engine.rule.state().items()},
        **{f"memory_{name}": array for name, array in aging.items()},
        **{f"pending_{name}": array for name, array in pending.items()},
        **engine.attribute_arrays(),
    }
