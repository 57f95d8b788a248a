"""A shard: what falls to it (`holding.py`), and its part in every step of a batch.

A shard runs the kernels of the engine of one machine. What makes it a shard is that the other end of an edge may be
somewhere else: then its row is asked for before a step reads it (`halo.py`). Such a step comes in three calls: one that
says what is wanted, `give`, and one that goes on with what was given. Between the first and the last nothing is stored
anywhere, so that all shards read what was there before the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.cluster import _kernels as own
from ripplet.cluster.halo import Halo, packed
from ripplet.cluster.holding import NO_ROWS, Holding
from ripplet.cluster.shares import rows_by_shard, shares
from ripplet.cluster.sheets import Sheets
from ripplet.errors import RippletError
from ripplet.events import IdColumn, take
from ripplet.graph import _kernels as edges
from ripplet.graph.adjacency import MAX_ROWS
from ripplet.influence import _kernels as influence
from ripplet.influence.draws import draw_key
from ripplet.parallel import one_blas_thread
from ripplet.parameters import Parameters
from ripplet.rules import _kernels as kernels
from ripplet.rules._gather_kernels import World
from ripplet.rules._kernels import RESAMPLE, UNLIMITED, Turn
from ripplet.rules.ripple import Shared

Rows = NDArray[np.int64]
CHANCE = np.dtype([("row", np.int32), ("number", np.int64), ("weight", np.float32)])  # what influence is sent as


class Shard(Holding):
    """One of several that together are a model."""

    def __init__(self, number: int, shards: int, parameters: Parameters) -> None:
        super().__init__(number, shards, parameters)
        self.sent = self.needed = 0  # bytes that other shards were sent; of these, vectors that they had to read
        self.sheets: Sheets | None = None  # while an anchor is worked out
        self.begin()

    # ------------------------------------------------------------------ the graph changes

    def begin(self) -> None:
        """A batch comes."""
        self.changed = 0  # edges, each counted at one end,
        self.latest: list[Rows] = [NO_ROWS]  # and the number of the end that came later
        self.touched: list[Rows] = [NO_ROWS]  # the ends here of what changed,
        self.numbers: list[Rows] = [np.empty((0, 2), np.int64)]  # the arrival numbers of both ends then,
        self.chance: list[NDArray[np.float64]] = [np.empty(0)]  # and the share of the strength of the end here

    def intern(self, src: IdColumn, dst: IdColumn) -> tuple[Rows, Rows, Rows, Rows]:
        """The rows of names that fall to this shard, and their arrival numbers: −1 for newcomers."""
        rows = [self._intern(names) for names in (src, dst)]
        if self.graph.rows > MAX_ROWS // self.shards:  # a code has to fit into a slot
            raise RippletError(f"one of {self.shards:,} shards holds at most {MAX_ROWS // self.shards:,} vertices")
        self.graph.adjacency.ensure_rows(self.graph.rows)
        self.field.grow()
        return rows[0], self.graph.arrival[rows[0]], rows[1], self.graph.arrival[rows[1]]

    def _intern(self, names: IdColumn) -> Rows:
        half = (len(names) + 1) // 2  # they are interned by pairs: where they are odd, one of them twice
        first, second, _ = self.graph.ids.intern(take(names, slice(half)), take(names, slice(len(names) - half, None)))
        return np.concatenate([first, second[2 * half - len(names) :]])

    def enter(
        self,
        arrived: tuple[Rows, Rows],
        op: NDArray[np.int8],
        ends: Rows,
        weight: NDArray[np.float32],
        way: NDArray[np.int8],
        numbers: Rows,
    ) -> None:
        """Number newcomers (rows, numbers), and change the ends of edges that are here, in order."""
        rows, number = arrived
        self.graph.arrival[rows] = number
        self.field.vectors[rows] = 0  # a halo may have been there
        chance = self.graph.adjacency.apply_ends(*map(np.array, (op, ends, weight, way)))  # see `want_to_admit`
        self._note(ends[:, 0], numbers, chance, way == edges.AWAY)

    def leave(self, row: int) -> list[Rows]:
        """Let a vertex of this shard go (none: −1); its neighbours by shard, as rows there."""
        if row < 0:
            return [NO_ROWS] * self.shards
        adjacency, gone = self.graph.adjacency, np.array([row])
        code = self._codes(adjacency.slots(gone))
        edges.drop_all(adjacency.links, row, adjacency.directed)
        self.graph.arrival[gone] = -1
        self.graph.ids.remove(gone)
        self.field.vectors[gone] = 0
        self.field.placed[gone] = 0
        return rows_by_shard(code, self.shards)

    def bereave(self, *rows: Rows, code: int, number: int) -> None:
        """Take a vertex that has gone, with this code and number, out of the lists of its neighbours here."""
        here = np.concatenate(rows)
        row, shard = divmod(code, self.shards)
        chance, adjacency = np.empty(here.size), self.graph.adjacency
        own.drop_ends(adjacency.links, here, row if shard == self.number else -1 - code, chance, adjacency.directed)
        numbers = np.stack([self.graph.arrival[here], np.full(here.size, number)], axis=1)
        self._note(here, numbers, chance, np.ones(here.size, bool))

    def _note(self, rows: Rows, numbers: Rows, chance: NDArray[np.float64], counted: NDArray[np.bool_]) -> None:
        self.changed += int(np.count_nonzero(chance[counted]))
        self.latest.append(numbers[counted].max(axis=1, initial=-1))
        self.touched.append(rows)
        self.numbers.append(numbers)
        self.chance.append(chance)

    def entered(self, first_new: int) -> tuple[int, int, int]:
        """All of a batch is in the graph, with newcomers from this number on.

        How many edges there are, how many have changed, and how many operations were on edges between the known.
        """
        self.first_new = first_new
        known = np.count_nonzero(np.concatenate(self.latest) < first_new)
        return self.graph.adjacency.edges, self.changed, int(known)

    # ------------------------------------------------------------------ vectors move

    def ripple(self, arrived: Rows, fresh: Rows, numbers: Rows, sequence: int) -> None:
        """The graph is as the batch leaves it; now the vectors follow. `arrived` are the newcomers here, in order.

        `fresh` are the codes of the newcomers of all shards, ascending, and beside them their numbers.
        """
        rule, self.fresh, self.fresh_as = self.rule, fresh, numbers
        self.turn = Turn(rule.seed, sequence, rule.depth, rule.max_reads, self.first_new)
        self.stamp = 2 * sequence
        self.arrived, self.front, self.moved = arrived, NO_ROWS, [NO_ROWS]

    def give(self, *asked: Rows, kind: str) -> list[NDArray[Any]]:
        """What the shards want of rows here."""
        given = [packed(self.field, rows, kind) for rows in asked]
        others = [part for shard, part in enumerate(given) if shard != self.number]
        self.sent += sum(part.nbytes for part in others)
        if kind != "marks":
            asked_for = sum(rows.size for shard, rows in enumerate(asked) if shard != self.number)
            self.needed += asked_for * self.field.vectors[:1].nbytes
        return given

    def want_to_admit(self, rows: Rows) -> list[Rows]:
        """What newcomers read who are admitted together: whoever was there before the batch, or before themselves."""
        self.rows = np.array(rows)  # what comes from elsewhere is read-only: kernels would be compiled for that, too
        slots, readers = self._elsewhere(self.rows, UNLIMITED, 0)
        codes = -1 - self._links.neighbour[slots].astype(np.int64)
        number = np.full(codes.size, -1)
        if self.fresh.size:
            place = np.minimum(np.searchsorted(self.fresh, codes), self.fresh.size - 1)
            number = np.where(self.fresh[place] == codes, self.fresh_as[place], -1)
        return self._want(slots, number < self.graph.arrival[readers])

    def admit(self, *received: NDArray[Any]) -> None:
        """Place newcomers who do not read each other."""
        with self._halo.here(self.field, received):
            self._shared.admit_together(self.rows)

    def settle(self) -> list[Any]:
        """All waves are admitted: see who else is to be placed; what the first of them may read, and how many."""
        world, touched = self._world, np.concatenate(self.touched)
        self.unsettled = kernels.unsettled(world, touched)
        self.newcomers = self.arrived[world.placed[self.arrived] == 1]
        self.ring = self.unsettled[world.placed[self.unsettled] == 0]
        return [*self.want_to_place(), int(self.ring.size)]

    def want_to_place(self) -> list[Rows]:
        """What the next ring reads."""
        return self._want(self._elsewhere(self.ring, UNLIMITED, 0)[0])

    def place(self, *received: NDArray[Any], first: bool) -> list[Rows]:
        """Place a ring; who may be in the next, as rows of each shard. The first ring has to be found yet."""
        stamp = self.stamp - 1
        with self._halo.here(self.field, received) as behind:
            world, seen = self._world, self.field.seen  # a halo may have moved them: not before it is there
            ring = kernels.unplaced_among(world, self.unsettled, seen, stamp) if first else self.ring
            kernels.place_ring(world, ring)
            around = kernels.unplaced_around(world, ring, seen, stamp)
        self.newcomers = np.concatenate([self.newcomers, ring])
        here, there = around[around < behind], self._halo.codes[around[around >= behind] - behind]
        parts = rows_by_shard(there, self.shards)
        parts[self.number] = here
        return parts

    def expect(self, *candidates: Rows) -> int:
        """The next ring: those who have no place yet, each once; how many."""
        seen, stamp = self.field.seen, self.stamp - 1
        own_part = candidates[self.number]  # marked when they were found
        others = np.concatenate([part for shard, part in enumerate(candidates) if shard != self.number] or [NO_ROWS])
        others = others[self.field.placed[others] == 0]
        self.ring = np.concatenate([own_part, others[: influence.mark_new(others, seen, stamp)]])
        return int(self.ring.size)

    def shake(self) -> int:
        """Let go of whoever has lost the last edge, and begin the front with what changed between known vertices."""
        world, seen = self._world, self.field.seen
        self.lost = kernels.release(world, self.unsettled)
        rows, numbers, chance = (np.concatenate(part) for part in (self.touched, self.numbers, self.chance))
        ends = np.stack([chance, np.zeros_like(chance)], axis=1)  # the other end is looked at where it is
        front = kernels.shaken(world, np.stack([rows, rows], axis=1), numbers, ends, self.turn)
        influence.mark_new(self.newcomers.copy(), seen, self.stamp)
        self.front = front[: influence.mark_new(front, seen, self.stamp)]
        self.sources = self.newcomers
        return int(self.front.size)

    def want_to_refresh(self, limit: int, depth: int) -> list[Rows]:
        """What a refresh of the front reads."""
        return self._want(self._elsewhere(self.front, limit, depth + RESAMPLE)[0])

    def refresh(self, *received: NDArray[Any], limit: int, depth: int) -> int:
        """Refresh the front; how many neighbours were looked at."""
        with self._halo.here(self.field, received):
            self._shared.refresh(self.front, limit, depth)
        self.moved.append(self.front)
        return int(kernels.room_for(self._links, self.front, limit))

    def spread(self, limit: int, depth: int) -> list[Any]:
        """The chances that sources and front give in a round, by the shard that draws; last, how many by the front."""
        number = self.number
        parts = [self._slots(self.sources, UNLIMITED, depth), self._slots(self.front, limit, depth)]
        slots, source = (np.concatenate(column) for column in zip(*parts, strict=True))
        code, chances = self._codes(slots), np.empty(slots.size, CHANCE)
        chances["row"], chances["weight"] = code // self.shards, self._links.outgoing[slots]
        chances["number"] = self.graph.arrival[source]
        sent = [chances[places] for places in shares(code % self.shards, self.shards)]
        self.sources = NO_ROWS
        self.sent += sum(part.nbytes for shard, part in enumerate(sent) if shard != number)
        return [*sent, int(kernels.room_for(self._links, self.front, limit))]

    def reached(self, *given: NDArray[Any], depth: int) -> int:
        """Draw the chances that vertices here are given: the next front; how many it has."""
        chances = np.concatenate(given)
        rows, count = chances["row"].astype(np.int64), chances.size
        arrival, strength = self.graph.arrival, self._links.in_strength
        # Each chance is a source with one edge, to a copy of its target: so they are drawn as any others are.
        links = self._links._replace(
            begin=np.arange(count),
            count=np.ones(count, np.int32),
            neighbour=np.arange(count, 2 * count, dtype=np.int32),
            outgoing=np.ascontiguousarray(chances["weight"]),
            in_strength=np.concatenate([np.zeros(count), strength[rows]]),
        )
        seen = np.concatenate([np.zeros(count, np.int64), self.field.seen[rows]])
        numbers = np.concatenate([chances["number"], arrival[rows]])
        key, taken = draw_key(self.turn.seed, self.turn.sequence, depth), np.empty(count, np.int64)
        found = influence.spread(links, numbers, np.arange(count), seen, self.stamp, key, UNLIMITED, taken)
        front = rows[taken[:found] - count]
        self.front = front[: influence.mark_new(front, self.field.seen, self.stamp)]
        return int(self.front.size)

    def want_marks(self) -> list[Rows]:
        """What has to be known of the neighbours of newcomers, to tell who is outdated."""
        return self._want(self._elsewhere(self.newcomers, UNLIMITED, 0)[0])

    def see_outdated(self, *received: NDArray[Any]) -> list[Rows]:
        """Find the newcomers that read what has moved since; what they read now."""
        with self._halo.here(self.field, received):
            marked = self._world, self.newcomers, self.field.seen, self.stamp, self.turn.first_new
            self.front = kernels.outdated(*marked)
        return self._want(self._elsewhere(self.front, UNLIMITED, 0)[0])

    def finish(self, *received: NDArray[Any]) -> Rows:
        """Refresh the outdated; the rows that may have moved in this batch, each once."""
        with self._halo.here(self.field, received):
            self._shared.refresh(self.front, UNLIMITED, 0)
        unplaced = self.arrived[self.field.placed[self.arrived] == 0]
        return np.concatenate([self.newcomers, *self.moved, self.lost, unplaced])

    # ------------------------------------------------------------------ all vectors are corrected

    def open_sheets(self) -> list[Rows]:
        """An anchor begins; what it reads of each shard, whenever it does."""
        self.close_sheets()
        self.sheets = Sheets(self.field, self.rule, self.number, self.shards)
        return self.sheets.wanted

    def on_sheets(self, *columns: Any, step: str, **constants: Any) -> Any:
        """Take a step of it."""
        with one_blas_thread():
            return getattr(self.sheets, step)(*columns, **constants)

    def close_sheets(self) -> None:
        """The anchor is over, or has been given up."""
        if self.sheets is not None:
            self.sheets.close()
            self.sent += self.sheets.sent
        self.sheets = None

    # ------------------------------------------------------------------ what is read meanwhile

    def has_edges(self, rows: Rows, codes: Rows) -> NDArray[np.bool_]:
        """Whether rows have edges (away from them when directed) to vertices with these codes."""
        if self.sheets is None:
            return super().has_edges(rows, codes)
        count, slots = self._links.count[rows], self.graph.adjacency.slots(rows)  # slots cannot be looked up now
        there = (self._codes(slots) == np.repeat(codes, count)) & (self._links.outgoing[slots] > 0)
        return np.bincount(np.repeat(np.arange(rows.size), count), there, rows.size) > 0

    def _codes(self, slots: Rows) -> Rows:
        if self.sheets is None:
            return super()._codes(slots)
        return self._codes_of(self.sheets.as_before(self._links.neighbour[slots].astype(np.int64)))

    # ------------------------------------------------------------------ what it is told

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; an anchor of the state before is over."""
        self.sheets = None
        super().restore(state)

    def learn(self, learned: dict[str, NDArray[Any]]) -> None:
        """Have these coordinates from now on."""
        self.rule.restore(learned)

    def have(self, rows: Rows, vectors: NDArray[Any]) -> None:
        """Have these vectors; whoever has edges is placed."""
        self.field.vectors[rows] = vectors
        self.field.placed[rows] = self._links.count[rows] > 0

    # ------------------------------------------------------------------ inside

    @property
    def _world(self) -> World:
        return self.rule.world(self.field)

    @property
    def _shared(self) -> Shared:
        return Shared(self._world, self.field.seen, self.turn, self.rule.threads)

    def _elsewhere(self, rows: Rows, limit: int, turn: int) -> tuple[Rows, Rows]:
        """The slots that rows read and whose neighbours are on other shards, and which rows these are."""
        return self._slots(rows, limit, turn, elsewhere=True)

    def _slots(self, rows: Rows, limit: int, turn: int, *, elsewhere: bool = False) -> tuple[Rows, Rows]:
        """The slots that rows look at in a turn, and which rows these are."""
        key = draw_key(self.turn.seed, self.turn.sequence, turn)
        slots, owners = np.empty((2, kernels.room_for(self._links, rows, limit)), np.int64)
        found = own.slots_of(self._links, self.graph.arrival, rows, limit, key, elsewhere, slots, owners)
        return slots[:found], owners[:found]

    def _want(self, slots: Rows, needed: NDArray[np.bool_] | None = None) -> list[Rows]:
        self._halo = Halo(self._links, slots, self.shards, needed)
        self.sent += self._halo.codes.nbytes
        return self._halo.parts

    def traffic(self) -> dict[str, int]:
        """What other shards were sent so far, in bytes: all of it, and the vectors that they had to read."""
        return {"sent": self.sent, "needed": self.needed}
