"""A cluster in one place, brought to the driver: for starts, and for what asks about all of a graph that is not large.

Rows are in order of arrival there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.engine.reads import EngineReads
from ripplevec.errors import RipplevecError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.graph import Graph
from ripplevec.rules.vector_store import VectorStore

if TYPE_CHECKING:
    from ripplevec.cluster.driver_reads import DriverReads

Rows = NDArray[np.int64]
MAX_GATHERED_EDGES = 10_000_000
"""Of a graph that is brought together with all its vectors to be looked at: more does not belong on a driver."""


class GatheredState(EngineReads):
    """Graph, vectors and coordinates of a cluster as one machine would have them; of the coordinates no copy."""

    def __init__(self, engine: DriverReads) -> None:
        if engine.edges > MAX_GATHERED_EDGES:
            raise RipplevecError(
                f"this needs the whole graph in one place, and a cluster brings at most {MAX_GATHERED_EDGES:,} edges together; "
                f"it has {engine.edges:,}: ask a model on one machine"
            )
        self.graph, rows = gather_graph(engine)
        self.rule, self.sequence, self.anchors = engine.rule, engine.sequence, engine.anchors
        self.store = VectorStore(self.graph, engine.parameters.dim, engine.rule.precision)
        self.store.vectors[: rows.size] = engine.read_rows(rows, "vectors")
        self.store.placed[: rows.size] = engine.read_rows(rows, "placed")


def gather_graph(engine: DriverReads) -> tuple[Graph, Rows]:
    """The graph with a row per vertex, in order of arrival; and which rows of the cluster these are."""
    rows, directed = engine.rows_by_arrival(), engine.parameters.directed
    packed: dict[str, NDArray[Any]] = {
        "degree": engine.degrees(rows),
        "neighbor": _places_of(engine.read_edges(rows, "code"), rows).astype(np.int32),
    }
    for name in ("weight", "outgoing", "incoming") if directed else ("weight",):
        packed[name] = engine.read_edges(rows, name)
    for name in ("strength", "in_strength") if directed else ("strength",):
        packed[name] = engine.read_rows(rows, name)
    graph = engine.parameters.create_graph()
    names = engine.id_column_of(rows)
    graph.ids.intern(names, names)
    graph.adjacency = Adjacency.from_packed(packed, directed=directed, duplicates=engine.parameters.duplicates)
    graph.adjacency.ensure_rows(rows.size)
    graph.arrival[: rows.size] = engine.arrival_numbers(rows)
    graph.next_arrival = engine.next_arrival
    return graph, rows


def _places_of(codes: Rows, rows: Rows) -> Rows:
    """Where in `rows` each of the codes stands."""
    order = np.argsort(rows)
    return order[np.searchsorted(rows[order], codes)]
