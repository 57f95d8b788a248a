"""The batch step on shards: each shard computes its own rows, and all of them run `run_batch_step` together.

A shard runs the kernels of a single machine on its rows. An edge may lead to a vertex on another shard; the row of that
vertex is then copied into a halo (`halo.py`) before an operation reads it.

Each endpoint of an edge is recorded on the shard of its vertex. Therefore a row that new vertices on another shard read
is pushed to that shard without a request, once it is placed and again if it has moved. A vertex that is refreshed may
be anywhere, so its shard requests the rows that it reads. No shard stores a vector before all have sent their rows, so
all read the values from before the operation.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as shard_kernels
from ripplevec.cluster.halo import Halo, PrefetchedHalo, collect_slots
from ripplevec.cluster.ingestion import NO_ROWS, GraphUpdate
from ripplevec.cluster.routing import split_at, split_rows
from ripplevec.cluster.row_exchange import ReceivedRows, RowGroup, group_rows
from ripplevec.graph.adjacency import RowArray
from ripplevec.influence import _kernels as influence
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import RESAMPLE, UNLIMITED, BatchContext
from ripplevec.rules.batch_step import RowWorker

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard


class RequestedFrontier(NamedTuple):
    """The frontier of all shards, and the rows that its refresh reads, as the shards have requested them.

    If a vertex has too many neighbors to read them all, the requests have to be sent again.
    """

    size: int = 0  # vertices in the frontier
    reads: int = 0  # neighbors of these vertices
    max_degree: int = 0  # of one of these vertices
    request: tuple[Halo, ReceivedRows] | None = None  # of this shard, and the rows that others request from it


class ShardBackend:
    """The operations of a batch step for the rows of one shard; see `StepBackend`.

    The graph already has all changes of the batch.
    """

    def __init__(self, shard: Shard, update: GraphUpdate, sequence: int) -> None:
        rule, kept = shard.rule, update.kept_numbers()
        self.shard, self.mesh, self.store, self.graph = shard, shard.mesh, shard.store, shard.graph
        self.first_new = int(kept[0]) if kept.size else update.next_arrival
        self.context = BatchContext(rule.seed, sequence, rule.depth, rule.max_reads, self.first_new)
        self.stamp = 2 * sequence  # marks rows influenced by this batch; stamp − 1 marks rows that `place` has found
        self.changes = shard.take_changes()
        self.new_rows = update.new_rows()
        self._schedule(update, kept)
        numbers = self.changes.numbers
        to_new = numbers[:, 1] >= self.first_new
        self.existing = ~to_new & (numbers[:, 0] < self.first_new)  # changes between vertices older than the batch
        if update.removed:
            to_new &= ~np.isin(numbers, update.removed).any(axis=1)
        selected = np.flatnonzero(to_new)
        self.endpoints_to_new, self.numbers_to_new = self.changes.endpoints[selected], numbers[selected]
        self.frontier = self.isolated_rows = NO_ROWS
        self.requested = RequestedFrontier()
        self.first_round_sources = NO_ROWS  # existing newcomers; for new vertices, see `_sample_from_new`
        self.refreshed: list[RowArray] = [NO_ROWS]  # the frontier of each round
        self.shortened = 0
        self.placed_existing = False  # whether the batch placed vertices that existed before it, on any shard
        # Whether no edge of an existing vertex has changed, and there are reads and rounds left for influence.
        self.only_arrivals = update.only_arrivals and shard.window is None and min(rule.depth, rule.max_reads // 2) > 0
        self._plan_pushes()

    def _schedule(self, update: GraphUpdate, kept: RowArray) -> None:
        """Divide the new vertices of this shard into waves, and the vertices of each wave into steps."""
        waves, steps = update.schedule_waves()
        count = int(waves[kept - update.first_new].max(initial=-1)) + 1
        numbers = self.graph.arrival[self.new_rows] - update.first_new
        wave, step = waves[numbers], steps[numbers]
        order = np.lexsort((step, wave))
        bounds = np.searchsorted(wave[order], np.arange(count + 1))
        self.wave_rows, self.wave_steps = split_at(self.new_rows[order], bounds), split_at(step[order], bounds)

    def _plan_pushes(self) -> None:
        """Determine the remote rows that new vertices here read, and the local rows that remote new vertices read."""
        shards, (endpoints, numbers) = self.mesh.size, (self.changes.endpoints, self.changes.numbers)
        slots = [self._collect_slots(rows, UNLIMITED, 0, remote_only=True)[0] for rows in self.wave_rows]
        self.wave_cuts = np.cumsum([0, *(part.size for part in slots)])
        all_slots = np.concatenate([NO_ROWS, *slots])
        self.prefetched = PrefetchedHalo(self.store, all_slots, shards, self.graph.row_count)
        from_new = np.flatnonzero((numbers[:, 0] >= self.first_new) & (endpoints[:, 1] < 0))
        self.prefetched.set_arrival_numbers(-1 - endpoints[from_new, 1], numbers[from_new, 1])
        rows, neighbors = self.endpoints_to_new[np.flatnonzero(self.endpoints_to_new[:, 1] < 0)].T
        # Rows to push as soon as they are placed: each pair of a row and a reading shard once, like a row code.
        _, self.unpushed, _ = shard_kernels.index_distinct(rows * shards + (-1 - neighbors) % shards)
        self.pushed = [NO_ROWS]

    # ------------------------------------------------------------------ new vertices

    def admit(self) -> None:
        """Admit new vertices wave by wave; before each wave, the shards push the rows that it reads."""
        for wave, (rows, steps) in enumerate(zip(self.wave_rows, self.wave_steps, strict=True)):
            self._push_placed()
            worker = self._worker
            with self.prefetched.mapped(slice(*self.wave_cuts[wave : wave + 2])):
                for step_rows in split_at(rows, np.searchsorted(steps, np.arange(steps.max(initial=-1) + 2))):
                    worker.admit_wave(step_rows)
            self.shortened += worker.shortened

    def _push_placed(self, moved: RowArray = NO_ROWS, stamp: int = 0) -> None:
        """Push, to each shard, the rows that it reads and that are placed now, and `moved` rows pushed before."""
        shards = self.mesh.size
        placed = self.store.placed[self.unpushed // shards] == 1
        self.pushed.append(self.unpushed[placed])
        self.unpushed = self.unpushed[~placed]
        selected = np.concatenate([self.pushed[-1], moved])
        order, bounds = shard_kernels.group_by_shard(selected, shards)
        self.prefetched.push(self.mesh, selected[order] // shards, bounds, stamp)
        self.shard.needed += selected.size * self.store.vectors[:1].nbytes

    # ------------------------------------------------------------------ placement of existing vertices

    def place(self) -> None:
        """Place existing vertices that gained a placed neighbor, frontier by frontier.

        Most batches have none. Therefore the changed endpoints are already sampled here, and their number is added up
        in the same exchange. If there cannot be any, because the batch consists of arrivals, round 1 begins here.
        """
        state = self._kernel_state
        self.touched = kernels.find_placement_candidates(state, self.changes.endpoints[:, 0].copy())
        self.newcomers = self.new_rows[state.placed[self.new_rows] == 1]
        frontier = self.touched[state.placed[self.touched] == 0]
        existing_edges = int(np.count_nonzero(self.changes.counted & self.existing))  # counted on one shard each
        influenced = NO_ROWS
        if self.only_arrivals:
            self._mark_seen(self.newcomers.copy())
            influenced = self._sample_from_new()
        stamps = self.store.seen[influenced]
        self.frontier = self._mark_seen(influenced.copy()) if self.only_arrivals else self._sample_changed_endpoints()
        size, self.events = self._request_frontier(frontier.size, self.new_rows.size + existing_edges)
        if self.only_arrivals and size:  # round 1 has to wait until these vertices are placed
            self.only_arrivals, self.frontier = False, NO_ROWS
            self.store.seen[influenced], self.store.seen[self.newcomers] = stamps, 0
        while size:
            frontier = self._place_frontier(frontier, first=not self.placed_existing)
            self.placed_existing, size = True, self.mesh.sum(frontier.size)

    def _place_frontier(self, frontier: RowArray, first: bool) -> RowArray:
        """Place vertices; return the next frontier: their unplaced neighbors.

        The first frontier is only known to be touched by the batch: vertices without a placed neighbor are left out.
        """
        halo, _ = self._fetch_halo(frontier, UNLIMITED, 0, with_placed=True)
        stamp, seen = self.stamp - 1, self.store.seen  # after the halo, which may reallocate it
        with halo.mapped():
            state = self._kernel_state
            if first:
                frontier = kernels.find_placeable(state, self.touched, seen, stamp)
            self.shortened += kernels.place_frontier(state, frontier)
            unplaced = kernels.find_unplaced_neighbors(state, frontier, seen, stamp)
        halo.clear()
        self.newcomers = np.concatenate([self.newcomers, frontier])
        local = unplaced[unplaced < halo.first_row]  # marked as seen when they were found
        candidates = split_rows(halo.codes[unplaced[unplaced >= halo.first_row] - halo.first_row], self.mesh.size)
        remote = np.concatenate(self.mesh.exchange(candidates))
        remote = remote[self.store.placed[remote] == 0]
        return np.concatenate([local, remote[: influence.mark_seen(remote, seen, stamp)]])

    def unplace_isolated(self) -> None:
        """Unplace vertices that have lost their last edge."""
        self.isolated_rows = kernels.unplace_isolated(self._kernel_state, self.touched)

    # ------------------------------------------------------------------ rounds of influence

    def sample_changed_endpoints(self) -> int:
        """Set the frontier to changed endpoints of this shard; the shard of the other endpoint samples that one."""
        if self.only_arrivals:
            return 0
        self._mark_seen(self.newcomers.copy())
        self.first_round_sources = self._existing_newcomers
        if self.placed_existing:  # some of them are changed endpoints
            self.frontier = self._sample_changed_endpoints()
        self.frontier = self._mark_seen(self.frontier)
        if self.placed_existing:
            self._request_frontier()
        return self.requested.size

    def _sample_changed_endpoints(self) -> RowArray:
        """Return a sample of the changed endpoints on this shard, each once, without those that have no edge left."""
        changes = self.changes
        selected = np.flatnonzero(self.existing)
        shares = np.stack([changes.shares[selected], np.zeros(selected.size)], axis=1)
        pairs, numbers = np.repeat(changes.endpoints[selected, :1], 2, axis=1), changes.numbers[selected]
        sampled = kernels.sample_changed_endpoints(self._kernel_state, pairs, numbers, shares, self.context)
        distinct: RowArray = shard_kernels.index_distinct(sampled)[1]
        return distinct[self._links.degree[distinct] > 0]

    def count_events(self) -> int:
        """Return the number of events on all shards, which `place` has added up."""
        return max(self.events, 1)

    def refresh_frontier(self, limit: int, depth: int) -> int:
        """Refresh the frontier of this shard; send its requests again if some vertex reads a sample of neighbors."""
        requested, total_reads = self.requested, self.requested.reads
        if requested.request is not None and requested.max_degree <= min(limit, self.context.max_reads):
            halo, rows = requested.request
            self._fill_halo(halo, rows)
        else:
            reads = int(kernels.count_neighbor_reads(self._links, self.frontier, limit))
            halo, total_reads = self._fetch_halo(self.frontier, limit, depth + RESAMPLE, summand=reads)
        with halo.mapped():
            worker = self._worker
            worker.refresh(self.frontier, limit, depth)
        halo.clear()
        self.shortened += worker.shortened
        self.refreshed.append(self.frontier)
        return total_reads

    def _request_frontier(self, *counts: int) -> list[int]:
        """Request the rows that a refresh of the frontier reads, provided that it reads all neighbors of each vertex.

        Also adds up the size of the frontier over all shards, and other counts, which are returned: they need no
        exchanges of their own this way.
        """
        degrees = self._links.degree[self.frontier]
        max_degree, reads = int(degrees.max(initial=0)), int(degrees.sum())
        rows = self.frontier if max_degree <= self.context.max_reads else NO_ROWS  # others read a sample, most likely
        slots, _ = self._collect_slots(rows, UNLIMITED, 0, remote_only=True)
        halo = Halo(self.store, slots, self.mesh.size, self.prefetched.end_row)
        requested, numbers = halo.request(self.mesh, max_degree, self.frontier.size, reads, *counts)
        max_degree = int(numbers[:, 0].max())
        size, total_reads, *totals = numbers[:, 1:].sum(axis=0).tolist()
        self.requested = RequestedFrontier(size, total_reads, max_degree, (halo, requested))
        return totals

    def spread_influence(self, limit: int, depth: int) -> tuple[int, int]:
        """Send each shard the edges along which influence may reach it; it draws those along which it does.

        Influence of new vertices needs no messages: it is drawn from the edges that came with them.
        """
        if depth == 1 and self.only_arrivals:  # `place` has drawn it
            return self.requested.size, 0
        reached, total_reads = NO_ROWS, 0
        if self.requested.size or self.placed_existing:  # otherwise no shard has a candidate
            reads = int(kernels.count_neighbor_reads(self._links, self.frontier, limit))
            (candidates,), all_reads = self.mesh.exchange_rows(
                self._influence_candidates(limit, depth), numbers=[reads]
            )
            reached, total_reads = self._sample_candidates(candidates, depth), int(all_reads.sum())
        if depth == 1:
            reached = np.concatenate([reached, self._sample_from_new()])
        self.frontier = self._mark_seen(reached)
        self._request_frontier()
        return self.requested.size, total_reads

    def _influence_candidates(self, limit: int, depth: int) -> RowGroup:
        """Return the edges along which influence may spread in this round, for the shards of their targets.

        The columns are the row of the target, the arrival number of the source, and the weight of the edge.
        """
        parts = [
            self._collect_slots(self.first_round_sources, UNLIMITED, depth),
            self._collect_slots(self.frontier, limit, depth),
        ]
        self.first_round_sources = NO_ROWS
        slots, sources = (np.concatenate(column) for column in zip(*parts, strict=True))
        codes, shards = self.shard.slot_codes(slots), self.mesh.size
        order, bounds = shard_kernels.group_by_shard(codes, shards)
        rows, weights = (codes // shards).astype(np.int32), self._links.outgoing[slots]
        return group_rows([column[order] for column in (rows, self.graph.arrival[sources], weights)], bounds)

    def _sample_candidates(self, candidates: ReceivedRows, depth: int) -> RowArray:
        """Draw the candidates whose targets are influenced and not seen yet; return the targets."""
        rows, sources, weights = candidates.columns
        drawn, in_strength = np.empty(rows.size, np.bool_), self._links.in_strength[rows]
        influence.draw_edges(self._draw_key(depth), self.graph.arrival[rows], sources, in_strength, weights, drawn)
        selected: RowArray = rows[drawn & (self.store.seen[rows] != self.stamp)].astype(np.int64)
        return selected

    def _sample_from_new(self) -> RowArray:
        """Draw the rows that new vertices influence in the first round, from the edges that came with them."""
        reached, edges = np.empty(len(self.endpoints_to_new), np.int64), (self.endpoints_to_new, self.numbers_to_new)
        found = shard_kernels.sample_influenced(
            self._links, self.store.placed, self.store.seen, self.stamp, *edges, self._draw_key(1), reached
        )
        return reached[:found]

    # ------------------------------------------------------------------ end of the step

    def refresh_newcomers(self) -> None:
        """Refresh newcomers that read rows which have moved since.

        Newcomers that existed before the batch are always refreshed, because the rows they read are not recorded.
        """
        before = np.concatenate(self.pushed)
        self._push_placed(before[self._existing_and_moved(before // self.mesh.size)], self.stamp)
        existing = self.graph.arrival[self.newcomers] < self.first_new
        halo = self._fetch_halo(self.newcomers[existing], UNLIMITED, 0)[0] if self.placed_existing else None
        with self.prefetched.mapped(), halo.mapped() if halo else nullcontext():
            new, seen = self.newcomers[~existing], self.store.seen
            outdated = kernels.find_second_refresh_rows(self._kernel_state, new, seen, self.stamp, self.first_new)
            self._worker.refresh(np.concatenate([outdated, self.newcomers[existing]]), UNLIMITED, 0)
        if halo:
            halo.clear()
        self.prefetched.clear()

    def moved_rows(self) -> RowArray:
        """Return the rows of this shard that may have moved, each once."""
        unplaced = self.new_rows[self.store.placed[self.new_rows] == 0]
        return np.concatenate([self.newcomers, *self.refreshed, self.isolated_rows, unplaced])

    # ------------------------------------------------------------------ helpers

    @property
    def _links(self) -> Any:
        return self.graph.adjacency.links

    @property
    def _kernel_state(self) -> KernelState:
        return self.shard.rule.kernel_state(self.store)

    @property
    def _worker(self) -> RowWorker:
        return RowWorker(self._kernel_state, self.store.seen, self.context, self.shard.rule.threads)

    @property
    def _existing_newcomers(self) -> RowArray:
        """Newcomers that existed before this batch."""
        return self.newcomers[self.graph.arrival[self.newcomers] < self.first_new]

    def _existing_and_moved(self, rows: RowArray) -> NDArray[np.bool_]:
        return (self.store.seen[rows] == self.stamp) & (self.graph.arrival[rows] < self.first_new)

    def _mark_seen(self, rows: RowArray) -> RowArray:
        return rows[: influence.mark_seen(rows, self.store.seen, self.stamp)]

    def _draw_key(self, depth: int) -> Any:
        return influence.draw_key(self.context.seed, self.context.sequence, depth)

    def _collect_slots(
        self, rows: RowArray, limit: int, depth: int, *, remote_only: bool = False
    ) -> tuple[RowArray, RowArray]:
        """Return the slots that rows read in a round, optionally of remote neighbors only, and the row of each slot."""
        return collect_slots(self.graph.adjacency, rows, limit, self._draw_key(depth), remote_only=remote_only)

    def _fetch_halo(
        self, rows: RowArray, limit: int, depth: int, *, with_placed: bool = False, summand: int = 0
    ) -> tuple[Halo, int]:
        """Return a halo with the remote rows that an operation on `rows` reads.

        Also return the sum of `summand` over all shards, which needs no exchange of its own this way.
        """
        slots, _ = self._collect_slots(rows, limit, depth, remote_only=True)
        halo = Halo(self.store, slots, self.mesh.size, self.prefetched.end_row)
        requested, summands = halo.request(self.mesh, summand)
        self._fill_halo(halo, requested, with_placed=with_placed)
        return halo, int(summands.sum())

    def _fill_halo(self, halo: Halo, requested: ReceivedRows, *, with_placed: bool = False) -> None:
        """Send the rows that other shards have requested, and store those that this shard has requested."""
        halo.fill(self.mesh, requested, with_placed=with_placed)
        self.shard.needed += requested.columns[0].size * self.store.vectors[:1].nbytes
