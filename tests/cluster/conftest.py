"""Fixtures: models on shards in this process, the same models on one machine, and streams of batches for both."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from connected_meshes import connect_sockets
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, Op
from ripplevec.changes import Changes
from ripplevec.cluster.attributed_engine import create_cluster_engine
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.mesh import Mesh, connect_locally
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import LostStateError, SelfLoopWarning
from ripplevec.parameters import Parameters

RECOVERY_SECONDS = 120.0
DEFAULTS: dict[str, Any] = {"dim": 4, "anchor_growth": 0, "anchor_pace": "immediate", "threads": 1}


def local_transport(shards: int, parameters: Parameters) -> LocalTransport:
    return LocalTransport(shards, lambda index: Shard(index, shards, parameters))


def make_cluster(shards: int, **parameters: Any) -> ClusterEngine:
    validated = Embedder(**DEFAULTS | parameters)._validated_parameters()
    return ClusterEngine(local_transport(shards, validated), validated)


class GraphPair:
    """The same graph on one machine and on shards, with vertices 0 … n−1 in this order of arrival."""

    def __init__(self, vertices: int, edges: Any, shards: int, **parameters: Any) -> None:
        self.one, self.cluster = Embedder(**DEFAULTS | parameters).fit([]), make_cluster(shards, **parameters)
        for batch in (Batch.vertices(np.arange(vertices), Op.VERTEX), Batch.from_any(edges)):
            self.one._engine.apply(batch)
            self.cluster.apply(batch)
        self.vertices = vertices

    @property
    def shards(self) -> list[Shard]:
        return cast(LocalTransport, self.cluster.transport).shards

    def run(self, program: Callable[[Shard], Any]) -> list[Any]:
        """Run a function on all shards at the same time."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Shard, "test_program", program, raising=False)
            return self.cluster.transport.run("test_program")

    def slots(self) -> list[NDArray[np.int32]]:
        """Return a copy of the adjacency slots of every shard."""
        return [shard.graph.adjacency.links.neighbor.copy() for shard in self.shards]


def random_pair(seed: int, shards: int, vertices: int = 40, edges: int = 90, **parameters: Any) -> GraphPair:
    rng = np.random.default_rng(seed)
    ends, weights = rng.integers(0, vertices, (edges, 2)).tolist(), (10 ** rng.uniform(-1, 1, edges)).tolist()
    weighted = [(u, v, w) for (u, v), w in zip(ends, weights, strict=True) if u != v]
    return GraphPair(vertices, weighted, shards, **parameters)


@pytest.fixture(params=["threads", "sockets"])
def connect(request: pytest.FixtureRequest) -> Any:
    """Return a function that connects some shards."""
    opened: list[Mesh] = []

    def connect(size: int) -> list[Mesh]:
        opened[:] = connect_locally(size) if request.param == "threads" else connect_sockets(size)
        return list(opened)

    yield connect
    for mesh in opened:
        mesh.close()


@pytest.fixture(scope="session")
def new_cluster() -> Callable[..., ClusterEngine]:
    """Return `make_cluster`."""
    return make_cluster


@pytest.fixture(scope="session")
def new_pair() -> type[GraphPair]:
    """Return the class `GraphPair`."""
    return GraphPair


@pytest.fixture(scope="session")
def graph_pair() -> Callable[..., GraphPair]:
    """Return `random_pair`."""
    return random_pair


class LocalShardsEmbedder(Embedder):
    """An embedder whose engine has its shards in this process."""

    shards = 3

    def _create_engine(self, parameters: Parameters) -> Engine:
        return cast(Engine, create_cluster_engine(local_transport(self.shards, parameters), parameters))


EMBEDDERS: dict[int, type[LocalShardsEmbedder]] = {
    shards: type(f"On{shards}Shards", (LocalShardsEmbedder,), {"shards": shards}) for shards in range(1, 6)
}


def make_models(shards: int, **parameters: Any) -> tuple[Embedder, Embedder]:
    """Return an empty model on one machine and an empty model on shards."""
    return Embedder(**DEFAULTS | parameters), EMBEDDERS[shards](**DEFAULTS | parameters)


ID_KINDS: dict[str, Callable[[int], Id]] = {
    "int": lambda number: number,
    "text": lambda number: f"v{number}",
    "mixed": lambda number: f"v{number}" if number % 3 else 2**70 + number if number % 2 else number,
}


class Stream:
    """Generates applicable batches from operations that refer to vertices by number."""

    def __init__(self, kind: str, directed: bool) -> None:
        self.to_id, self.directed = ID_KINDS[kind], directed
        self.vertices: list[int] = []
        self.edges: list[tuple[int, int]] = []

    def batch(self, operations: list[tuple[Op, int, int, float]], times: list[float] | None = None) -> Batch:
        """Return these operations as a batch, at these times in turn.

        Removals select among the vertices or edges that exist by then; without any, they are left out.
        """
        rows = [row for operation in operations if (row := self._resolve(*operation)) is not None]
        op, src, dst, weight = zip(*rows, strict=True) if rows else ((), (), (), ())
        ids = [[self.to_id(number) for number in column] for column in (src, dst)]
        time = None if times is None else np.resize(np.array(times, np.float64), len(rows))
        return Batch.of(*ids, weight=np.array(weight, np.float64), op=np.array(op, np.int8), time=time)

    def _resolve(self, op: Op, src: int, dst: int, weight: float) -> tuple[Op, int, int, float] | None:
        if op == Op.REMOVE:
            if not self.edges:
                return None
            src, dst = self.edges.pop(src % len(self.edges))
        elif op == Op.REMOVE_VERTEX:
            if not self.vertices:
                return None
            src = dst = self.vertices.pop(src % len(self.vertices))
            self.edges = [edge for edge in self.edges if src not in edge]
        elif op == Op.VERTEX:
            dst = src
            self._add_vertex(src)
        else:
            self._add_vertex(src)
            self._add_vertex(dst)
            edge = (src, dst) if self.directed else (min(src, dst), max(src, dst))
            if src != dst and edge not in self.edges:
                self.edges.append(edge)
        return op, src, dst, weight

    def _add_vertex(self, vertex: int) -> None:
        if vertex not in self.vertices:
            self.vertices.append(vertex)


def equal_changes(first: Changes, second: Changes) -> bool:
    """Test whether two models reported the same changes."""
    return (first.ids, first.removed, first.sequence, first.anchored, first.arrived.tolist()) == (
        (second.ids, second.removed, second.sequence, second.anchored, second.arrived.tolist())
    ) and np.array_equal(first.vectors, second.vectors)


@pytest.fixture(scope="session")
def new_models() -> Any:
    """Return `make_models`."""
    return make_models


@pytest.fixture(scope="session")
def stream_of() -> Any:
    """Return the class `Stream`."""
    return Stream


@pytest.fixture(scope="session")
def changes_equal() -> Any:
    """Return `equal_changes`."""
    return equal_changes


@pytest.fixture(scope="session")
def grown_models() -> Any:
    """Return a function that builds both models with a few batches: hubs, leaves, isolated and removed vertices."""

    def grow(shards: int = 3, kind: str = "int", seed: int = 0, **parameters: Any) -> tuple[Embedder, Embedder]:
        rng = np.random.default_rng(seed)
        models = make_models(shards, **parameters)
        stream = Stream(kind, bool(parameters.get("directed")))
        ops = rng.choice([Op.ADD] * 12 + [Op.VERTEX, Op.REMOVE, Op.REMOVE_VERTEX], (4, 60))
        ops[0] = Op.ADD
        for row in ops:
            ends, weight = np.minimum(*rng.integers(0, 60, (2, 60, 2))), 2.0 ** rng.integers(-2, 3, 60)
            batch = stream.batch([*zip(map(Op, row.tolist()), *ends.T.tolist(), weight.tolist(), strict=True)])
            for model in models:
                model.partial_fit(batch)
        return models

    return grow


@pytest.fixture(autouse=True)
def ignore_self_loop_warnings() -> Iterator[None]:
    """Ignore warnings about self-loops, which every stream here has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        yield


@pytest.fixture
def read_until_recovered() -> Callable[[Callable[[], Any]], Any]:
    """Return a function that repeats a read while shards are lost; the session recovers them in the background."""

    def read_with_retries(read: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + RECOVERY_SECONDS
        while True:
            try:
                return read()
            except LostStateError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    return read_with_retries
