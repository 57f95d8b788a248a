"""Gathering of a model on the driver: for starts and anchors of small graphs, and for analyses of the whole graph.

Rows of the gathered graph are in order of arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.engine.reads import LocalReads
from ripplevec.errors import RipplevecError
from ripplevec.graph.adjacency import Adjacency, RowArray
from ripplevec.graph.graph import Graph
from ripplevec.rules.vector_store import VectorStore

if TYPE_CHECKING:
    from ripplevec.cluster.driver_reads import ShardReads

MAX_GATHERED_EDGES = 10_000_000
"""Largest graph that is gathered together with its vectors, to bound the memory of the driver."""


class GatheredState(LocalReads):
    """Graph, vectors and coordinates of a model on shards, as one machine has them; the rule is not copied."""

    def __init__(self, engine: ShardReads) -> None:
        if engine.edges > MAX_GATHERED_EDGES:
            raise RipplevecError(
                f"Graph too large to gather on the driver: expected at most {MAX_GATHERED_EDGES:,} edges, "
                f"got {engine.edges:,}. Use a model on one machine."
            )
        self.graph, rows = gather_graph(engine)
        self.rule, self.sequence, self.anchors = engine.rule, engine.sequence, engine.anchors
        self.store = VectorStore(self.graph, engine.parameters.dim, engine.rule.precision)
        self.store.vectors[: rows.size] = engine.read_rows(rows, "vectors")
        self.store.placed[: rows.size] = engine.read_rows(rows, "placed")


def gather_graph(engine: ShardReads) -> tuple[Graph, RowArray]:
    """Gather the graph with one row per vertex in order of arrival; return it and the row codes of its rows."""
    rows, directed = engine.rows_by_arrival(), engine.parameters.directed
    packed: dict[str, NDArray[Any]] = {
        "degree": engine.degrees(rows),
        "neighbor": positions_of(engine.read_edges(rows, "neighbor"), rows).astype(np.int32),
    }
    for name in ("weight", "outgoing", "incoming") if directed else ("weight",):
        packed[name] = engine.read_edges(rows, name)
    for name in ("strength", "in_strength") if directed else ("strength",):
        packed[name] = engine.read_rows(rows, name)
    graph = engine.parameters.create_graph()
    ids = engine.id_column_of(rows)
    graph.ids.intern(ids, ids)
    graph.adjacency = Adjacency.from_packed(packed, directed=directed, duplicates=engine.parameters.duplicates)
    graph.adjacency.ensure_rows(rows.size)
    graph.adjacency.weight_scale, graph.adjacency.duplicate_policy = engine.weight_scale, engine.duplicate_policy
    graph.arrival[: rows.size] = engine.arrival_numbers(rows)
    graph.next_arrival = engine.next_arrival
    return graph, rows


def positions_of(codes: RowArray, rows: RowArray) -> RowArray:
    """Return the position of each code in `rows`."""
    order = np.argsort(rows)
    return order[np.searchsorted(rows[order], codes)]
