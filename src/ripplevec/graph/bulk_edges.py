"""Addition of the edges of a large batch on several threads, each of which owns some of the rows.

The result is the same as that of `_edge_kernels.apply_edges`, bit for bit; only the places of the blocks in the arena
may differ. All scratch memory is proportional to the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph import _bulk_edge_kernels as kernels
from ripplevec.graph._block_kernels import EDGE_COUNT, LOOP_COUNT, Links, create_allocator
from ripplevec.graph._bulk_edge_kernels import BlockMoves, EdgeBatch
from ripplevec.util.parallel import block_ranges, for_each_block

MAX_BULK_EDGES = 1 << (kernels.CODE_BITS - 1)  # larger batches do not fit into the code of an endpoint
MAX_BUCKETS = 4_096  # more of them do not fit into the fastest cache
TASKS_PER_THREAD = 4  # so that the slowest task does not delay the others
Result = TypeVar("Result")


class BulkInsertion:
    """The addition of the edges of one batch."""

    def __init__(self, batch: EdgeBatch, row_count: int, duplicate_policy: int, directed: bool, threads: int) -> None:
        self.batch, self.duplicate_policy, self.directed, self.threads = batch, duplicate_policy, directed, threads
        self.shift = max(0, (row_count - 1).bit_length() - MAX_BUCKETS.bit_length() + 1)
        self.loops = 0
        buckets = self._sort_into_buckets(((row_count - 1) >> self.shift) + 1)
        self.tasks = _divide_buckets(buckets, TASKS_PER_THREAD * threads)
        self.buckets = buckets

    def plan(self, links: Links) -> BlockMoves:
        """Finish sorting; return the rows that need another block, which `reserve_blocks` allocates."""

        def plan_task(first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
            kernels.sort_buckets(self.endpoints, self.buckets[first : last + 1], self.shift)
            return kernels.plan_moves(links, self.batch.pairs, self._endpoints_of(first, last))

        planned = self._run_tasks(plan_task)
        self.move_bounds = np.cumsum([0, *(rows.size for rows, _ in planned)])
        rows, size_class = (np.concatenate(part) for part in zip(*planned, strict=True))
        return BlockMoves(rows, size_class, np.empty(rows.size, np.int64), np.empty(rows.size, np.int64))

    def apply(self, links: Links, moves: BlockMoves) -> None:
        """Add the edges, after the blocks of `moves` have been reserved."""

        def add_task(first: int, last: int) -> int:
            number = int(np.searchsorted(self.tasks, first))
            part = slice(*self.move_bounds[number : number + 2].tolist())
            own = links._replace(allocator=create_allocator())
            task_moves = BlockMoves._make(column[part] for column in moves)
            endpoints = self._endpoints_of(first, last)
            kernels.add_endpoints(own, self.batch, endpoints, task_moves, self.duplicate_policy, self.directed)
            return int(own.allocator[EDGE_COUNT])

        links.allocator[EDGE_COUNT] += sum(self._run_tasks(add_task))
        links.allocator[LOOP_COUNT] += self.loops
        kernels.free_left_blocks(links, moves)

    def _sort_into_buckets(self, count: int) -> NDArray[np.int64]:
        """Write the endpoints of the batch bucket by bucket; return the bounds of the buckets."""
        operations = len(self.batch.op)
        parts = block_ranges(operations, -(-operations // self.threads))
        counts, loops = np.zeros((len(parts), count), np.int64), [0] * len(parts)

        def count_part(number: int, _: int) -> None:
            loops[number] = kernels.count_endpoints(self.batch, *parts[number], self.shift, counts[number])

        def scatter_part(number: int, _: int) -> None:
            kernels.scatter_endpoints(self.batch, *parts[number], self.shift, offsets[number], self.endpoints)

        for_each_block(count_part, len(parts), size=1, threads=self.threads)
        self.loops = sum(loops)
        ends = np.cumsum(counts.T).reshape(count, len(parts))
        offsets = np.ascontiguousarray((ends - counts.T).T)
        self.endpoints = np.empty(int(ends[-1, -1]), np.int64)
        for_each_block(scatter_part, len(parts), size=1, threads=self.threads)
        return np.append(0, ends[:, -1])

    def _endpoints_of(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the endpoints of the buckets `first` to `last`."""
        return self.endpoints[self.buckets[first] : self.buckets[last]]

    def _run_tasks(self, work: Callable[[int, int], Result]) -> list[Result]:
        """Run work on the buckets of every task, on all threads; return the results in order."""
        results: list[Result | None] = [None] * (len(self.tasks) - 1)

        def run_task(number: int, _: int) -> None:
            results[number] = work(int(self.tasks[number]), int(self.tasks[number + 1]))

        for_each_block(run_task, len(results), size=1, threads=self.threads)
        return results  # type: ignore[return-value]


def _divide_buckets(bounds: NDArray[np.int64], tasks: int) -> NDArray[np.int64]:
    """Return the bounds of tasks, as buckets, so that each has about the same number of endpoints."""
    shares = np.linspace(0, bounds[-1], tasks + 1)[1:-1]
    return np.unique(np.concatenate([[0], np.searchsorted(bounds, shares), [len(bounds) - 1]]))
