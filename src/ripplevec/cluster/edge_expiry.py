"""Expiry of edges on shards: each shard has a time window with the edges whose first endpoint it stores.

The first endpoint of an edge is its source, or, in an undirected graph, the endpoint with the lower arrival number.
The window stores the row codes of both endpoints. The clock and the decay of weights are on the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Op
from ripplevec.cluster.ingestion import NO_TIMES, EndpointBlock
from ripplevec.cluster.routing import split_positions
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import unit_weights
from ripplevec.temporal.window import Window

if TYPE_CHECKING:
    from ripplevec.cluster.shard_graph import ShardGraph


class AgingStep(NamedTuple):
    """What a batch changes in the aging of edges; see `EdgeAging.advance`."""

    rescaling: float  # factor by which all stored weights are multiplied before the batch
    unit: float  # stored value of a weight of one that arrives now
    now: float  # time of the latest event


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
