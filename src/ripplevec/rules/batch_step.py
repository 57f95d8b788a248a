"""The batch step of rule `ripple`: how a batch moves vectors after it has changed the graph.

`run_batch_step` is the one description of the step. A backend implements its operations: `ThreadBackend` for a model in
this process, and `cluster.shard_step.ShardBackend` for one on shards. `_kernels.apply_batch` fuses the step into one
kernel, which is faster for small batches. All of them compute the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta
from ripplevec.influence import _kernels as influence
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import UNLIMITED, BatchContext
from ripplevec.util.parallel import for_each_block

MIN_ROWS_PER_TASK = 512  # fewer rows are not worth a task of their own


class StepBackend(Protocol):
    """The operations of a batch step, on all vertices of a model.

    A backend keeps the *frontier*, the vertices to refresh next, and the *newcomers*, the vertices that this batch
    places. All operations compute new rows from the values before the operation, so the result
    does not depend on the order of the rows or on where they are stored. Returned counts cover the whole model.
    """

    context: BatchContext

    def admit(self) -> None:
        """Give each new vertex a row from its placed neighbors that arrived before it."""

    def place(self) -> None:
        """Place unplaced vertices that can be reached from a placed one, in breadth-first order."""

    def unplace_isolated(self) -> None:
        """Unplace vertices that have lost their last edge."""

    def sample_changed_endpoints(self) -> int:
        """Set the frontier to a sample of the endpoints of changed edges between existing vertices; return its size."""

    def count_events(self) -> int:
        """Return the number of arrivals and of changed edges between existing vertices, at least 1."""

    def refresh_frontier(self, limit: int, depth: int) -> int:
        """Refresh the frontier, each vertex from at most `limit` neighbors; return the number of neighbors read.

        `depth` is the number of the round; it selects the random draws.
        """

    def spread_influence(self, limit: int, depth: int) -> tuple[int, int]:
        """Set the frontier to the vertices that the previous frontier or, in round 1, a newcomer influences.

        Each vertex of the previous frontier tests at most `limit` neighbors, a newcomer tests all. Returns the size of
        the new frontier, and the number of neighbors that the previous frontier tested.
        """

    def refresh_newcomers(self) -> None:
        """Refresh newcomers once more, if a neighbor has moved or arrived since they were placed."""


def run_batch_step(backend: StepBackend) -> None:
    """Move the vectors after a batch has changed the graph.

    Newcomers are placed first. Then influence spreads in rounds from changed edges and newcomers. A round refreshes the
    vertices that it has reached, with half of the reads that are left, and tests their neighbors with the rest. The
    rounds end at the depth of the rule, or when no vertex is reached or no read is left.
    """
    backend.admit()
    backend.place()
    backend.unplace_isolated()
    size, depth = backend.sample_changed_endpoints(), 0
    reads_left = backend.context.max_reads * backend.count_events()
    while limit := reads_left // (2 * max(1, size)):
        if size:
            reads_left -= backend.refresh_frontier(limit, depth)
        if depth == backend.context.depth:
            break
        depth += 1
        size, reads = backend.spread_influence(max(1, reads_left // (2 * max(1, size))), depth)
        reads_left -= reads
        if not size:
            break
    backend.refresh_newcomers()


class RowWorker:
    """Kernels of a batch step on rows of this process, divided among threads."""

    def __init__(self, state: KernelState, seen: NDArray[np.int64], context: BatchContext, threads: int) -> None:
        self.state, self.seen, self.context, self.threads = state, seen, context, threads
        self.stamp = 2 * context.sequence  # value in `seen` of rows that this batch has influenced
        self.shortened = 0  # number of shortened rows so far

    def admit_wave(self, rows: RowArray) -> None:
        """Admit new vertices that do not read each other's rows."""
        self._compute(partial(_admit_part, self.state, rows), rows)

    def refresh(self, rows: RowArray, limit: int, depth: int) -> None:
        """Refresh rows together, all from the values before; `depth` (the round) selects the random draws."""
        state = self.state
        key = influence.draw_key(self.context.seed, self.context.sequence, depth + kernels.RESAMPLE)
        values = np.empty((rows.size, state.vectors.shape[1]), state.vectors.dtype)

        def compute(first: int, last: int) -> int:
            return int(kernels.compute_refresh(state, rows[first:last], limit, key, values[first:last]))

        def write(first: int, last: int) -> None:
            kernels.write_rows(state, rows[first:last], values[first:last])

        self._compute(compute, rows)
        self._run(write, rows)

    def spread(self, sources: RowArray, limit: int, depth: int) -> RowArray:
        """Return the rows that sources influence in one round, possibly repeated."""
        key = influence.draw_key(self.context.seed, self.context.sequence, depth)

        def spread_part(state: KernelState, part: RowArray) -> RowArray:
            reached = np.empty(kernels.count_neighbor_reads(state.links, part, limit), np.int64)
            count = influence.spread_round(state.links, state.arrival, part, self.seen, self.stamp, key, limit, reached)
            return reached[:count]

        return self.collect(spread_part, sources)

    def collect(self, search: Callable[..., RowArray], rows: RowArray, *arguments: Any) -> RowArray:
        """Run a search over parts of the rows on all threads; return the results in the order of the rows."""
        found: dict[int, RowArray] = {}

        def work(first: int, last: int) -> None:
            found[first] = search(self.state, rows[first:last], *arguments)

        self._run(work, rows)
        return np.concatenate([rows[:0], *(found[first] for first in sorted(found))])

    def mark_seen(self, rows: RowArray) -> RowArray:
        """Mark rows as influenced by this batch; return those that were not marked before, each once."""
        return rows[: influence.mark_seen(rows, self.seen, self.stamp)]

    def _compute(self, work: Callable[[int, int], int], rows: RowArray) -> None:
        """Run work that computes rows on all threads, and count the rows that it shortened."""
        shortened: list[int] = []
        self._run(lambda first, last: shortened.append(work(first, last)), rows)
        self.shortened += sum(shortened)

    def _run(self, work: Callable[[int, int], None], rows: RowArray) -> None:
        """Run work on all threads, in about four tasks per thread, so that the slowest does not delay the others."""
        size = max(MIN_ROWS_PER_TASK, rows.size // (4 * self.threads))
        for_each_block(work, rows.size, size=size, threads=self.threads)


def _admit_part(state: KernelState, rows: RowArray, first: int, last: int) -> int:
    """Admit rows[first:last]; return the number of shortened rows."""
    return int(kernels.admit(state, rows[first:last]))


class ThreadBackend:
    """The batch step of a model in this process."""

    def __init__(self, worker: RowWorker, delta: GraphDelta) -> None:
        self.worker, self.delta, self.context, self.state = worker, delta, worker.context, worker.state
        self.newcomers = self.sources = self.frontier = self.isolated_rows = delta.arrived[:0]
        self.refreshed: list[RowArray] = []  # the frontier of each round
        self.shortened = 0  # rows shortened, without the second refresh of newcomers

    def admit(self) -> None:
        """Admit new vertices wave by wave, each after the new vertices that it reads."""
        arrived = self.delta.arrived
        wave = kernels.admission_waves(self.state, arrived, self.context.first_new)
        order = np.argsort(wave, kind="stable")
        for rows in np.split(arrived[order], np.flatnonzero(np.diff(wave[order])) + 1):
            self.worker.admit_wave(rows)

    def place(self) -> None:
        """Place reachable vertices, frontier by frontier."""
        worker = self.worker
        self.touched = worker.collect(kernels.find_placement_candidates, self.delta.pairs.reshape(-1))
        self.newcomers, shortened = kernels.place_reachable(
            self.state, self.delta.arrived, self.touched, worker.seen, worker.stamp - 1
        )
        worker.shortened += shortened
        self.sources = self.newcomers

    def unplace_isolated(self) -> None:
        """Unplace vertices that have lost their last edge."""
        self.isolated_rows = kernels.unplace_isolated(self.state, self.touched)

    def sample_changed_endpoints(self) -> int:
        """Sample endpoints of changed edges; newcomers count as influenced from now on."""
        delta = self.delta
        sampled = kernels.sample_changed_endpoints(
            self.state, delta.pairs, delta.arrival_numbers, delta.changed_share, self.context
        )
        self.worker.mark_seen(self.newcomers.copy())
        self.frontier = self.worker.mark_seen(sampled)
        return self.frontier.size

    def count_events(self) -> int:
        """Count arrivals and changed edges between existing vertices."""
        return int(kernels.count_events(self.delta.arrived, self.delta.arrival_numbers, self.context.first_new))

    def refresh_frontier(self, limit: int, depth: int) -> int:
        """Refresh the frontier."""
        self.worker.refresh(self.frontier, limit, depth)
        self.refreshed.append(self.frontier)
        return int(kernels.count_neighbor_reads(self.state.links, self.frontier, limit))

    def spread_influence(self, limit: int, depth: int) -> tuple[int, int]:
        """Spread influence from the newcomers (in round 1) and from the frontier."""
        worker, previous = self.worker, self.frontier
        reached = worker.spread(self.sources, UNLIMITED, depth), worker.spread(previous, limit, depth)
        self.frontier, self.sources = worker.mark_seen(np.concatenate(reached)), self.sources[:0]
        return self.frontier.size, int(kernels.count_neighbor_reads(self.state.links, previous, limit))

    def refresh_newcomers(self) -> None:
        """Refresh newcomers with a neighbor that has moved or arrived in this batch."""
        worker = self.worker
        self.shortened = worker.shortened  # a newcomer counts when it is placed, not again here
        rows = worker.collect(
            kernels.find_second_refresh_rows, self.newcomers, worker.seen, worker.stamp, self.context.first_new
        )
        worker.refresh(rows, UNLIMITED, 0)

    def moved_rows(self) -> RowArray:
        """Return the rows that may have moved, each once."""
        arrived = self.delta.arrived
        unplaced = arrived[self.state.placed[arrived] == 0]
        return np.concatenate([self.newcomers, *self.refreshed, self.isolated_rows, unplaced])
