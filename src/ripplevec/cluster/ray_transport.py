"""Shards as Ray actors: Ray places and restarts them, and transfers results between them."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Lock
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import ShardLostError
from ripplevec.errors import StateError
from ripplevec.parameters import Parameters

START_TIMEOUT = 120.0
"""Seconds that actors may take to start, or to restart, before an error is raised."""

MAX_UNREAD_CALLS = 64
"""Largest number of calls whose results are held unread; earlier calls have finished by then."""

_DRAIN_TIMEOUT = 10.0  # seconds to wait for held results, and to read each of them, after a shard was lost

_model_numbers = count()


class ShardActor:
    """A Ray actor that hosts one shard for each model that uses it."""

    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}
        self._failures: dict[int, str] = {}

    def create_shard(self, model: int, index: int, shards: int, parameters: Parameters) -> None:
        """Create an empty shard for a model."""
        self._shards[model] = Shard(index, shards, parameters)

    def drop_shard(self, model: int) -> None:
        """Drop the shard of a model."""
        self._shards.pop(model, None)

    def call(self, model: int, method: str, parts: int, constants: dict[str, Any], *arguments: Any) -> Any:
        """Call a method of a model's shard.

        A shard whose method raises is dropped: its state no longer agrees with that of the other shards.
        """
        shard = self._shards.get(model)
        if shard is None:
            reason = self._failures.get(model, "Ray restarted its process")
            raise ShardLostError(f"Shard lost: {reason}")
        try:
            result = getattr(shard, method)(*arguments, **constants)
        except BaseException as error:
            self._failures[model] = f"{method} failed with {error!r}"
            self.drop_shard(model)
            raise
        return result[0] if parts == 1 else tuple(result) if parts else result


class ShardActors:
    """The actors of a cluster, one per shard, distributed over its machines; several models may share them."""

    def __init__(self, size: int, address: str | None = None, **options: Any) -> None:
        if not ray.is_initialized():
            if not address:  # start a new cluster even if one is already running here
                address, options = "local", {"include_dashboard": False, **options}
            ray.init(address, log_to_driver=False, **options)
        self.size = size
        actor, machines = ray.remote(ShardActor), {node["NodeID"]: _count_processors(node) for node in ray.nodes()}
        self.handles = [
            actor.options(
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=True),  # soft: it may move on restart
            ).remote()
            for machine in distribute_shards(size, machines)
        ]
        self._call_methods: dict[int, list[Any]] = {}
        self.threads = max(1, int(ray.cluster_resources().get("CPU", 1)) // size)  # per shard

    def call_methods(self, num_returns: int) -> list[Any]:
        """Return the remote `call` method of every actor for this number of results; cached, as Ray is slow here."""
        if num_returns not in self._call_methods:
            self._call_methods[num_returns] = [handle.call.options(num_returns=num_returns) for handle in self.handles]
        return self._call_methods[num_returns]

    def close(self) -> None:
        """Terminate the actors."""
        for handle in self.handles:
            ray.kill(handle)


class RayTransport:
    """The shards of one model, each hosted by its actor."""

    def __init__(self, actors: ShardActors, parameters: Parameters) -> None:
        self.size, self._actors, self._model = actors.size, actors, next(_model_numbers)
        self._parameters = replace(parameters, threads=parameters.threads or actors.threads)
        self._unread = UnreadResults(self.size)
        self.reset()
        weakref.finalize(self, partial(_drop_shards, actors, self._model))

    def reset(self) -> None:
        """Replace all shards by empty ones; wait for actors that Ray is restarting."""
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                created = [
                    actor.create_shard.remote(self._model, index, self.size, self._parameters)
                    for index, actor in enumerate(self._actors.handles)
                ]
                self._unread.add(created)
                _fetch(created, START_TIMEOUT)
                return
            except ShardLostError as error:
                if time.monotonic() > deadline:
                    raise StateError(
                        f"Shards did not start: expected {self.size:,} actors within {START_TIMEOUT:g} s, "
                        f"got: {error}. Check the state of the Ray cluster."
                    ) from error
                time.sleep(0.1)
            finally:
                self._unread.drain()

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Call a method on all shards concurrently; results stay in Ray's object store."""
        results = [
            remote_call.remote(self._model, method, parts, constants, *(column[index] for column in columns))
            for index, remote_call in enumerate(self._actors.call_methods(max(parts, 1)))
        ]
        self._unread.add(results if parts <= 1 else [part for result in results for part in result])
        return [[result] for result in results] if parts == 1 else results

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Wait for results; raise `ShardLostError` if a shard lost its process, its machine or its state."""
        values = _fetch(results)
        self._unread.release(results)
        return values


class UnreadResults:
    """The results of recent calls, held until a later call has succeeded on every shard.

    Ray prints an error for every failed result that is dropped before it was read. Each shard executes calls in order,
    and a shard that failed executes no further calls. So a call that succeeded on every shard implies that all earlier
    calls succeeded too, and their results can be dropped.
    """

    def __init__(self, shards: int) -> None:
        self._shards, self._call_numbers, self._lock = shards, count(), Lock()
        self._calls: deque[tuple[int, list[Any]]] = deque(maxlen=MAX_UNREAD_CALLS)

    @property
    def held(self) -> list[Any]:
        """The results that are held now, oldest first."""
        with self._lock:
            return [result for _, results in self._calls for result in results]

    def add(self, results: Sequence[Any]) -> None:
        """Hold the results of a call."""
        with self._lock:
            self._calls.append((next(self._call_numbers), list(results)))

    def release(self, read: Sequence[Any]) -> None:
        """Drop a call, and all calls before it, after one result of every shard was read without an error."""
        if len(read) < self._shards:
            return
        with self._lock:
            last = next((number for number, held in reversed(self._calls) if set(held).issuperset(read)), -1)
            while self._calls and self._calls[0][0] <= last:
                self._calls.popleft()

    def drain(self) -> None:
        """Read all held results and ignore their errors, which have been reported by then."""
        with self._lock:
            held = [result for _, results in self._calls for result in results]
            self._calls.clear()
        if held:
            ready, _ = ray.wait(held, num_returns=len(held), timeout=_DRAIN_TIMEOUT, fetch_local=False)
            for result in ready:
                with suppress(Exception):
                    ray.get(result, timeout=_DRAIN_TIMEOUT)


def distribute_shards(size: int, processors: Mapping[str, float]) -> list[str]:
    """Choose a machine for each shard in proportion to processors; Ray's own placement may put all on one machine."""
    assigned = dict.fromkeys(processors, 0)
    for _ in range(size):
        freest = min(processors, key=lambda machine: (assigned[machine] + 1) / (processors[machine] or 1e-9))
        assigned[freest] += 1
    return [machine for machine, shards in assigned.items() for _ in range(shards)]


def _fetch(results: Sequence[Any], timeout: float | None = None) -> list[Any]:
    try:
        return ray.get(list(results), timeout=timeout)
    except ShardLostError:
        raise
    except RayTaskError as error:
        if isinstance(error.cause, RayError):
            raise ShardLostError(f"Shard lost: {error.cause}") from error
        raise
    except RayError as error:
        raise ShardLostError(f"Shard lost: {error}") from error


def _count_processors(node: Mapping[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0)) if node["Alive"] else 0.0


def _drop_shards(actors: ShardActors, model: int) -> None:
    if ray.is_initialized():
        for handle in actors.handles:
            handle.drop_shard.options(num_returns=0).remote(model)  # no result, as it would never be read
