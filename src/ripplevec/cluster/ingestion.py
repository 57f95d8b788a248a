"""The graph update of a batch on shards: all shards run it together, and none of them sees the whole batch.

Each shard receives a slice of the batch and finds out which shard owns each endpoint. The owners give rows to new ids,
and all shards together number the new vertices in order of arrival. Then each endpoint is sent to its owner.

If edges expire, each shard has a time window with the edges whose first endpoint it stores: the source, or, in an
undirected graph, the endpoint with the lower arrival number. The window stores the row codes of both endpoints. The
clock and the decay of weights are on the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, IdColumn, Op, select_rows, take_ids
from ripplevec.cluster import _kernels as kernels
from ripplevec.cluster.routing import assign_shards, find_runs, join_id_columns, split_at, split_positions
from ripplevec.cluster.row_exchange import RowGroup, broadcast_rows, group_rows
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import unit_weights
from ripplevec.temporal.window import Window

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard
    from ripplevec.cluster.shard_graph import ShardGraph

NO_ROWS: RowArray = np.empty(0, np.int64)
NO_PAIRS: RowArray = np.empty((0, 2), np.int64)
NO_TIMES: NDArray[np.float64] = np.empty(0)


class BatchSlice(NamedTuple):
    """Consecutive operations of a batch, without vertex removals, that one shard sends to the endpoint owners."""

    batch: Batch
    first: int  # position of the slice in the batch


class VertexRemoval(NamedTuple):
    """The removal of one vertex, which every shard receives."""

    id: IdColumn  # of length one


class EndpointBlock(NamedTuple):
    """Endpoints that one shard sends to their owner, in the order of the batch."""

    endpoints: RowArray  # (m, 2): row, and its neighbor as stored in the slot
    numbers: RowArray  # (m, 2): arrival numbers of both
    op: NDArray[np.int8]
    weight: NDArray[np.float32]
    side: NDArray[np.int8]  # which endpoint of the operation it is: 0 source, 1 target
    time: NDArray[np.float64]  # since the first timestamp; empty unless edges expire


class AgingStep(NamedTuple):
    """What a batch changes in the aging of edges; see `EdgeAging.advance`."""

    rescaling: float  # factor by which all stored weights are multiplied before the batch
    unit: float  # stored value of a weight of one that arrives now
    now: float  # time of the latest event


class GraphUpdate:
    """The graph update of one batch, on one shard.

    Attributes
    ----------
    first_new
        Arrival number of the first vertex that is new in this batch.
    next_arrival
        Arrival number of the next new vertex.
    loops
        Number of self-loops in the slices of this shard.
    removed
        Arrival numbers of the vertices that the batch removes.
    only_arrivals
        Whether every operation, on all shards, adds an edge of a new vertex.
    """

    def __init__(self, shard: Shard, next_arrival: int) -> None:
        self.shard, self.mesh = shard, shard.mesh
        self.first_new = self.next_arrival = next_arrival
        self.loops = 0
        self.only_arrivals = True
        self.removed: list[int] = []
        self._new_rows: list[RowArray] = [NO_ROWS]
        self._edges_of_new: list[tuple[RowArray, RowArray]] = [(NO_PAIRS, NO_PAIRS)]

    def run(self, parts: list[BatchSlice | VertexRemoval]) -> None:
        """Apply the operations of the batch; it is split at vertex removals, which change the meaning of ids."""
        for part in parts:
            if isinstance(part, VertexRemoval):
                self._remove_vertex(part.id)
            else:
                self._apply_slice(part)

    # ------------------------------------------------------------------ operations

    def _apply_slice(self, batch_slice: BatchSlice) -> None:
        batch, size = batch_slice.batch, self.mesh.size
        codes, numbers = self.intern(batch, batch_slice.first)
        op = np.zeros(len(batch), np.int8) if batch.op is None else batch.op
        weight = unit_weights(len(batch)) if batch.weight is None else batch.weight.astype(np.float32)
        adds = op == Op.ADD
        self.loops += int(np.count_nonzero((codes[:, 0] == codes[:, 1]) & adds))
        begin, columns = kernels.route_endpoints(codes, numbers, op, weight, size)
        of_new = np.flatnonzero(adds & (np.minimum(numbers[:, 0], numbers[:, 1]) >= self.first_new))
        edges_of_new = codes[of_new], numbers[of_new]
        only_arrivals = bool(np.all(adds & (np.maximum(numbers[:, 0], numbers[:, 1]) >= self.first_new)))
        times, time_bounds = self._group_times(batch, codes)
        received, flags = self.mesh.exchange_rows(
            group_rows(columns, begin),
            group_rows([times], time_bounds),
            broadcast_rows(edges_of_new, size),
            numbers=[only_arrivals],
        )
        own, own_times, edges = (rows.columns for rows in received)
        self._edges_of_new.append((edges[0], edges[1]))
        self.only_arrivals &= bool(flags.all())
        self.shard.apply_slice(EndpointBlock(*own, *own_times))

    def _group_times(self, batch: Batch, codes: RowArray) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the times of the endpoints, grouped by shard, and the bounds; no times unless edges expire."""
        if self.shard.window is None or batch.time is None:
            return NO_TIMES, np.zeros(self.mesh.size + 1, np.int64)
        order, bounds = kernels.group_by_shard(codes.reshape(-1), self.mesh.size)
        return batch.time[order // 2], bounds

    def intern(self, batch: Batch, first: int) -> tuple[RowArray, RowArray]:
        """Return row codes and arrival numbers of both endpoints; new vertices get a row and a number.

        New vertices are numbered in the order in which they first occur in the batch, across all shards. Until all
        shards know all of these positions, −2 − position stands for the number of a new vertex.
        """
        size, columns, graph = self.mesh.size, (batch.src, batch.dst), self.shard.graph
        runs = [find_runs(column) for column in columns]  # of consecutive equal ids, only the first is sent
        ids = [take_ids(column, begin) for column, begin in zip(columns, runs, strict=True)]
        positions = [split_positions(assign_shards(column, size), size) for column in ids]
        requests = [
            [
                (take_ids(ids[end], positions[end][shard]), 2 * (first + runs[end][positions[end][shard]]) + end)
                for end in (0, 1)
            ]
            for shard in range(size)
        ]
        rows, answers = self._intern_requested(self.mesh.exchange(requests))
        (answered, new), _ = self.mesh.exchange_rows(answers, broadcast_rows([-2 - graph.arrival[rows]], size))
        all_positions = np.sort(new.columns[0])
        new_numbers = graph.arrival[rows]
        number_by_position(new_numbers, all_positions, self.next_arrival)
        graph.arrival[rows] = new_numbers
        answered_rows, answered_numbers = answered.columns
        number_by_position(answered_numbers, all_positions, self.next_arrival)
        bounds = [0, runs[0].size, runs[0].size + runs[1].size]
        order = np.concatenate([at[shard] + bounds[end] for shard in range(size) for end, at in enumerate(positions)])
        codes, numbers = np.empty((2, len(batch), 2), np.int64)
        for values, answer in ((codes, answered_rows * size + answered.repeat_shards()), (numbers, answered_numbers)):
            of_runs = np.empty_like(answer)
            of_runs[order] = answer
            for end, part in enumerate(split_at(of_runs, bounds)):
                kernels.fill_runs(runs[end], part, values[:, end])
        self.next_arrival += all_positions.size
        return codes, numbers

    def _intern_requested(self, requests: list[Any]) -> tuple[RowArray, RowGroup]:
        """Give rows to the ids that the shards ask for; return new rows, by position, and the answers to all shards."""
        shard, requested = self.shard, [request for requests_of_shard in requests for request in requests_of_shard]
        ids, positions = join_id_columns([ids for ids, _ in requested]), np.concatenate([at for _, at in requested])
        rows, arrival = shard.intern(ids), shard.graph.arrival
        new_rows = np.empty(rows.size, np.int64)
        new_rows = new_rows[: kernels.record_first_positions(rows, positions, arrival, new_rows)]
        new_rows = new_rows[np.argsort(-arrival[new_rows])]
        kernels.clear_rows(new_rows, shard.store.kernel_array)  # a halo may have used these rows
        self._new_rows.append(new_rows)
        counts = [sum(at.size for _, at in requests_of_shard) for requests_of_shard in requests]
        return new_rows, group_rows([rows, arrival[rows]], np.cumsum([0, *counts]))

    def _remove_vertex(self, column: IdColumn) -> None:
        """Remove a vertex with all its edges."""
        self.only_arrivals = False
        shard, size = self.shard, self.mesh.size
        neighbors: list[tuple[RowArray, int, int] | None] = [None] * size
        row = int(shard.graph.ids.find_rows(column)[0])
        if row >= 0:  # only on the shard that owns the vertex
            code, number = row * size + shard.index, int(shard.graph.arrival[row])
            neighbors = [(rows, code, number) for rows in shard.remove_vertex(row)]
        for rows, code, number in filter(None, self.mesh.exchange(neighbors)):
            shard.remove_neighbor(rows, code, number)
            self.removed.append(number)

    # ------------------------------------------------------------------ new vertices

    def new_rows(self) -> RowArray:
        """Return the rows of the new vertices on this shard that the batch does not remove again, in order."""
        rows, graph = np.concatenate(self._new_rows), self.shard.graph
        if not self.removed:
            return rows
        # A removed vertex may have left its row to another new one.
        rows = np.unique(rows[graph.arrival[rows] >= self.first_new])
        return rows[np.argsort(graph.arrival[rows], kind="stable")]

    def kept_numbers(self) -> RowArray:
        """Return the arrival numbers of all new vertices that the batch does not remove again."""
        numbers = np.arange(self.first_new, self.next_arrival)
        return numbers[~np.isin(numbers, self.removed)] if self.removed else numbers

    def schedule_waves(self) -> tuple[RowArray, RowArray]:
        """Schedule the admission of all new vertices: the wave of each, and its step within the wave on its shard.

        A vertex is admitted after the earlier new vertices that it has an edge to: in a later wave if such a vertex is
        on another shard, in a later step of the same wave if it is on the same shard.
        """
        codes, numbers = map(np.concatenate, zip(*self._edges_of_new, strict=True))
        schedule: tuple[RowArray, RowArray] = kernels.schedule_waves(
            codes, numbers, self.first_new, self.next_arrival - self.first_new, self.mesh.size
        )
        return schedule


def number_by_position(numbers: RowArray, positions: RowArray, next_arrival: int) -> None:
    """Replace −2 − position by the arrival number `next_arrival` + the rank of the position, in place."""
    new = np.flatnonzero(numbers < -1)
    numbers[new] = next_arrival + np.searchsorted(positions, -2 - numbers[new])


def split_batch_for_shards(batch: Batch, shards: int) -> list[list[BatchSlice | VertexRemoval]]:
    """Return, for each shard, its parts of a batch: slices of the operations between removals, and all removals."""
    removals = [] if batch.op is None else np.flatnonzero(batch.op == Op.REMOVE_VERTEX).tolist()
    parts: list[list[BatchSlice | VertexRemoval]] = [[] for _ in range(shards)]
    begin = 0
    for cut in [*removals, len(batch)]:
        bounds = [begin + (cut - begin) * shard // shards for shard in range(shards + 1)]
        for shard in range(shards):
            if cut > begin:
                operations = select_rows(batch, slice(bounds[shard], bounds[shard + 1]))
                parts[shard].append(BatchSlice(operations, bounds[shard]))
            if cut < len(batch):
                parts[shard].append(VertexRemoval(take_ids(batch.src, slice(cut, cut + 1))))
        begin = cut + 1
    return parts


def record_endpoints(shard: ShardGraph, window: Window, block: EndpointBlock) -> None:
    """Record the operations of a block on edges whose first endpoint is on this shard."""
    numbers = block.numbers
    first = block.side == 0 if shard.graph.directed else numbers[:, 0] < numbers[:, 1]
    window.record(block.op[first], shard.encode(block.endpoints[first]), numbers[first], block.time[first])


def expire_edges(shard: ShardGraph, window: Window, now: float) -> int:
    """Remove the edges that have expired, together with all other shards; return how many this shard had recorded."""
    mesh, arrival = shard.mesh, shard.graph.arrival
    codes, numbers, times = window.pop_expired(now)
    alive = arrival[codes[:, 0] // mesh.size] == numbers[:, 0]  # an endpoint may have been removed
    by_second = split_positions(codes[:, 1] % mesh.size, mesh.size)
    received = mesh.exchange([(codes[part], numbers[part], times[part], alive[part]) for part in by_second])
    answers = [first & (arrival[c[:, 1] // mesh.size] == n[:, 1]) for c, n, _, first in received]
    for part, answer in zip(by_second, mesh.exchange(answers), strict=True):
        alive[part] = answer
    edges = [(codes[alive], numbers[alive], times[alive])]
    edges += [(c[kept], n[kept], t[kept]) for (c, n, t, _), kept in zip(received, answers, strict=True)]
    side = np.repeat([0, 1], [len(edges[0][0]), sum(len(codes) for codes, _, _ in edges[1:])])
    codes, numbers, times = map(np.concatenate, zip(*edges, strict=True))
    order = np.lexsort((numbers[:, 1], numbers[:, 0], times))  # as one machine removes them
    _remove_endpoints(shard, codes[order], numbers[order], side[order].astype(np.int8))
    return int(np.count_nonzero(alive))


def _remove_endpoints(shard: ShardGraph, codes: RowArray, numbers: RowArray, side: NDArray[np.int8]) -> None:
    """Remove edges, in order, at the endpoint of this shard: the first (side 0) or the second (side 1)."""
    columns = np.stack([side, 1 - side], axis=1).astype(np.int64)
    own_first, numbers = np.take_along_axis(codes, columns, 1), np.take_along_axis(numbers, columns, 1)
    rows, shards = own_first // shard.shards, own_first % shard.shards
    neighbors = np.where(shards[:, 1] == shard.index, rows[:, 1], -1 - own_first[:, 1])
    endpoints, op = np.column_stack([rows[:, 0], neighbors]), np.full(len(codes), Op.REMOVE, np.int8)
    shard.apply_endpoints(EndpointBlock(endpoints, numbers, op, unit_weights(len(codes)), side, NO_TIMES))
