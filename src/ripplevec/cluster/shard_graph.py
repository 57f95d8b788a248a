"""The part of a model that one shard stores: its vertices with their edges and vectors, graph changes, and reads.

A shard addresses its own vertices by row. A slot whose neighbor is on another shard holds −1 − the row code of that
neighbor (see `routing.py`). Public methods are called by name through a `Transport`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes._kernels import OWN
from ripplevec.attributes.table import AttributeTable
from ripplevec.batch import IdColumn, take_ids
from ripplevec.cluster import _kernels as shard_kernels
from ripplevec.cluster.ingestion import NO_PAIRS, AgingStep, EndpointBlock, record_endpoints
from ripplevec.cluster.mesh import Mesh, connect_locally
from ripplevec.cluster.routing import split_rows
from ripplevec.engine.attributed_reads import PREFIX, search_joined, search_own_parts
from ripplevec.engine.local_rows import LocalRows
from ripplevec.errors import RipplevecError
from ripplevec.graph import _edge_kernels as edge_kernels
from ripplevec.graph.adjacency import MAX_ROWS, RowArray, WeightScale
from ripplevec.graph.graph import Graph, strip_prefix
from ripplevec.parameters import Parameters
from ripplevec.rules.anchor import view_grams
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search.searcher import Query, Searcher, SearchTarget
from ripplevec.temporal.window import Window
from ripplevec.util.parallel import limit_blas_to_one_thread

ENDPOINT = np.dtype([("row", np.int64), ("remote_row", np.int64), ("outgoing", np.float32), ("incoming", np.float32)])
"""One endpoint of an edge, as two shards compare it: its row, the row of the other endpoint, and both weights."""


Found = tuple[RowArray, NDArray[np.float32], RowArray]
"""Rows, their cosines, and their arrival numbers."""


class GraphChanges(NamedTuple):
    """Changed endpoints on one shard."""

    endpoints: RowArray  # (m, 2): local row and its neighbor, as stored in the slot
    numbers: RowArray  # (m, 2): arrival numbers of both
    shares: NDArray[np.float64]  # (m,): share of the local row's strength that changed
    counted: NDArray[np.bool_]  # (m,): whether the edge is counted at this endpoint; each is at one only
    edges: int  # edges counted here that have changed


NO_CHANGES = GraphChanges(NO_PAIRS, NO_PAIRS, np.empty(0), np.empty(0, np.bool_), 0)


class ShardGraph(LocalRows):
    """The graph, the vectors and, in a model with attributes, the attribute parts of one shard.

    The driver computes all attribute parts (`remote_attributes.py`); a shard stores them with its rows.

    Parameters
    ----------
    index
        Position of this shard among all shards.
    shards
        Number of shards.
    parameters
        Parameters of the model.
    """

    def __init__(self, index: int, shards: int, parameters: Parameters) -> None:
        self.index, self.shards = index, shards
        columns, parameters = parameters.resolved_attribute_dim, parameters.edge_parameters
        self.graph, self.aging = parameters.create_graph(), parameters.create_edge_aging()
        self.attributes = AttributeTable(self.graph, columns) if columns else None
        rule = parameters.create_rule()
        self.rule = cast(RippleRule, rule)  # rule `paper` runs on the driver, and is used only for searches here
        self.store = VectorStore(self.graph, parameters.dim, rule.precision, parameters.storage_dir)
        self.mesh: Mesh = connect_locally(1)[0]  # replaced before the first update if there are more shards
        self.search = Searcher(parameters.search, parameters.threads)
        if self.aging is not None:
            self.aging.attach(self.graph)
        self._changes: list[GraphChanges] = []

    @property
    def window(self) -> Window | None:
        """The times of the edges whose first endpoint is on this shard; None if edges do not expire."""
        return None if self.aging is None else self.aging.window

    @property
    def _table(self) -> AttributeTable:
        assert self.attributes is not None
        return self.attributes

    # ------------------------------------------------------------------ graph changes

    def take_changes(self) -> GraphChanges:
        """Return and clear the recorded changes."""
        recorded, self._changes = self._changes, []
        if len(recorded) == 1:  # nothing has to be copied
            return recorded[0]
        *columns, edges = zip(*[NO_CHANGES, *recorded], strict=True)
        return GraphChanges._make([*map(np.concatenate, columns), sum(edges)])

    def intern(self, ids: IdColumn) -> RowArray:
        """Return the rows of ids that belong to this shard; unknown ids get a new row, with arrival number −1."""
        # Ids are interned as pairs; if their number is odd, the middle one is in both halves.
        half = (len(ids) + 1) // 2
        first, second, _ = self.graph.ids.intern(
            take_ids(ids, slice(half)), take_ids(ids, slice(len(ids) - half, None))
        )
        if self.graph.row_count > MAX_ROWS // self.shards:  # a row code has to fit into a slot
            raise RipplevecError(
                f"Shard full: expected at most {MAX_ROWS // self.shards:,} vertices on one of {self.shards:,} shards, "
                f"got {self.graph.row_count:,}. Use fewer shards or a smaller graph."
            )
        self.graph.adjacency.ensure_rows(self.graph.row_count)
        self.store.grow()
        if self.attributes is not None:
            self.attributes.grow()
        return np.concatenate([first, second[2 * half - len(ids) :]])

    def apply_slice(self, block: EndpointBlock) -> None:
        """Apply the operations of a batch, in order, to endpoints on this shard."""
        self.apply_endpoints(block)
        if self.window is not None:
            record_endpoints(self, self.window, block)

    def apply_endpoints(self, block: EndpointBlock) -> None:
        """Add and remove edges, in order, at their endpoints on this shard."""
        shares = self.graph.adjacency.apply_endpoints(block.op, block.endpoints, block.weight, block.side)
        self._record_changes(block.endpoints, block.numbers, shares, block.side == edge_kernels.OUT)

    def age_edges(self, step: AgingStep) -> None:
        """Rescale the stored weights before a batch, if necessary, and set their unit."""
        if step.rescaling != 1.0:
            self.graph.adjacency.scale_weights(step.rescaling)
        self.set_weight_unit(step.unit)

    def set_weight_unit(self, unit: float) -> None:
        """Set the stored value of a weight of one that arrives now."""
        self.graph.adjacency.weight_scale = WeightScale(unit)  # only the driver knows the effective number of edges

    def remove_vertex(self, row: int) -> list[RowArray]:
        """Remove a vertex of this shard with its edges; return its neighbors as rows on each shard."""
        adjacency, removed = self.graph.adjacency, np.array([row])
        codes = self.slot_codes(adjacency.slots(removed))
        edge_kernels.clear_row(adjacency.links, row, adjacency.directed)
        self.graph.arrival[removed] = -1
        self.graph.ids.remove(removed)
        self.store.vectors[removed] = 0
        self.store.placed[removed] = 0
        return split_rows(codes, self.shards)

    def remove_neighbor(self, neighbors: RowArray, code: int, number: int) -> None:
        """Remove a vertex, given by row code and arrival number, from the adjacency of its neighbors on this shard."""
        row, shard = divmod(code, self.shards)
        shares, adjacency = np.empty(neighbors.size), self.graph.adjacency
        stored = row if shard == self.index else -1 - code
        shard_kernels.drop_neighbor_from(adjacency.links, neighbors, stored, shares, adjacency.directed)
        numbers = np.stack([self.graph.arrival[neighbors], np.full(neighbors.size, number)], axis=1)
        endpoints = np.stack([neighbors, neighbors], axis=1)  # the removed vertex has no row any more
        self._record_changes(endpoints, numbers, shares, np.ones(neighbors.size, bool))

    def _record_changes(
        self, endpoints: RowArray, numbers: RowArray, shares: NDArray[np.float64], counted: NDArray[np.bool_]
    ) -> None:
        """Record changed endpoints for the vector update; `counted` selects those at which the edge is counted."""
        changed = int(np.count_nonzero(counted & (shares != 0)))
        self._changes.append(GraphChanges(endpoints, numbers, shares, counted, changed))

    # ------------------------------------------------------------------ reads of some rows

    @property
    def vectors(self) -> NDArray[Any]:
        """The stored vectors of all rows."""
        return self.store.vectors

    def read_row(self, row: int, attributes: Sequence[str]) -> list[Any]:
        """Return some attributes of one row, as numbers; none of row −1."""
        return super().read_row(row, attributes if row >= 0 else ())

    def _column(self, attribute: str) -> NDArray[Any]:
        return self._table.column(attribute) if attribute.startswith("attribute_") else super()._column(attribute)

    def list_edges(self, rows: RowArray, attributes: Sequence[str], limit: int) -> tuple[NDArray[Any], ...]:
        """Return the number of edges of rows, at most `limit` of each, and some attributes of the latest ones."""
        adjacency = self.graph.adjacency
        slots, degree = adjacency.slots(rows), adjacency.links.degree[rows].astype(np.int64)
        remaining = np.repeat(np.cumsum(degree), degree) - np.arange(slots.size)  # edges of the row from this one on
        slots = slots[remaining <= limit]
        return np.minimum(degree, limit), *(self._read_slots(slots, attribute) for attribute in attributes)

    def _read_slots(self, slots: RowArray, attribute: str) -> NDArray[Any]:
        """Read slots; neighbors are row codes."""
        values = super()._read_slots(slots, attribute)
        return self.encode(values) if attribute == "neighbor" else values

    def edges_exist(self, rows: RowArray, codes: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether a row has an edge (outgoing, if directed) to the vertex with a row code."""
        found, directed = np.empty(rows.size, np.bool_), self.graph.adjacency.directed
        stored = np.where(codes % self.shards == self.index, codes // self.shards, -1 - codes)
        shard_kernels.has_neighbors(self._links, rows, stored, found, directed)
        return found

    def search_nearest(self, excluded: int, query: Query, count: int, sequence: int, anchors: int) -> Found:
        """Return the rows of highest cosine without `excluded` (−1: none), the cosines, and the arrival numbers.

        Among equal cosines the earlier arrival ranks first, but the search orders by row. Therefore one more row than
        requested is searched for, and twice as many while the last one equals the last requested one. With an
        approximate index this is skipped, because the index may miss rows anyway.
        """
        target, max_width = SearchTarget(self.store, self.rule, sequence, anchors), max(len(self.graph), 1)
        query, width = query._replace(exclude=excluded), min(count + 1, max_width)
        while True:
            with self.search.open_search() as search:
                (rows,), (cosines,) = search(target, query, width)
            if width == max_width or rows[-1] < 0 or cosines[-1] < cosines[count - 1] or self.search.index is not None:
                break
            width = min(2 * width, max_width)
        rows, cosines = rows[rows >= 0], cosines[rows >= 0]
        return rows, cosines, self.graph.arrival[rows]

    # ------------------------------------------------------------------ attributes

    def list_attributed_rows(self) -> RowArray:
        """Return the rows with attributes."""
        return np.flatnonzero(self._table.status[: self.graph.row_count] == OWN)

    def list_arrivals(self, first: int, last: int) -> RowArray:
        """Return the rows with arrival numbers from `first` to `last` − 1, in this order."""
        return self.graph.rows_by_arrival(lambda numbers: (numbers >= first) & (numbers < last))

    def read_kept(self, rows: RowArray) -> dict[str, NDArray[Any]]:
        """Return the attributes that are kept for rows; see `KeptAttributes.gather`."""
        return self._table.kept.gather(rows)

    def write_attributes(
        self, rows: RowArray, parts: NDArray[np.float32], status: NDArray[np.uint8], kept: dict[str, NDArray[Any]]
    ) -> None:
        """Replace the attribute parts of rows, their status, and the attributes that are kept."""
        table = self._table
        table.parts[rows], table.status[rows] = parts, status
        begin = kept["begin"].tolist()
        for position, row in enumerate(rows.tolist()):
            entries = slice(begin[position], begin[position + 1])
            table.kept.set(row, kept["columns"][entries], kept["values"][entries])

    def search_joined(self, excluded: int, query: NDArray[np.float64], count: int, weight: float) -> Found:
        """Return the rows of highest cosine with a whole vector, without `excluded` (−1: none)."""
        found = search_joined(self.store, self.rule.scaling, self._table, weight, query, count, excluded)
        return *found, self.graph.arrival[found[0]]

    def search_parts(self, excluded: int, part: NDArray[np.float32], count: int) -> Found:
        """Return the rows of highest cosine with an attribute part, without `excluded` (−1: none)."""
        found = search_own_parts(self._table, part, count, excluded)
        return *found, self.graph.arrival[found[0]]

    # ------------------------------------------------------------------ reads of the whole shard

    def list_rows(self) -> tuple[RowArray, RowArray]:
        """Return all rows in order of arrival, and their arrival numbers."""
        rows = self.graph.rows_by_arrival()
        return rows, self.graph.arrival[rows]

    def sizes(self) -> dict[str, int]:
        """Return counts whose sums over all shards describe the model."""
        edges, endpoints = self.graph.adjacency.edge_count, self.graph.adjacency.endpoint_count
        sizes, table = super().sizes(), self.attributes
        sizes["bytes"] += 0 if self.aging is None else self.aging.nbytes
        if table is not None:
            sizes["unplaced"] = table.count_unplaced(self.store.placed)
            sizes["bytes"] += table.nbytes
        return {"vertices": len(self.graph), "edges": edges, "endpoints": endpoints, **sizes}

    def grams(self) -> list[NDArray[np.float64]]:
        """Return, for each view, the inner products of its columns over the rows of this shard."""
        if self.rule.one_by_one:
            rows = self.vectors[: self.graph.row_count]
            with limit_blas_to_one_thread():
                return [rows.T @ rows]
        return view_grams(self.rule.coordinates, self.store, self.rule.threads)

    # ------------------------------------------------------------------ consistency checks

    def find_fault(self) -> str:
        """Check internal invariants; return a description of the first violation, or an empty string.

        The description is returned and not raised, because a shard whose method raises is dropped.
        """
        try:
            self.graph.check(whole=False)
        except RipplevecError as error:
            return str(error)
        return ""

    def list_endpoints(self) -> list[NDArray[Any]]:
        """Return the edge endpoints on this shard, grouped by the shard of the other endpoint and sorted by rows."""
        rows = np.arange(self.graph.row_count)
        slots, links = self.graph.adjacency.slots(rows), self._links
        codes, endpoints = self.slot_codes(slots), np.empty(slots.size, ENDPOINT)
        endpoints["row"], endpoints["remote_row"] = np.repeat(rows, links.degree[rows]), codes // self.shards
        endpoints["outgoing"], endpoints["incoming"] = links.outgoing[slots], links.incoming[slots]
        parts = [endpoints[codes % self.shards == shard] for shard in range(self.shards)]
        return [part[np.lexsort((part["remote_row"], part["row"]))] for part in parts]

    def find_mismatched_shards(self) -> list[int]:
        """Return the shards whose records of the edges shared with this shard differ from its own."""
        endpoints = self.list_endpoints()
        pairs = enumerate(zip(endpoints, self.mesh.exchange(endpoints), strict=True))
        return [shard for shard, (local, remote) in pairs if not _endpoints_agree(local, remote)]

    # ------------------------------------------------------------------ saved state

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state of this shard as plain arrays."""
        rows, table = self.graph.row_count, self.attributes
        return {
            **{f"graph_{name}": array for name, array in self.graph.state().items()},
            "edges": np.array(self.graph.adjacency.edge_count),
            "vectors": self.store.vectors[:rows].copy(),
            "placed": self.store.placed[:rows].copy(),
            **({} if self.window is None else {f"window_{name}": array for name, array in self.window.state().items()}),
            **({} if table is None else {f"{PREFIX}{name}": array for name, array in table.state().items()}),
        }

    def count_due(self, now: float) -> int:
        """Return an upper bound of the number of edges in the window that have expired by `now`."""
        return 0 if self.window is None else self.window.count_due(now)

    def count_timed(self) -> int:
        """Return the number of edges in the window."""
        return 0 if self.window is None else len(self.window)

    def read_window(self, first: int, last: int) -> dict[str, NDArray[Any]]:
        """Return the edges in the window with a first arrival number from `first` to `last` − 1; see `Window.state`."""
        assert self.window is not None
        return self.window.state(first, last)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state of this shard by one that `state` returned."""
        adjacency = self.graph.adjacency
        self.graph = Graph.from_state(
            strip_prefix("graph_", state), directed=adjacency.directed, duplicates=adjacency.duplicates
        )
        self.graph.adjacency.set_edge_count(int(state["edges"]))
        if self.aging is not None:
            self.aging.attach(self.graph)
        if self.window is not None:
            self.window.restore(strip_prefix("window_", state))
        self.store = self.store.empty_for(self.graph)
        rows = self.graph.row_count
        self.store.vectors[:rows], self.store.placed[:rows] = state["vectors"], state["placed"]
        if self.attributes is not None:
            self.attributes = AttributeTable(self.graph, self.attributes.columns)
            self.attributes.restore(strip_prefix(PREFIX, state))

    # ------------------------------------------------------------------ row codes

    @property
    def _links(self) -> Any:
        return self.graph.adjacency.links

    def slot_codes(self, slots: RowArray) -> RowArray:
        """Return the row codes of the neighbors in slots."""
        return self._read_slots(slots, "neighbor")

    def encode(self, neighbors: RowArray) -> RowArray:
        """Return the row codes of neighbors as they are stored in slots."""
        return np.where(neighbors < 0, -1 - neighbors, neighbors * self.shards + self.index)


def _endpoints_agree(local: NDArray[Any], remote: NDArray[Any]) -> bool:
    """Return whether two shards have the same records of the edges between them."""
    if local.size != remote.size:
        return False
    remote = remote[np.lexsort((remote["row"], remote["remote_row"]))]
    mirrored = (("row", "remote_row"), ("remote_row", "row"), ("outgoing", "incoming"), ("incoming", "outgoing"))
    return all(np.array_equal(local[name], remote[other]) for name, other in mirrored)
