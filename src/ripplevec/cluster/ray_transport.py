"""Shards as Ray actors: Ray places and restarts them and carries the queries of the driver.

Programs, their results, and the data that shards exchange travel over the mesh (`mesh.py`), which the driver joins with
a connection to the first shard.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ripplevec.cluster.mesh import MeshListener, PeerLostError, ShardLostError, SocketMesh, connect_driver
from ripplevec.cluster.shard import Shard
from ripplevec.errors import StateError
from ripplevec.parameters import Parameters

START_TIMEOUT = 120.0
"""Seconds that actors may take to start, or to restart, before an error is raised."""

CONNECT_TIMEOUT = 15.0
"""Seconds that shards may take to connect to each other once they have started; if one is lost, all start again."""

MAX_REUSED_BYTES = 32 << 20
"""Largest allocation whose memory is kept for the next one when it is freed."""

_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1  # of mallopt, in malloc.h
_CAUSE_TIMEOUT = 10.0  # seconds to wait for the error of each shard after one was lost

_model_numbers = count()


class ShardActor:
    """A Ray actor that hosts one shard for each model that uses it."""

    def __init__(self) -> None:
        keep_freed_memory()
        self._hosted: dict[int, HostedShard] = {}

    def create_shard(self, model: int, index: int, shards: int, parameters: Parameters) -> tuple[str, int]:
        """Create an empty shard for a model; return the address at which it accepts the connections of other shards."""
        self.drop_shard(model)
        hosted = self._hosted[model] = HostedShard(Shard(index, shards, parameters))
        return hosted.address

    def connect_shard(self, model: int, addresses: list[tuple[str, int]], token: bytes) -> None:
        """Connect a shard to all other shards of its model."""
        self._find(model).connect(addresses, token)

    def drop_shard(self, model: int) -> None:
        """Drop the shard of a model."""
        hosted = self._hosted.pop(model, None)
        if hosted is not None:
            hosted.close()

    def call(self, model: int, method: str, constants: dict[str, Any], *arguments: Any) -> Any:
        """Call a method of a model's shard.

        A shard whose method raises is lost: its state no longer agrees with that of the other shards.
        """
        hosted = self._find(model)
        try:
            return getattr(hosted.shard, method)(*arguments, **constants)
        except BaseException as error:
            hosted.failure = ShardLostError(f"{method} failed with {error!r}")
            hosted.close()
            raise

    def _find(self, model: int) -> HostedShard:
        hosted = self._hosted.get(model)
        if hosted is None:
            raise ShardLostError("Shard lost: Ray restarted its process")
        if hosted.failure is not None:
            lost = PeerLostError if isinstance(hosted.failure, PeerLostError) else ShardLostError
            raise lost(f"Shard lost: {hosted.failure}")
        return hosted

    def report_failure(self, model: int) -> BaseException | None:
        """Return the error that a shard had in a program that all shards ran together, unless it was a lost shard."""
        hosted = self._hosted.get(model)
        return None if hosted is None or isinstance(hosted.failure, ShardLostError) else hosted.failure


class HostedShard:
    """A shard in its actor, and its place in the tree along which programs start and their results return.

    The first shard receives a program from the driver, and is responsible for all n shards. With m the largest power of
    two below n, it passes the program on to the shard m places after it, which becomes responsible for the shards from
    there on; both continue in the same way with the shards that they are left with. The tree is binomial: the parent of
    a shard has its number without the lowest bit that is set. The driver sends one message, and no shard more than
    log₂ n.
    """

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.failure: BaseException | None = None
        self._listener = MeshListener(ray.util.get_node_ip_address())
        self.address = self._listener.address

    def connect(self, addresses: list[tuple[str, int]], token: bytes) -> None:
        """Connect to all other shards, and the first shard to the driver; wait for programs from now on."""
        index = self.shard.index
        self.shard.mesh = self._listener.connect(index, addresses, token, CONNECT_TIMEOUT, with_driver=index == 0)
        Thread(target=self._serve, name=f"shard-{self.shard.index}", daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        self._listener.close()
        self.shard.mesh.close()

    def run(self, method: str, entries: list[tuple[Any, ...]], constants: dict[str, Any]) -> list[Any]:
        """Run a method on this shard and the following ones, one per entry; return their results."""
        mesh, children, last = self.shard.mesh, list[int](), len(entries)
        while last > 1:
            middle = 1 << (last - 1).bit_length() - 1
            mesh.send_all({mesh.index + middle: (method, entries[middle:last], constants)})
            children.append(mesh.index + middle)
            last = middle
        results = [getattr(self.shard, method)(*entries[0], **constants)]
        for child in reversed(children):
            results += mesh.receive(child)
        return results

    def _serve(self) -> None:
        """Run the programs that the parent sends, until the connections are closed."""
        mesh = self.shard.mesh
        parent = find_parent(mesh.index, mesh.size)
        try:
            while True:
                mesh.send_all({parent: self.run(*mesh.receive(parent))})
                mesh.flush()
        except BaseException as error:
            self.failure = self.failure or error  # the first error is the cause
            mesh.close()  # the driver and the other shards notice it


def find_parent(index: int, size: int) -> int:
    """Return the peer that passes programs on to a shard, the driver to the first one; see `HostedShard`."""
    return index & (index - 1) if index else size


class ShardActors:
    """The actors of a cluster, one per shard, distributed over its machines; several models may share them."""

    def __init__(self, size: int, address: str | None = None, **options: Any) -> None:
        if not ray.is_initialized():
            if not address:  # start a new cluster even if one is already running here
                address, options = "local", {"include_dashboard": False, **options}
            run_in_permanent_thread(partial(ray.init, address, log_to_driver=False, **options))
        # If a shard is lost, calls fail whose results are not read; Ray would print an error for each of them.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        self.size = size
        actor = ray.remote(ShardActor)
        machines = {node["NodeID"]: _count_processors(node) for node in ray.nodes()}
        self.handles = [
            actor.options(
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine, soft=True),  # soft: it may move on restart
            ).remote()
            for machine in distribute_shards(size, machines)
        ]
        self.threads = max(1, int(ray.cluster_resources().get("CPU", 1)) // size)  # per shard

    def close(self) -> None:
        """Terminate the actors."""
        for handle in self.handles:
            ray.kill(handle)


class RayTransport:
    """The shards of one model, each hosted by its actor."""

    def __init__(self, actors: ShardActors, parameters: Parameters) -> None:
        self.size, self._actors, self._model = actors.size, actors, next(_model_numbers)
        self._parameters = replace(parameters, threads=parameters.threads or actors.threads)
        self._failure: BaseException | None = None  # because of which the shards are lost
        self._running = Lock()
        self._mesh = self._create_shards()
        self.drop = weakref.finalize(self, _drop_shards, actors, self._model, self._mesh)

    def _create_shards(self) -> SocketMesh:
        """Create an empty shard in every actor, and connect to the first; wait for actors that Ray is restarting."""
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            mesh: SocketMesh | None = None
            try:
                handles, token = self._actors.handles, secrets.token_bytes(32)
                created = [
                    actor.create_shard.remote(self._model, index, self.size, self._parameters)
                    for index, actor in enumerate(handles)
                ]
                addresses = _fetch(created, START_TIMEOUT)
                connected = [actor.connect_shard.remote(self._model, addresses, token) for actor in handles]
                mesh = connect_driver(addresses, token, CONNECT_TIMEOUT)
                _fetch(connected, START_TIMEOUT)
                return mesh
            except ShardLostError as error:
                if mesh is not None:
                    mesh.close()
                if time.monotonic() > deadline:
                    raise StateError(
                        f"Shards did not start: expected {self.size:,} actors within {START_TIMEOUT:g} s, "
                        f"got: {error}. Check the state of the Ray cluster."
                    ) from error
                time.sleep(0.1)

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Run a method on all shards at the same time: one message for any number of shards."""
        entries = list(zip(*columns, strict=True)) if columns else [()] * self.size
        with self._running:
            if self._failure is not None:  # shards may report it later than the first one
                raise ShardLostError(f"Shard lost: {self._failure!r}")
            try:
                self._mesh.send_all({0: (method, entries, constants)})
                results: list[Any] = self._mesh.receive(0)
                self._mesh.flush()
            except BaseException as error:  # also an interrupt, because the answer would be taken for the next one
                self._failure = error
                self._mesh.close()
                if isinstance(error, ShardLostError) and (failures := self._collect_failures()):
                    self._failure = failures[0]
                    raise failures[0] from error  # because of which the shards stopped
                raise
        return results

    def _collect_failures(self) -> list[BaseException]:
        """Return the errors of shards whose program failed, other than the loss of another shard."""
        failures: list[BaseException | None] = []
        for actor in self._actors.handles:
            with suppress(RayError):  # this actor is gone
                failures.append(ray.get(actor.report_failure.remote(self._model), timeout=_CAUSE_TIMEOUT))
        return [failure for failure in failures if failure is not None]

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """Call a method on all shards concurrently; results stay in Ray's object store."""
        return [
            actor.call.remote(self._model, method, constants, *(column[index] for column in columns))
            for index, actor in enumerate(self._actors.handles)
        ]

    def get(self, results: Sequence[Any]) -> list[Any]:
        """Wait for results; raise `ShardLostError` if a shard lost its process, its machine or its state."""
        try:
            return _fetch(results)
        except ShardLostError as lost:
            raise _find_cause(results, lost) from lost

    def wait(self, results: Sequence[Any]) -> None:
        """Wait until results are computed; errors are raised when they are resolved."""
        ray.wait(list(results), num_returns=len(results), fetch_local=False)


def keep_freed_memory() -> None:
    """Let this process reuse freed memory of up to 32 MB per array, instead of returning it to the system.

    Every batch allocates arrays for the messages of other shards. The system would have to clear new memory for them
    each time, which takes longer than to copy the messages. Only the GNU C library has this setting.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, MAX_REUSED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def run_in_permanent_thread(work: Callable[[], object]) -> None:
    """Run work in a thread that never ends, and wait for the work.

    Linux terminates the processes of a local Ray cluster as soon as the thread that started them ends
    (PR_SET_PDEATHSIG), and a service opens its session in a thread that ends once the service is ready.
    """
    if current_thread() is main_thread():
        work()
        return
    result: Future[None] = Future()

    def work_and_stay() -> None:
        try:
            work()
        except BaseException as error:
            result.set_exception(error)
            return
        result.set_result(None)
        Event().wait()

    Thread(target=work_and_stay, name="ray-cluster", daemon=True).start()
    result.result()


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


def _find_cause(results: Sequence[Any], lost: ShardLostError) -> Exception:
    """Return the error because of which other shards are lost, if it is among the results; else the loss itself."""
    for result in results:
        try:
            ray.get(result, timeout=_CAUSE_TIMEOUT)
        except RayTaskError as error:
            if not isinstance(error, PeerLostError) and not isinstance(error.cause, RayError):
                return error
        except RayError:
            continue  # this shard is gone
    return lost


def _count_processors(node: Mapping[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0)) if node["Alive"] else 0.0


def _drop_shards(actors: ShardActors, model: int, mesh: SocketMesh) -> None:
    mesh.close()
    if ray.is_initialized():
        for handle in actors.handles:
            handle.drop_shard.options(num_returns=0).remote(model)  # no result, as it would never be read
