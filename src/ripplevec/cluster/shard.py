"""The `Shard`: one shard's part in the vector update of a batch, in anchors, and in reads from snapshots.

A shard runs the kernels of the single-machine engine on its own rows (`shard_graph.py`). An edge may lead to a vertex
on another shard; the row of that vertex is then copied into a halo (`halo.py`) before a step reads it.

Each endpoint of an edge is recorded on the shard of its vertex. Therefore a row that new vertices on another shard read
is pushed to that shard without a request, once it is placed and again if it has moved. A vertex that is refreshed may
be anywhere, so its shard has to request the rows it reads: such a step takes three calls. The first returns the
requested rows, `pull_rows` returns their contents, and the third performs the step. No call in between stores a vector,
so all shards read the values from before the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy as shallow_copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as shard_kernels
from ripplevec.cluster.halo import Halo, PrefetchedHalo, PushedRows, pack_pushed_rows, pack_rows
from ripplevec.cluster.routing import split_positions, split_rows
from ripplevec.cluster.shard_graph import NO_ROWS, ShardGraph
from ripplevec.cluster.shard_matrices import ShardMatrices
from ripplevec.graph.adjacency import RowArray
from ripplevec.influence import _kernels as influence
from ripplevec.parameters import Parameters
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import RESAMPLE, UNLIMITED, BatchContext
from ripplevec.rules.ripple import ThreadedStep
from ripplevec.util.parallel import limit_blas_to_one_thread

SNAPSHOT_GONE = "snapshot gone"
"""Result of a read from a snapshot that no longer exists; an exception would cause the shard to be dropped."""

CANDIDATE = np.dtype([("row", np.int32), ("number", np.int64), ("weight", np.float32)])
"""An edge along which influence may spread: the target row, the arrival number of the source, and the edge weight."""


class Shard(ShardGraph):
    """One of the shards that together hold a model. See `ShardGraph` for the parameters."""

    def __init__(self, index: int, shards: int, parameters: Parameters) -> None:
        super().__init__(index, shards, parameters)
        self.sent = 0  # bytes sent to other shards
        self.needed = 0  # how many of these bytes were vectors that the receiver had to read
        self.matrices: ShardMatrices | None = None  # only during an anchor or a start
        self.snapshots: dict[int, Shard] = {}  # copies of the state before an update, by number

    # ------------------------------------------------------------------ a batch: new vertices

    def begin_batch(
        self,
        new_rows: RowArray,
        wave: RowArray,
        step: RowArray,
        *,
        first_new: int,
        removed: RowArray,
        waves: int,
        sequence: int,
    ) -> list[Any]:
        """Begin the vector update; the graph already has all changes of the batch.

        Parameters
        ----------
        new_rows
            Rows of the new vertices on this shard, in order of arrival.
        wave, step
            When each new vertex is admitted: its wave, and its step within the wave.
        first_new
            Arrival number of the first new vertex that the batch does not remove again.
        removed
            Arrival numbers of removed vertices.
        waves
            Number of waves.
        sequence
            Sequence number of the batch.

        Returns
        -------
        list
            The rows pushed to each shard, the size of the first frontier (see `admit_wave`), and `_count_changes`.
        """
        counts = self._count_changes(first_new)
        rule, order = self.rule, np.lexsort((step, wave))
        self.context = BatchContext(rule.seed, sequence, rule.depth, rule.max_reads, self.first_new)
        self.stamp = 2 * sequence  # marks rows reached in this batch; stamp − 1 marks rows that joined a frontier
        self.waves = waves
        self.new_rows, self.refresh_sets, self.moved = np.array(new_rows), dict[int, RowArray](), [NO_ROWS]
        self.shortened = 0
        cuts = np.searchsorted(wave[order], np.arange(1, waves))
        self.wave_rows, self.wave_steps = np.split(self.new_rows[order], cuts), np.split(step[order], cuts)
        self.endpoints, self.numbers = np.concatenate(self.changed_endpoints), np.concatenate(self.changed_numbers)
        to_new = self.numbers[:, 1] >= first_new
        if removed.size:
            to_new &= ~np.isin(self.numbers, removed).any(axis=1)
        self.endpoints_to_new, self.numbers_to_new = self.endpoints[to_new], self.numbers[to_new]
        self._plan_exchange()
        return [*self._finish_wave(-1), counts]

    def _plan_exchange(self) -> None:
        """Determine the remote rows that new vertices here read, and the local rows that remote new vertices read."""
        slots = [self._collect_slots(rows, UNLIMITED, 0, remote_only=True)[0] for rows in self.wave_rows]
        self.wave_cuts = np.cumsum([0, *(part.size for part in slots)])
        all_slots = np.concatenate([NO_ROWS, *slots])
        self.prefetched = PrefetchedHalo(self.store, all_slots, self.shards, self.graph.row_count)
        from_new = (self.numbers[:, 0] >= self.first_new) & (self.endpoints[:, 1] < 0)
        self.prefetched.set_arrival_numbers(-1 - self.endpoints[from_new, 1], self.numbers[from_new, 1])
        rows, neighbors = self.endpoints_to_new[self.endpoints_to_new[:, 1] < 0].T
        # Each pair of a row and a reading shard once, written like a row code.
        _, read_by, _ = shard_kernels.index_distinct(rows * self.shards + (-1 - neighbors) % self.shards)
        self.unpushed = split_rows(read_by, self.shards)  # for each shard, rows to push as soon as they are placed
        self.pushed: list[list[RowArray]] = [[NO_ROWS] for _ in self.unpushed]

    def admit_wave(self, *pushed: PushedRows, wave: int) -> list[Any]:
        """Place the new vertices of a wave, step by step.

        Returns the rows pushed to each shard, and the size of the first frontier if this was the last wave (else 0).
        """
        self.prefetched.receive_pushed(pushed)
        rows, steps, threaded = self.wave_rows[wave], self.wave_steps[wave], self._threaded_step
        with self.prefetched.mapped(slice(*self.wave_cuts[wave : wave + 2])):
            for step_rows in np.split(rows, np.flatnonzero(np.diff(steps)) + 1):
                threaded.admit_wave(step_rows)
        self.shortened += threaded.shortened
        return self._finish_wave(wave)

    def _finish_wave(self, wave: int) -> list[Any]:
        return [*self._push_placed(), self._find_frontier() if wave + 1 == self.waves else 0]

    def _push_placed(self, moved: Sequence[RowArray] = ()) -> list[PushedRows]:
        """Pack, for each shard, the rows that it reads and that are placed now; add `moved` rows pushed before."""
        packed = []
        for shard, rows in enumerate(self.unpushed):
            placed = self.store.placed[rows] == 1
            self.unpushed[shard] = rows[~placed]
            self.pushed[shard].append(rows[placed])
            selected = np.concatenate([rows[placed], moved[shard]]) if moved else rows[placed]
            packed.append(pack_pushed_rows(self.store, selected))
        self.sent += sum(column.nbytes for columns in packed for column in columns)
        self.needed += sum(vectors.nbytes for _, vectors in packed)
        return packed

    def push_moved_rows(self) -> list[PushedRows]:
        """Push, to the shards that read them, existing vertices that have moved or were placed since the last push."""
        before = [np.concatenate(rows) for rows in self.pushed]
        return self._push_placed([rows[self._existing_and_moved(rows)] for rows in before])

    def _existing_and_moved(self, rows: RowArray) -> NDArray[np.bool_]:
        return (self.store.seen[rows] == self.stamp) & (self.graph.arrival[rows] < self.first_new)

    def pull_rows(self, *requested: RowArray, with_placed: bool) -> list[NDArray[Any]]:
        """Return the rows that each shard requested, optionally with their `placed` flags."""
        packed = [pack_rows(self.store, rows, with_placed=with_placed) for rows in requested]
        self.sent += sum(part.nbytes for part in packed)
        self.needed += sum(rows.size for rows in requested) * self.store.vectors[:1].nbytes
        return packed

    # ------------------------------------------------------------------ a batch: placement of existing vertices

    def _find_frontier(self) -> int:
        """After the last wave, determine the first frontier: vertices that can be placed now; return its size."""
        state = self._kernel_state
        self.touched = kernels.find_placement_candidates(state, self.endpoints[:, 0].copy())
        self.newly_placed = self.new_rows[state.placed[self.new_rows] == 1]
        self.frontier = self.touched[state.placed[self.touched] == 0]
        return int(self.frontier.size)

    def request_frontier_rows(self) -> list[RowArray]:
        """Return the rows of each shard that placing the frontier reads."""
        return self._request(self.frontier, UNLIMITED, 0)

    def place_frontier(self, *received: NDArray[Any], first: bool) -> list[RowArray]:
        """Place the frontier; return candidates for the next frontier as rows of each shard.

        The first frontier is only known to be touched by the batch: vertices without a placed neighbor are left out.
        """
        stamp, halo = self.stamp - 1, self._halo
        halo.receive(received)
        with halo.mapped():
            state, seen = self._kernel_state, self.store.seen
            frontier = kernels.find_placeable(state, self.touched, seen, stamp) if first else self.frontier
            self.shortened += kernels.place_frontier(state, frontier)
            unplaced = kernels.find_unplaced_neighbors(state, frontier, seen, stamp)
        halo.clear()
        self.newly_placed = np.concatenate([self.newly_placed, frontier])
        parts = split_rows(halo.codes[unplaced[unplaced >= halo.first_row] - halo.first_row], self.shards)
        parts[self.index] = unplaced[unplaced < halo.first_row]
        return parts

    def set_frontier(self, *candidates: RowArray) -> int:
        """Set the next frontier to the candidates that are still unplaced, each once; return its size."""
        seen, stamp = self.store.seen, self.stamp - 1
        local = candidates[self.index]  # marked as seen when they were found
        remote = np.concatenate([part for shard, part in enumerate(candidates) if shard != self.index] or [NO_ROWS])
        remote = remote[self.store.placed[remote] == 0]
        self.frontier = np.concatenate([local, remote[: influence.mark_seen(remote, seen, stamp)]])
        return int(self.frontier.size)

    # ------------------------------------------------------------------ a batch: refresh rounds

    def begin_refresh(self, *pushed: PushedRows) -> list[Any]:
        """Unplace vertices that lost their last edge, and determine the first refresh set; return `_add_to_refresh`.

        The set of round 0 is drawn from changed edges between existing vertices. It is empty in most batches; then
        round 1 begins immediately, because this shard can draw the vertices that new vertices influence.
        """
        self.prefetched.receive_pushed(pushed)
        state, seen = self._kernel_state, self.store.seen
        self.unplaced_rows = kernels.unplace_isolated(state, self.touched)
        shares = np.concatenate(self.strength_shares)
        local_shares = np.stack([shares, np.zeros_like(shares)], axis=1)  # its shard draws for the other endpoint
        pairs = np.repeat(self.endpoints[:, :1], 2, axis=1)
        drawn = kernels.sample_changed_endpoints(state, pairs, self.numbers, local_shares, self.context)
        influence.mark_seen(self.newly_placed.copy(), seen, self.stamp)
        self.late_sources = self._late_rows
        if drawn.size or self.context.depth == 0:
            return self._add_to_refresh(drawn, 0)
        return self._add_to_refresh(self._sample_from_new(), 1)

    def _add_to_refresh(self, reached: RowArray, depth: int) -> list[Any]:
        """Add rows that were not reached before to a refresh set.

        Returns the requested rows of each shard, on the assumption that the refresh reads all neighbors, followed by
        the depth, the size of the set, and its largest degree. If the degree exceeds the read limit of the rule,
        nothing is requested yet and the degree is reported as unlimited.
        """
        new = reached[: influence.mark_seen(reached, self.store.seen, self.stamp)]
        rows = self.refresh_sets[depth] = np.concatenate([self.refresh_sets.get(depth, NO_ROWS), new])
        max_degree = int(self._links.degree[rows].max(initial=0))
        bounded = max_degree <= self.context.max_reads
        requested = self.request_refresh_rows(UNLIMITED, depth) if bounded else [NO_ROWS] * self.shards
        return [*requested, (depth, rows.size, max_degree if bounded else UNLIMITED)]

    def request_refresh_rows(self, limit: int, depth: int) -> list[RowArray]:
        """Return the rows of each shard that refreshing a set reads, with at most `limit` neighbors per vertex."""
        return self._request(self.refresh_sets.get(depth, NO_ROWS), limit, depth + RESAMPLE)

    def refresh(self, *received: NDArray[Any], limit: int, depth: int, last: bool) -> list[Any]:
        """Refresh a set of vertices; return the pushed rows if this is the last round, and the neighbors read."""
        rows = self.refresh_sets.get(depth, NO_ROWS)
        self._halo.receive(received)
        with self._halo.mapped():
            threaded = self._threaded_step
            threaded.refresh(rows, limit, depth)
        self.shortened += threaded.shortened
        self._halo.clear()
        self.moved.append(rows)
        pushed = self.push_moved_rows() if last else [None] * self.shards
        return [*pushed, int(kernels.count_neighbor_reads(self._links, rows, limit))]

    def send_influence(self, limit: int, depth: int) -> list[Any]:
        """Return the influence candidates of a round for each shard, which draws from them, and the neighbors read.

        Sources are the refresh set of the round before and, in the first round, existing vertices that were placed in
        this batch. Influence of new vertices needs no candidates: it is drawn from the edges that came with them.
        """
        rows = self.refresh_sets.get(depth - 1, NO_ROWS)
        parts = [self._collect_slots(self.late_sources, UNLIMITED, depth), self._collect_slots(rows, limit, depth)]
        slots, sources = (np.concatenate(column) for column in zip(*parts, strict=True))
        codes, candidates = self._slot_codes(slots), np.empty(slots.size, CANDIDATE)
        candidates["row"], candidates["weight"] = codes // self.shards, self._links.outgoing[slots]
        candidates["number"] = self.graph.arrival[sources]
        sent = [candidates[positions] for positions in split_positions(codes % self.shards, self.shards)]
        self.late_sources = NO_ROWS
        self.sent += sum(part.nbytes for shard, part in enumerate(sent) if shard != self.index)
        return [*sent, int(kernels.count_neighbor_reads(self._links, rows, limit))]

    def draw_influenced(self, *candidates: NDArray[Any], depth: int) -> list[Any]:
        """Draw the next refresh set from the candidates that the shards sent; return `_add_to_refresh`."""
        reached = [NO_ROWS]
        if candidates:
            reached.append(self._sample_candidates(np.concatenate(candidates), depth))
        if depth == 1 and depth not in self.refresh_sets:
            reached.append(self._sample_from_new())
        return self._add_to_refresh(np.concatenate(reached), depth)

    def _sample_candidates(self, candidates: NDArray[Any], depth: int) -> RowArray:
        """Draw the candidates whose targets are influenced, with the kernel that serves a single machine.

        For this kernel, each candidate becomes a source with a single edge, which leads to a copy of the target.
        """
        rows, count = candidates["row"].astype(np.int64), candidates.size
        links = self._links._replace(
            begin=np.arange(count),
            degree=np.ones(count, np.int32),
            neighbor=np.arange(count, 2 * count, dtype=np.int32),
            outgoing=np.ascontiguousarray(candidates["weight"]),
            in_strength=np.concatenate([np.zeros(count), self._links.in_strength[rows]]),
        )
        seen = np.concatenate([np.zeros(count, np.int64), self.store.seen[rows]])
        numbers = np.concatenate([candidates["number"], self.graph.arrival[rows]])
        sources, reached, key = np.arange(count), np.empty(count, np.int64), self._draw_key(depth)
        found = influence.spread_round(links, numbers, sources, seen, self.stamp, key, UNLIMITED, reached)
        return rows[reached[:found] - count]

    def _sample_from_new(self) -> RowArray:
        """Draw the rows that new vertices influence in the first round, from the edges that came with them."""
        links, store, reached = self._links, self.store, np.empty(len(self.endpoints_to_new), np.int64)
        edges = self.endpoints_to_new, self.numbers_to_new
        found = shard_kernels.sample_influenced(
            links, store.placed, store.seen, self.stamp, *edges, self._draw_key(1), reached
        )
        return reached[:found]

    # ------------------------------------------------------------------ a batch: its end

    @property
    def _late_rows(self) -> RowArray:
        """Vertices that existed before this batch and were placed in it."""
        return self.newly_placed[self.graph.arrival[self.newly_placed] < self.first_new]

    def request_late_rows(self) -> list[RowArray]:
        """Return the rows of each shard that existing vertices placed in this batch read; these are not pushed."""
        return self._request(self._late_rows, UNLIMITED, 0)

    def finish_batch(self, *received: Any) -> tuple[RowArray, int]:
        """Refresh newly placed vertices that read rows which have moved since; end the batch.

        Existing vertices placed in this batch are always refreshed, because the rows they read are not recorded.

        Parameters
        ----------
        *received
            The rows that each shard pushed; if late rows were requested, followed by those that each shard returned.

        Returns
        -------
        tuple
            All rows that may have moved, each once, and the number of vectors that were shortened.
        """
        pushed, pulled = received[: self.shards], received[self.shards :]
        existing = self.graph.arrival[self.newly_placed] < self.first_new
        self.prefetched.receive_pushed(pushed, self.stamp)
        if pulled:
            self._halo.receive(pulled)
        with self.prefetched.mapped(), self._halo.mapped() if pulled else nullcontext():
            new, seen = self.newly_placed[~existing], self.store.seen
            outdated = kernels.find_second_refresh_rows(self._kernel_state, new, seen, self.stamp, self.first_new)
            rows = np.concatenate([outdated, self.newly_placed[existing]])
            self._threaded_step.refresh(rows, UNLIMITED, 0)
        if pulled:
            self._halo.clear()
        self.prefetched.clear()
        unplaced = self.new_rows[self.store.placed[self.new_rows] == 0]
        moved = np.concatenate([self.newly_placed, *self.moved, self.unplaced_rows, unplaced])
        self._clear_changes()
        return moved, self.shortened

    # ------------------------------------------------------------------ anchors and starts

    def open_matrices(self) -> list[RowArray]:
        """Begin an anchor or a start; return the rows of each shard that its matrices need."""
        self.close_matrices()
        self.matrices = ShardMatrices(self.store, self.rule, self.index, self.shards)
        return self.matrices.requested

    def run_matrix_step(self, *columns: Any, step: str, **constants: Any) -> Any:
        """Call a method of `ShardMatrices` by name."""
        with limit_blas_to_one_thread():
            return getattr(self.matrices, step)(*columns, **constants)

    def close_matrices(self) -> None:
        """End an anchor or a start, completed or not."""
        if self.matrices is not None:
            self.matrices.close()
            self.sent += self.matrices.sent
        self.matrices = None

    def edges_exist(self, rows: RowArray, codes: RowArray) -> NDArray[np.bool_]:
        """Return, pair by pair, whether a row has an edge (outgoing, if directed) to the vertex with a row code."""
        if self.matrices is None:
            return super().edges_exist(rows, codes)
        # The slots are remapped during an anchor, so the lookup by neighbor does not work.
        degree, slots = self._links.degree[rows], self.graph.adjacency.slots(rows)
        matches = (self._slot_codes(slots) == np.repeat(codes, degree)) & (self._links.outgoing[slots] > 0)
        return np.bincount(np.repeat(np.arange(rows.size), degree), matches, rows.size) > 0

    def _slot_codes(self, slots: RowArray) -> RowArray:
        if self.matrices is None:
            return super()._slot_codes(slots)
        return self._encode(self.matrices.original_neighbors(self._links.neighbor[slots].astype(np.int64)))

    # ------------------------------------------------------------------ read snapshots

    def create_read_snapshot(self, snapshot: int) -> None:
        """Copy the state of this shard for readers, under a number."""
        copied = shallow_copy(self)
        copied.graph, copied.rule, copied.snapshots = self.graph.copy(), self.rule.copy(), {}
        copied.store = self.store.copy(copied.graph)
        self.snapshots[snapshot] = copied

    def query_read_snapshot(self, *columns: Any, snapshot: int, read: str, constants: dict[str, Any]) -> Any:
        """Call a method on a snapshot; return `SNAPSHOT_GONE` if it does not exist."""
        copied = self.snapshots.get(snapshot)
        return SNAPSHOT_GONE if copied is None else getattr(copied, read)(*columns, **constants)

    def drop_read_snapshot(self, snapshot: int) -> None:
        """Drop a snapshot."""
        self.snapshots.pop(snapshot, None)

    # ------------------------------------------------------------------ state, coordinates and vectors

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state of this shard by one that `state` returned; abandon an anchor of the previous state."""
        self.matrices = None
        super().restore(state)

    def set_coordinates(self, learned: dict[str, NDArray[Any]]) -> None:
        """Set the coordinates of the rule, in its saved form."""
        self.rule.restore(learned)

    def set_vectors(self, rows: RowArray, vectors: NDArray[Any]) -> None:
        """Set the vectors of rows; those that have edges become placed."""
        self.store.vectors[rows] = vectors
        self.store.placed[rows] = self._links.degree[rows] > 0

    def traffic(self) -> dict[str, int]:
        """Return the bytes sent to other shards so far, and how many of them were vectors that had to be read."""
        return {"sent": self.sent, "needed": self.needed}

    # ------------------------------------------------------------------ helpers

    @property
    def _kernel_state(self) -> KernelState:
        return self.rule.kernel_state(self.store)

    @property
    def _threaded_step(self) -> ThreadedStep:
        return ThreadedStep(self._kernel_state, self.store.seen, self.context, self.rule.threads)

    def _draw_key(self, depth: int) -> Any:
        return influence.draw_key(self.context.seed, self.context.sequence, depth)

    def _collect_slots(
        self, rows: RowArray, limit: int, depth: int, *, remote_only: bool = False
    ) -> tuple[RowArray, RowArray]:
        """Return the slots that rows read in a round, and the row of each slot; optionally only remote neighbors."""
        slots, owners = np.empty((2, kernels.count_neighbor_reads(self._links, rows, limit)), np.int64)
        key = self._draw_key(depth)
        found = shard_kernels.collect_slots(
            self._links, self.graph.arrival, rows, limit, key, remote_only, slots, owners
        )
        return slots[:found], owners[:found]

    def _request(self, rows: RowArray, limit: int, depth: int) -> list[RowArray]:
        """Create the halo for a step that reads the neighbors of rows; return its requested rows of each shard."""
        slots, _ = self._collect_slots(rows, limit, depth, remote_only=True)
        self._halo = Halo(self.store, slots, self.shards, self.prefetched.end_row)
        self.sent += sum(part.nbytes for part in self._halo.requested)
        return self._halo.requested
