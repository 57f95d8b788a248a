"""Shards as Ray actors: Ray places them, starts them again, and carries what they hand each other."""

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
"""Seconds that actors may take to be there (again) before they are given up."""

_models = count()


class ShardActor:
    """The shards that fall to one actor: one for each model that uses it."""

    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}
        self._failures: dict[int, str] = {}

    def reset(self, model: int, number: int, shards: int, parameters: Parameters) -> None:
        """Have an empty shard of a model."""
        self._shards[model] = Shard(number, shards, parameters)

    def close(self, model: int) -> None:
        """Forget the shard of a model."""
        self._shards.pop(model, None)

    def do(self, model: int, method: str, parts: int, constants: dict[str, Any], *arguments: Any) -> Any:
        """Ask the shard of a model. One that has failed is no longer what the others take it for, and is given up."""
        shard = self._shards.get(model)
        if shard is None:
            raise ShardLostError("a shard is lost: " + self._failures.get(model, "Ray had to start it again"))
        try:
            answer = getattr(shard, method)(*arguments, **constants)
        except BaseException as error:
            self._failures[model] = f"{method} failed with {error!r}"
            self.close(model)
            raise
        return answer[0] if parts == 1 else tuple(answer) if parts else answer


class ShardActors:
    """The actors of a cluster, one per shard, spread over its machines; models share them."""

    def __init__(self, size: int, address: str | None = None, **options: Any) -> None:
        if not ray.is_initialized():
            if not address:  # not one that is already there
                address, options = "local", {"include_dashboard": False, **options}
            ray.init(address, log_to_driver=False, **options)
        self.size = size
        actor, machines = ray.remote(ShardActor), {node["NodeID"]: _processors(node) for node in ray.nodes()}
        self.handles = [
            actor.options(
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=True),  # once it is gone, another
            ).remote()
            for machine in spread(size, machines)
        ]
        self._doing: dict[int, list[Any]] = {}
        self.threads = max(1, int(ray.cluster_resources().get("CPU", 1)) // size)  # of a shard

    def doing(self, returns: int) -> list[Any]:
        """How to ask each of them for so many answers; made once, as it takes Ray a while."""
        if returns not in self._doing:
            self._doing[returns] = [handle.do.options(num_returns=returns) for handle in self.handles]
        return self._doing[returns]

    def close(self) -> None:
        """End the actors."""
        for handle in self.handles:
            ray.kill(handle)


class RayTransport:
    """The shards of one model, each with its actor."""

    def __init__(self, actors: ShardActors, parameters: Parameters) -> None:
        self.size, self._actors, self._model = actors.size, actors, next(_models)
        self._parameters = replace(parameters, threads=parameters.threads or actors.threads)
        self._unread = UnreadResults(self.size)
        self.reset()
        weakref.finalize(self, partial(_close, actors, self._model))

    def reset(self) -> None:
        """Have empty shards; actors that Ray is starting again are waited for."""
        until = time.monotonic() + START_TIMEOUT
        while True:
            try:
                asked = enumerate(self._actors.handles)
                opened = [
                    actor.reset.remote(self._model, number, self.size, self._parameters) for number, actor in asked
                ]
                self._unread.add(opened)
                _fetch(opened, START_TIMEOUT)
                return
            except ShardLostError as error:
                if time.monotonic() > until:
                    raise StateError(f"no {self.size:,} shards on Ray within {START_TIMEOUT:g} s: {error}") from error
                time.sleep(0.1)
            finally:
                self._unread.drain()

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Ask all at once. What goes from shard to shard stays in the object store."""
        answers = [
            do.remote(self._model, method, parts, constants, *(column[number] for column in columns))
            for number, do in enumerate(self._actors.doing(max(parts, 1)))
        ]
        self._unread.add(answers if parts <= 1 else [part for answer in answers for part in answer])
        return [[answer] for answer in answers] if parts == 1 else answers

    def get(self, answers: Sequence[Any]) -> list[Any]:
        """Wait for answers; Lost where a shard has gone, with its process, its machine or its state."""
        found = _fetch(answers)
        self._unread.release(answers)
        return found


def spread(size: int, machines: Mapping[str, float]) -> list[str]:
    """A machine for each of so many shards, by their processors; Ray's own way may leave all of them on one."""
    taken = dict.fromkeys(machines, 0)
    for _ in range(size):
        freest = min(machines, key=lambda machine: (taken[machine] + 1) / (machines[machine] or 1e-9))
        taken[freest] += 1
    return [machine for machine, count in taken.items() for _ in range(count)]


def _fetch(answers: Sequence[Any], timeout: float | None = None) -> list[Any]:
    try:
        return ray.get(list(answers), timeout=timeout)
    except ShardLostError:
        raise
    except RayTaskError as error:
        if isinstance(error.cause, RayError):
            raise ShardLostError(f"a shard is lost: {error.cause}") from error
        raise
    except RayError as error:
        raise ShardLostError(f"a shard is lost: {error}") from error


def _processors(node: Mapping[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0)) if node["Alive"] else 0.0


def _close(actors: ShardActors, model: int) -> None:
    if ray.is_initialized():
        for handle in actors.handles:
            handle.close.options(num_returns=0).remote(model)  # without an answer, which nobody would read


MAX_CALLS = 64
"""Calls whose answers are kept at most; earlier ones have come to their end."""

_SECONDS = 10.0  # for the answers to come, and for each of them to be read, where a shard is lost


class UnreadResults:
    """The answers of the last calls, held until a later call succeeds on every shard.

    Each shard does what it is asked in order, and none that has failed does anything more. So the calls before one that
    succeeded on every shard have succeeded too.
    """

    def __init__(self, shards: int) -> None:
        self._shards, self._numbers, self._lock = shards, count(), Lock()
        self._calls: deque[tuple[int, list[Any]]] = deque(maxlen=MAX_CALLS)

    def add(self, answers: Sequence[Any]) -> None:
        """Hold the answers of a call."""
        with self._lock:
            self._calls.append((next(self._numbers), list(answers)))

    def release(self, read: Sequence[Any]) -> None:
        """Let go of a call whose answers were read without an error, one of every shard, and of those before it."""
        if len(read) < self._shards:
            return
        with self._lock:
            last = next((number for number, held in reversed(self._calls) if _holds(held, read)), -1)
            while self._calls and self._calls[0][0] <= last:
                self._calls.popleft()

    def drain(self) -> None:
        """Read everything that is held, so that errors in it are not printed; they are known by now."""
        with self._lock:
            held = [answer for _, answers in self._calls for answer in answers]
            self._calls.clear()
        if held:
            ready, _ = ray.wait(held, num_returns=len(held), timeout=_SECONDS, fetch_local=False)
            for answer in ready:
                with suppress(Exception):
                    ray.get(answer, timeout=_SECONDS)


def _holds(held: Sequence[Any], read: Sequence[Any]) -> bool:
    known = set(held)
    return all(answer in known for answer in read)
