"""The sequence of calls by which all shards update their vectors after a batch; no vector reaches the driver.

The steps are those of `rules/_kernels.apply_batch`, in the same order. Every step reads only values from before the
step, so the result does not depend on which shard stores which vertex.

New vertices are *admitted* first: they are placed from neighbors that arrived before them, in waves (see
`routing.schedule_waves`). Then two sets of vertices drive the protocol. The *frontier* contains unplaced vertices that
gained a placed neighbor and are placed next. The *refresh set* of a round contains placed vertices whose vectors are
recomputed in that round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ripplevec.cluster.routing import split_positions
from ripplevec.cluster.transport import Transport
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules.ripple import RippleRule

Parts = list[Sequence[Any]]
"""For each shard, one reference per receiving shard; passed on without being resolved."""


class BatchResult(NamedTuple):
    """The outcome of a batch."""

    moved: list[RowArray]  # for each shard, the rows whose vectors may have changed
    edges: int  # edges in the graph
    changed: int  # edges that the batch changed
    shortened: int  # vectors that exceeded the length bound and were scaled back


class BatchProtocol:
    """The vector update of one batch."""

    def __init__(self, transport: Transport, rule: RippleRule, sequence: int) -> None:
        self.transport, self.rule, self.sequence = transport, rule, sequence
        self.placed_existing = False  # whether the batch placed vertices that existed before it

    def run(
        self, new_codes: RowArray, schedule: tuple[RowArray, RowArray], first_new: int, removed: RowArray
    ) -> BatchResult:
        """Update the vectors after the graph has changed.

        Parameters
        ----------
        new_codes
            Row codes of the new vertices, in order of arrival.
        schedule
            The wave and the step in which each new vertex is admitted.
        first_new
            Arrival number of the first new vertex that the batch does not remove again.
        removed
            Arrival numbers of removed vertices.
        """
        transport, waves = self.transport, int(schedule[0].max(initial=-1)) + 1
        by_shard = split_positions(new_codes % transport.size, transport.size)
        new = [[column[positions] for positions in by_shard] for column in (new_codes // transport.size, *schedule)]
        context = {"first_new": first_new, "removed": removed, "waves": waves, "sequence": self.sequence}
        pushed, frontier, counts = self._exchange("begin_batch", *new, **context, extras=2)
        for wave in range(waves):
            pushed, frontier = self._exchange("admit_wave", *pushed, wave=wave)
        if sum(transport.get(frontier)):
            self._place_frontiers()
        edges, changed, existing = map(sum, zip(*transport.get(counts), strict=True))
        pushed = self._run_rounds(pushed, self.rule.max_reads * max(new_codes.size + existing, 1))
        pulled: Parts = []
        if self.placed_existing:
            pulled = self._pull(transport.call("request_late_rows", parts=transport.size))
        moved, shortened = zip(*transport.get(transport.call("finish_batch", *pushed, *pulled)), strict=True)
        return BatchResult(list(moved), edges, changed, sum(shortened))

    def _exchange(self, method: str, *columns: Sequence[Any], extras: int = 1, **constants: Any) -> list[Any]:
        """Call a method whose result has one part per receiving shard, followed by `extras` parts for the driver.

        Returns the parts for the shards, then one column of references per extra.
        """
        size = self.transport.size
        results = self.transport.call(method, *columns, parts=size + extras, **constants)
        return [[parts[:size] for parts in results], *zip(*(parts[size:] for parts in results), strict=True)]

    def _pull(self, requested: Parts, *, with_placed: bool = False) -> Parts:
        """Fetch the rows that each shard requested from each other shard."""
        return self.transport.call("pull_rows", *requested, with_placed=with_placed, parts=self.transport.size)

    def _place_frontiers(self) -> None:
        """Place existing vertices that gained a placed neighbor, one frontier after the other. This is rare."""
        transport, first, remaining, self.placed_existing = self.transport, True, 1, True
        while remaining:
            requested = transport.call("request_frontier_rows", parts=transport.size)
            pulled = self._pull(requested, with_placed=True)
            candidates = transport.call("place_frontier", *pulled, first=first, parts=transport.size)
            remaining, first = sum(transport.get(transport.call("set_frontier", *candidates))), False

    def _run_rounds(self, pushed: Parts, budget: int) -> Parts:
        """Refresh vertices and spread influence, round by round; return the moved rows that the shards push.

        The rounds end when the refresh set is empty, the depth of the rule is reached, or `budget` neighbors were read.
        """
        transport, depth, max_depth = self.transport, 0, self.rule.depth
        requested, set_infos = self._exchange("begin_refresh", *pushed)
        while True:
            refresh_sets = transport.get(set_infos)  # for each shard: depth, size and largest degree of its set
            size = sum(count for set_depth, count, _ in refresh_sets if set_depth == depth)
            limit = budget // (2 * max(1, size))
            if limit == 0 or (not size and depth):
                break
            if size:
                round_arguments = {"limit": limit, "depth": depth}
                if any(set_depth > depth or degree > limit for set_depth, _, degree in refresh_sets):
                    requested = transport.call("request_refresh_rows", **round_arguments, parts=transport.size)
                last = depth == max_depth
                pushed, reads = self._exchange("refresh", *self._pull(requested), **round_arguments, last=last)
                if last:
                    return pushed
                budget -= sum(transport.get(reads))
            if depth == max_depth:
                break
            depth += 1
            if size or (self.placed_existing and depth == 1):
                limit = max(1, budget // (2 * max(1, size)))
                candidates, reads = self._exchange("send_influence", limit=limit, depth=depth)
                budget -= sum(transport.get(reads))
                requested, set_infos = self._exchange("draw_influenced", *candidates, depth=depth)
        return transport.call("push_moved_rows", parts=transport.size)
