"""A shard: what falls to it (`holding.py`, `entering.py`), and its part in every step by which vectors move.

A shard runs the kernels of the engine of one machine. What makes it a shard is that the other end of an edge may be
somewhere else: then its row has to be here, behind the others (`halo.py`), before a step reads it.

Both ends of an edge know of it. So whoever is looked at by newcomers of another shard is shown to that shard, unasked,
as soon as it has a place, and again when it has moved. A front, which may be anywhere, has to ask: its step comes in
three calls, one that says what is wanted, `give`, and one that goes on with what was given. From the first to the last
nothing is stored anywhere, so that all shards read what was there before the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy as shallow_copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as own
from ripplevec.cluster.halo import Halo, PrefetchedHalo, PushedRows, packed, show
from ripplevec.cluster.routing import split_positions, split_rows
from ripplevec.cluster.shard_graph import NO_ROWS, ShardGraph
from ripplevec.cluster.shard_matrices import ShardMatrices
from ripplevec.influence import _kernels as influence
from ripplevec.influence._kernels import draw_key
from ripplevec.parameters import Parameters
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import RESAMPLE, UNLIMITED, BatchContext
from ripplevec.rules.ripple import ThreadedStep
from ripplevec.util.parallel import limit_blas_to_one_thread

Rows = NDArray[np.int64]
SNAPSHOT_GONE = "not held"  # answered where a copy is asked for that has gone: to fail would be to give up the shard
CHANCE = np.dtype([("row", np.int32), ("number", np.int64), ("weight", np.float32)])  # what influence is sent as


class Shard(ShardGraph):
    """One of several that together are a model."""

    def __init__(self, number: int, shards: int, parameters: Parameters) -> None:
        super().__init__(number, shards, parameters)
        self.sent = self.needed = 0  # bytes that other shards were sent; of these, vectors that they had to read
        self.matrices: ShardMatrices | None = None  # while an anchor is worked out
        self.held: dict[int, Shard] = {}  # copies of what was here before a change, by number

    # ------------------------------------------------------------------ vectors move

    def begin_batch(
        self, arrived: Rows, wave: Rows, turn: Rows, *, first_new: int, gone: Rows, waves: int, sequence: int
    ) -> list[Any]:
        """The graph is as the batch leaves it; now the vectors follow. `arrived` are the newcomers here, in order.

        They are admitted in so many waves, and by turns in each. `gone` are the numbers of those who are no longer
        there. Answered is what is shown to each shard of what was there before, what `admit` says last, and the counts.
        """
        counts = self._counts(first_new)
        rule, order = self.rule, np.lexsort((turn, wave))
        self.turn = BatchContext(rule.seed, sequence, rule.depth, rule.max_reads, self.first_new)
        self.stamp, self.waves = 2 * sequence, waves
        self.arrived, self.fronts, self.moved = np.array(arrived), dict[int, Rows](), [NO_ROWS]
        self.shortened = 0
        self.by_wave = np.split(self.arrived[order], np.searchsorted(wave[order], np.arange(1, waves)))
        self.turns = np.split(turn[order], np.searchsorted(wave[order], np.arange(1, waves)))
        self.all_ends, self.all_numbers = np.concatenate(self.touched), np.concatenate(self.numbers)
        new = self.all_numbers[:, 1] >= first_new
        if gone.size:
            new &= ~np.isin(self.all_numbers, gone).any(axis=1)
        self.new_ends, self.new_numbers = self.all_ends[new], self.all_numbers[new]
        self._meet()
        return [*self._after_wave(-1), counts]

    def _meet(self) -> None:
        """See whom newcomers here know elsewhere, and who is known here to newcomers elsewhere."""
        slots = [self._elsewhere(rows, UNLIMITED, 0)[0] for rows in self.by_wave]
        self.cuts = np.cumsum([0, *(part.size for part in slots)])
        self.prefetched = PrefetchedHalo(self.store, np.concatenate([NO_ROWS, *slots]), self.shards, self.graph.row_count)
        known = (self.all_numbers[:, 0] >= self.first_new) & (self.all_ends[:, 1] < 0)
        self.prefetched.know(-1 - self.all_ends[known, 1], self.all_numbers[known, 1])
        row, other = self.new_ends[self.new_ends[:, 1] < 0].T
        _, looked_at, _ = own.index_distinct(row * self.shards + (-1 - other) % self.shards)
        self.waiting = split_rows(looked_at, self.shards)  # to be shown as soon as they have a place
        self.shown: list[list[Rows]] = [[NO_ROWS] for _ in self.waiting]

    def admit_wave(self, *shown: PushedRows, wave: int) -> list[Any]:
        """Place newcomers, turn by turn; what is shown of them, and last, once all waves are admitted, who is left."""
        self.prefetched.take_in(shown)
        rows, turns, shared = self.by_wave[wave], self.turns[wave], self._shared
        with self.prefetched.here(slice(*self.cuts[wave : wave + 2])):
            for together in np.split(rows, np.flatnonzero(np.diff(turns)) + 1):
                shared.admit_wave(together)
        self.shortened += shared.shortened
        return self._after_wave(wave)

    def _after_wave(self, wave: int) -> list[Any]:
        return [*self._show(), self._settle() if wave + 1 == self.waves else 0]

    def _show(self, again: Sequence[Rows] = ()) -> list[PushedRows]:
        """Whoever has come to have a place, to every shard whose newcomers look at it; and some others once more."""
        answer = []
        for shard, rows in enumerate(self.waiting):
            there = self.store.placed[rows] == 1
            self.waiting[shard] = rows[~there]
            self.shown[shard].append(rows[there])
            answer.append(show(self.store, np.concatenate([rows[there], again[shard]]) if again else rows[there]))
        self.sent += sum(column.nbytes for shown in answer for column in shown)
        self.needed += sum(vectors.nbytes for _, vectors in answer)
        return answer

    def push_moved_rows(self) -> list[PushedRows]:
        """Whoever was known and has moved, or has come to have a place, since it was shown."""
        before = [np.concatenate(rows) for rows in self.shown]
        return self._show([rows[self._known_and_moved(rows)] for rows in before])

    def _known_and_moved(self, rows: Rows) -> NDArray[np.bool_]:
        return (self.store.seen[rows] == self.stamp) & (self.graph.arrival[rows] < self.first_new)

    def pull_rows(self, *asked: Rows, kind: str) -> list[NDArray[Any]]:
        """What the shards want of rows here."""
        given = [packed(self.store, rows, kind) for rows in asked]
        self.sent += sum(part.nbytes for part in given)
        self.needed += sum(rows.size for rows in asked) * self.store.vectors[:1].nbytes
        return given

    def _settle(self) -> int:
        """All waves are admitted: see who else is to be placed; how many."""
        state = self._kernel_state
        self.unsettled = kernels.find_placement_candidates(state, self.all_ends[:, 0].copy())
        self.newcomers = self.arrived[state.placed[self.arrived] == 1]
        self.ring = self.unsettled[state.placed[self.unsettled] == 0]
        return int(self.ring.size)

    def request_frontier_rows(self) -> list[Rows]:
        """What the next ring reads."""
        return self._want(self.ring, UNLIMITED, 0)

    def place_frontier(self, *received: NDArray[Any], first: bool) -> list[Rows]:
        """Place a ring; who may be in the next, as rows of each shard. The first ring has to be found yet."""
        stamp, halo = self.stamp - 1, self._halo
        halo.receive(received)
        with halo.here():
            state, seen = self._kernel_state, self.store.seen
            ring = kernels.find_placeable(state, self.unsettled, seen, stamp) if first else self.ring
            self.shortened += kernels.place_frontier(state, ring)
            around = kernels.find_unplaced_neighbors(state, ring, seen, stamp)
        halo.close()
        self.newcomers = np.concatenate([self.newcomers, ring])
        parts = split_rows(halo.codes[around[around >= halo.first] - halo.first], self.shards)
        parts[self.number] = around[around < halo.first]
        return parts

    def set_frontier(self, *candidates: Rows) -> int:
        """The next ring: those who have no place yet, each once; how many."""
        seen, stamp = self.store.seen, self.stamp - 1
        own_part = candidates[self.number]  # marked when they were found
        others = np.concatenate([part for shard, part in enumerate(candidates) if shard != self.number] or [NO_ROWS])
        others = others[self.store.placed[others] == 0]
        self.ring = np.concatenate([own_part, others[: influence.mark_seen(others, seen, stamp)]])
        return int(self.ring.size)

    def begin_refresh(self, *shown: PushedRows) -> list[Any]:
        """Let go of whoever has lost the last edge, and begin the front with what changed between known vertices.

        Where that is nobody, and it hardly ever is anybody, the next front is begun: whom newcomers influence is seen
        from here.
        """
        self.prefetched.take_in(shown)
        state, seen = self._kernel_state, self.store.seen
        self.lost = kernels.unplace_isolated(state, self.unsettled)
        chance = np.concatenate(self.chance)
        shares_here = np.stack([chance, np.zeros_like(chance)], axis=1)  # the other end is looked at where it is
        pairs = np.repeat(self.all_ends[:, :1], 2, axis=1)
        front = kernels.sample_changed_endpoints(state, pairs, self.all_numbers, shares_here, self.turn)
        influence.mark_seen(self.newcomers.copy(), seen, self.stamp)
        self.sources = self.newcomers[self.graph.arrival[self.newcomers] < self.first_new]
        if front.size or self.turn.depth == 0:
            return self._begin_front(front, 0)
        return self._begin_front(self._influenced(), 1)

    def _begin_front(self, reached: Rows, depth: int) -> list[Any]:
        """Have those in a front whom nobody has reached yet; what it reads if it may read everything.

        Last come its depth, its size, and how many neighbors one in it has at the most.
        """
        new = reached[: influence.mark_seen(reached, self.store.seen, self.stamp)]
        front = self.fronts[depth] = np.concatenate([self.fronts.get(depth, NO_ROWS), new])
        most = int(self._links.degree[front].max(initial=0))
        bounded = most <= self.turn.max_reads
        wanted = self.request_refresh_rows(UNLIMITED, depth) if bounded else [NO_ROWS] * self.shards
        return [*wanted, (depth, front.size, most if bounded else UNLIMITED)]

    def request_refresh_rows(self, limit: int, depth: int) -> list[Rows]:
        """What a refresh of a front reads."""
        return self._want(self.fronts.get(depth, NO_ROWS), limit, depth + RESAMPLE)

    def refresh(self, *received: NDArray[Any], limit: int, depth: int, last: bool) -> list[Any]:
        """Refresh a front; what is shown of it once it was the last, and how many neighbors were looked at."""
        front = self.fronts.get(depth, NO_ROWS)
        self._halo.receive(received)
        with self._halo.here():
            shared = self._shared
            shared.refresh(front, limit, depth)
        self.shortened += shared.shortened
        self._halo.close()
        self.moved.append(front)
        shown = self.push_moved_rows() if last else [None] * self.shards
        return [*shown, int(kernels.count_neighbor_reads(self._links, front, limit))]

    def send_influence(self, limit: int, depth: int) -> list[Any]:
        """The chances that the front before gives in a round, by the shard that draws; last, how many these are.

        And those of whoever has been placed; the chances that newcomers give are drawn unasked.
        """
        front = self.fronts.get(depth - 1, NO_ROWS)
        parts = [self._slots(self.sources, UNLIMITED, depth), self._slots(front, limit, depth)]
        slots, source = (np.concatenate(column) for column in zip(*parts, strict=True))
        code, chances = self._codes(slots), np.empty(slots.size, CHANCE)
        chances["row"], chances["weight"] = code // self.shards, self._links.outgoing[slots]
        chances["number"] = self.graph.arrival[source]
        sent = [chances[places] for places in split_positions(code % self.shards, self.shards)]
        self.sources = NO_ROWS
        self.sent += sum(part.nbytes for shard, part in enumerate(sent) if shard != self.number)
        return [*sent, int(kernels.count_neighbor_reads(self._links, front, limit))]

    def draw_influenced(self, *given: NDArray[Any], depth: int) -> list[Any]:
        """Draw the chances that vertices here are given: the next front."""
        reached = [NO_ROWS]
        if given:
            reached.append(self._drawn(np.concatenate(given), depth))
        if depth == 1 and depth not in self.fronts:
            reached.append(self._influenced())
        return self._begin_front(np.concatenate(reached), depth)

    def _drawn(self, chances: NDArray[Any], depth: int) -> Rows:
        rows, count, key = chances["row"].astype(np.int64), chances.size, self._key(depth)
        # Each chance is a source with one edge, to a copy of its target: so they are drawn as any others are.
        links = self._links._replace(
            begin=np.arange(count),
            degree=np.ones(count, np.int32),
            neighbor=np.arange(count, 2 * count, dtype=np.int32),
            outgoing=np.ascontiguousarray(chances["weight"]),
            in_strength=np.concatenate([np.zeros(count), self._links.in_strength[rows]]),
        )
        seen = np.concatenate([np.zeros(count, np.int64), self.store.seen[rows]])
        numbers = np.concatenate([chances["number"], self.graph.arrival[rows]])
        taken = np.empty(count, np.int64)
        found = influence.spread_round(links, numbers, np.arange(count), seen, self.stamp, key, UNLIMITED, taken)
        return rows[taken[:found] - count]

    def _influenced(self) -> Rows:
        """Whom newcomers influence, in the first round: known from the edges that came with them."""
        store, reached = self.store, np.empty(len(self.new_ends), np.int64)
        marks = store.placed, store.seen, self.stamp
        return reached[: own.sample_influenced(self._links, *marks, self.new_ends, self.new_numbers, self._key(1), reached)]

    def _key(self, depth: int) -> Any:
        return draw_key(self.turn.seed, self.turn.sequence, depth)

    def request_late_rows(self) -> list[Rows]:
        """What those read who were known before and are placed now: nobody shows it to them."""
        return self._want(self.newcomers[self.graph.arrival[self.newcomers] < self.first_new], UNLIMITED, 0)

    def finish_batch(self, *received: Any) -> tuple[Rows, int]:
        """Refresh newcomers that read what has moved since they were admitted.

        Received is what is shown, and behind that, if anybody had wanted it, what was given. Returns all rows that may
        have moved, each once, and how many were shortened.
        """
        shown, given = received[: self.shards], received[self.shards :]
        known = (
            self.graph.arrival[self.newcomers] < self.first_new
        )  # placed now: nobody knows whether they are outdated
        self.prefetched.take_in(shown, self.stamp)
        if given:
            self._halo.receive(given)
        with self.prefetched.here(), self._halo.here() if given else nullcontext():
            new = self.newcomers[~known]
            outdated = kernels.find_second_refresh_rows(self._kernel_state, new, self.store.seen, self.stamp, self.first_new)
            self._shared.refresh(np.concatenate([outdated, self.newcomers[known]]), UNLIMITED, 0)
        if given:
            self._halo.close()
        self.prefetched.close()
        unplaced = self.arrived[self.store.placed[self.arrived] == 0]
        moved = np.concatenate([self.newcomers, *self.moved, self.lost, unplaced])
        self.begin()
        return moved, self.shortened

    # ------------------------------------------------------------------ all vectors are corrected

    def open_matrices(self) -> list[Rows]:
        """An anchor begins; what it reads of each shard, whenever it does."""
        self.close_matrices()
        self.matrices = ShardMatrices(self.store, self.rule, self.number, self.shards)
        return self.matrices.wanted

    def run_matrix_step(self, *columns: Any, step: str, **constants: Any) -> Any:
        """Take a step of it."""
        with limit_blas_to_one_thread():
            return getattr(self.matrices, step)(*columns, **constants)

    def close_matrices(self) -> None:
        """The anchor is over, or has been given up."""
        if self.matrices is not None:
            self.matrices.close()
            self.sent += self.matrices.sent
        self.matrices = None

    # ------------------------------------------------------------------ what is read meanwhile

    def has_edges(self, rows: Rows, codes: Rows) -> NDArray[np.bool_]:
        """Whether rows have edges (away from them when directed) to vertices with these codes."""
        if self.matrices is None:
            return super().has_edges(rows, codes)
        count, slots = self._links.degree[rows], self.graph.adjacency.slots(rows)  # slots cannot be looked up now
        there = (self._codes(slots) == np.repeat(codes, count)) & (self._links.outgoing[slots] > 0)
        return np.bincount(np.repeat(np.arange(rows.size), count), there, rows.size) > 0

    def _codes(self, slots: Rows) -> Rows:
        if self.matrices is None:
            return super()._codes(slots)
        return self._codes_of(self.matrices.as_before(self._links.neighbor[slots].astype(np.int64)))

    def create_read_snapshot(self, copy: int) -> None:
        """Keep a copy of what is here, under a number, for readers."""
        held = shallow_copy(self)
        held.graph, held.rule, held.held = self.graph.copy(), self.rule.copy(), {}
        held.store = self.store.copy(held.graph)
        self.held[copy] = held

    def query_read_snapshot(self, *columns: Any, copy: int, question: str, constants: dict[str, Any]) -> Any:
        """Ask a copy."""
        held = self.held.get(copy)
        return SNAPSHOT_GONE if held is None else getattr(held, question)(*columns, **constants)

    def drop_read_snapshot(self, copy: int) -> None:
        """Drop a copy."""
        self.held.pop(copy, None)

    # ------------------------------------------------------------------ what it is told

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; an anchor of the state before is over."""
        self.matrices = None
        super().restore(state)

    def set_coordinates(self, learned: dict[str, NDArray[Any]]) -> None:
        """Have these coordinates from now on."""
        self.rule.restore(learned)

    def set_vectors(self, rows: Rows, vectors: NDArray[Any]) -> None:
        """Have these vectors; whoever has edges is placed."""
        self.store.vectors[rows] = vectors
        self.store.placed[rows] = self._links.degree[rows] > 0

    # ------------------------------------------------------------------ inside

    @property
    def _kernel_state(self) -> KernelState:
        return self.rule.kernel_state(self.store)

    @property
    def _shared(self) -> ThreadedStep:
        return ThreadedStep(self._kernel_state, self.store.seen, self.turn, self.rule.threads)

    def _elsewhere(self, rows: Rows, limit: int, turn: int) -> tuple[Rows, Rows]:
        """The slots that rows read and whose neighbors are on other shards, and which rows these are."""
        return self._slots(rows, limit, turn, elsewhere=True)

    def _slots(self, rows: Rows, limit: int, turn: int, *, elsewhere: bool = False) -> tuple[Rows, Rows]:
        """The slots that rows look at in a turn, and which rows these are."""
        slots, owners = np.empty((2, kernels.count_neighbor_reads(self._links, rows, limit)), np.int64)
        found = own.collect_slots(self._links, self.graph.arrival, rows, limit, self._key(turn), elsewhere, slots, owners)
        return slots[:found], owners[:found]

    def _want(self, rows: Rows, limit: int, turn: int) -> list[Rows]:
        """What rows read of each shard."""
        slots, _ = self._elsewhere(rows, limit, turn)
        self._halo = Halo(self.store, slots, self.shards, self.prefetched.end)
        self.sent += sum(part.nbytes for part in self._halo.parts)
        return self._halo.parts

    def traffic(self) -> dict[str, int]:
        """What other shards were sent so far, in bytes: all of it, and the vectors that they had to read."""
        return {"sent": self.sent, "needed": self.needed}
