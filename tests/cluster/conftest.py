"""Models on shards in this process, beside models on one machine, and streams of batches that both can be given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, Op
from ripplevec.changes import Changes
from ripplevec.cluster.distributed_matrix import DistributedGraph, MatrixHandle
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import SelfLoopWarning
from ripplevec.parameters import Parameters


def on_shards(shards: int, **parameters: Any) -> ClusterEngine:
    known = Embedder(**{"dim": 4, "threads": 1, "anchor_growth": 0, **parameters})._parameters()
    return ClusterEngine(LocalTransport(shards, lambda number: Shard(number, shards, known)), known)


class Pair:
    """The same graph on one machine and on shards, with vertices 0 … n−1 in this order."""

    def __init__(self, vertices: int, edges: Any, shards: int, **parameters: Any) -> None:
        known = {"dim": 4, "threads": 1, "anchor_growth": 0, **parameters}
        self.one, self.cluster = Embedder(**known).fit([]), on_shards(shards, **known)
        for batch in (Batch.vertices(np.arange(vertices), Op.VERTEX), Batch.from_any(edges)):
            self.one._engine.apply(batch)
            self.cluster.apply(batch)
        self.vertices = vertices

    @property
    def shards(self) -> list[Shard]:
        return self.cluster.transport.shards

    def workspace(self) -> DistributedGraph:
        return DistributedGraph(self.cluster.transport, self.cluster.parameters.dim, self.cluster.rule.precision)

    def put(self, workspace: DistributedGraph, block: NDArray[Any]) -> MatrixHandle:
        """A matrix on the shards with the rows of this one."""
        sheet = workspace.zeros(block.shape[1], block.dtype)
        for shard in self.shards:
            rows, numbers = shard.list_rows()
            shard.matrices.select(sheet.columns)[rows] = block[numbers]
        return sheet

    def read(self, sheet: MatrixHandle) -> NDArray[Any]:
        """What is in a matrix on the shards."""
        block = np.zeros((self.vertices, sheet.shape[1]), sheet.dtype)
        for shard in self.shards:
            rows, numbers = shard.list_rows()
            block[numbers] = shard.matrices.select(sheet.columns)[rows]
        return block

    def slots(self) -> list[NDArray[np.int32]]:
        """What the slots of every shard hold."""
        return [shard.graph.adjacency.links.neighbor.copy() for shard in self.shards]


def random_pair(seed: int, shards: int, vertices: int = 40, edges: int = 90, **parameters: Any) -> Pair:
    draw = np.random.default_rng(seed)
    ends, weights = draw.integers(0, vertices, (edges, 2)).tolist(), (10 ** draw.uniform(-1, 1, edges)).tolist()
    known = [(u, v, w) for (u, v), w in zip(ends, weights, strict=True) if u != v]
    return Pair(vertices, known, shards, **parameters)


@pytest.fixture(scope="session")
def cluster_of() -> Callable[..., ClusterEngine]:
    return on_shards


@pytest.fixture(scope="session")
def pair_of() -> Callable[..., Pair]:
    return random_pair


DIM = 4


class OnShards(Embedder):
    """An embedder whose engine lies on shards in this process."""

    shards = 3

    def _create_engine(self, parameters: Parameters) -> Engine:
        transport = LocalTransport(self.shards, lambda number: Shard(number, self.shards, parameters))
        engine = ClusterEngine(transport, parameters)
        return cast(Engine, engine)


CLUSTERS: dict[int, type[OnShards]] = {
    shards: type(f"On{shards}Shards", (OnShards,), {"shards": shards}) for shards in range(1, 6)
}
PARAMETERS: dict[str, Any] = {"dim": DIM, "anchor_growth": 0, "threads": 1}


def both(shards: int, **parameters: Any) -> tuple[Embedder, Embedder]:
    """A model on one machine and the same on shards."""
    return Embedder(**PARAMETERS | parameters), CLUSTERS[shards](**PARAMETERS | parameters)


NAMES: dict[str, Callable[[int], Id]] = {
    "int": lambda number: number,
    "text": lambda number: f"v{number}",
    "mixed": lambda number: f"v{number}" if number % 3 else 2**70 + number if number % 2 else number,
}


class Stream:
    """Batches that can be applied, each made of operations that name vertices by number."""

    def __init__(self, kind: str, directed: bool) -> None:
        self.name, self.directed = NAMES[kind], directed
        self.vertices: list[int] = []
        self.edges: list[tuple[int, int]] = []

    def batch(self, operations: list[tuple[Op, int, int, float]]) -> Batch:
        """These operations; removals choose among what is there by then, and are left out where there is nothing."""
        rows = [row for operation in operations if (row := self._played(*operation)) is not None]
        op, src, dst, weight = zip(*rows, strict=True) if rows else ((), (), (), ())
        names = [[self.name(number) for number in column] for column in (src, dst)]
        return Batch.of(*names, weight=np.array(weight, np.float64), op=np.array(op, np.int8))

    def _played(self, op: Op, src: int, dst: int, weight: float) -> tuple[Op, int, int, float] | None:
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
            self._meet(src)
        else:
            self._meet(src)
            self._meet(dst)
            edge = (src, dst) if self.directed else (min(src, dst), max(src, dst))
            if src != dst and edge not in self.edges:
                self.edges.append(edge)
        return op, src, dst, weight

    def _meet(self, vertex: int) -> None:
        if vertex not in self.vertices:
            self.vertices.append(vertex)


def same_changes(one: Changes, other: Changes) -> bool:
    """Whether two models tell those who follow them the same."""
    return (one.ids, one.removed, one.sequence, one.anchored, one.arrived.tolist()) == (
        (other.ids, other.removed, other.sequence, other.anchored, other.arrived.tolist())
    ) and np.array_equal(one.vectors, other.vectors)


@pytest.fixture(scope="session")
def new() -> Any:
    """`both`."""
    return both


@pytest.fixture(scope="session")
def stream_of() -> Any:
    """`Stream`."""
    return Stream


@pytest.fixture(scope="session")
def same() -> Any:
    """`same_changes`."""
    return same_changes


@pytest.fixture(scope="session")
def grown() -> Any:
    """Both models after a few batches, with vertices of all kinds: hubs, leaves, strangers, some that have gone."""

    def grow(shards: int = 3, kind: str = "int", seed: int = 0, **parameters: Any) -> tuple[Embedder, Embedder]:
        rng = np.random.default_rng(seed)
        models = both(shards, **parameters)
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
def loops_are_no_news() -> Iterator[None]:
    """Self-loops are part of every stream here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfLoopWarning)
        yield
