"""Rule `ripple`: admit newcomers, then refresh whom they influence, by one local step of the views' own operator."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import IdColumn
from ripplevec.graph.graph import Delta, ones
from ripplevec.graph.ids import names_for_kernels
from ripplevec.influence import _kernels as influence
from ripplevec.influence.draws import draw_key
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._arrival_kernel import Stage, arrive, set_stage
from ripplevec.rules._gather_kernels import World
from ripplevec.rules._kernels import UNLIMITED, Turn
from ripplevec.rules.anchor import (
    Copier,
    Correction,
    CorrectionError,
    Solver,
    TakeOver,
    Touched,
    apart,
    carried,
    corrected,
    fill,
    from_nothing,
    from_others,
    held,
    holds_spectrum,
    is_finite,
    orthogonality_error,
    per_unit,
    side_by_side,
    turn,
    write,
)
from ripplevec.rules.vector_store import Field
from ripplevec.util.parallel import for_blocks
from ripplevec.views._kernels import Serving
from ripplevec.views.aligned_matrix import copied
from ripplevec.views.base import Basis, Progress, View
from ripplevec.views.coordinates import Space, as_they_are
from ripplevec.views.graph_stats import Traits
from ripplevec.views.operator_factory import Ground

_log = logging.getLogger("ripplevec.rules")

Rows = NDArray[np.int64]
BLOCK = 512  # rows a thread takes at a time at least
_NOTHING_STAGED: tuple[Any, tuple[Any, ...]] = None, (None, None, None)
WORTH_SHARING = 2_048  # batches that change fewer edges than this are quicker on one thread


class RippleRule:
    """Vectors made of views, refreshed where an arrival has influence, corrected as a whole by anchors."""

    one_by_one: ClassVar[bool] = False
    precision: type[np.floating[Any]] = np.float32

    def __init__(
        self,
        dim: int,
        views: Callable[[Traits], Sequence[View]],
        *,
        normalize: bool,
        depth: int | None,
        seed: int,
        max_reads: int,
        threads: int,
        precision: type[np.floating[Any]] = np.float32,
        directory: str | PathLike[str] | None = None,
    ) -> None:
        self.directory = directory  # where the vectors lie, if not in memory
        self.dim, self.views, self.normalize, self.precision = dim, views, normalize, precision
        self.traits = Traits()  # at the start, which is when the views are chosen
        self.space = self._new_space(self.traits)
        self.depth = -1 if depth is None else depth
        self.seed = seed
        self.max_reads = max_reads
        self.threads = threads
        self.shortened = 0
        self._world: World | None = None
        self._unit = 1.0  # of the weights that its frame was made for
        self._staged = _NOTHING_STAGED

    @property
    def ready(self) -> bool:
        """Whether there has been a start."""
        return self.space.ready

    @property
    def serving(self) -> Serving:
        """View by view, or as they are where vectors are not normalized."""
        return self.space.serving if self.space.normalize else as_they_are(self.space.dim)

    def world(self, field: Field) -> World:
        """The state as the kernels see it."""
        world, links = self._world, field.graph.adjacency.links
        if world is None or world.links is not links or world.vectors is not field.cells:
            world = self._world = _world(field, self.space, field.placed, field.cells)
            self._staged = _NOTHING_STAGED  # or it would keep arrays alive that have been replaced
            self._unit = field.graph.adjacency.scale.unit
        elif self._unit != field.graph.adjacency.scale.unit:
            self._unit = field.graph.adjacency.scale.unit
            self.space.set_unit(world.frame, self._unit)
        return world

    def start(self, field: Field, progress: Progress | None = None) -> None:
        """Embed the graph as it is from nothing, with the views that suit it."""
        adjacency, order = field.graph.edges_in_order()
        rows = field.graph.rows if order is None else order.size
        traits, space, bases = self.first_bases(adjacency, rows, progress)
        write(field, space, bases, order)
        self.take(traits, space)

    def first_bases(
        self, adjacency: Ground, rows: int, progress: Progress | None = None
    ) -> tuple[Traits, Space, list[Basis]]:
        """What a start makes of a graph: the traits its views go by, their coordinates, bases."""
        traits = Traits().now(adjacency, rows)
        space = self._new_space(traits)
        bases = per_unit(adjacency, from_nothing(space, adjacency, rows, self.threads, progress))
        space.settle(bases)
        return traits, space, bases

    def take(self, traits: Traits, space: Space) -> None:
        """Have these coordinates from now on, and the traits that their views were chosen by."""
        self.traits, self.space, self._world = traits, space, None

    def anchor(self, field: Field, sequence: int, threshold: float) -> Rows:
        """Correct all vectors, turned so that on the whole they are served as before; the rows that moved further."""
        before = field.vectors[: field.graph.rows]
        traits, space, bases = self._bases(self.space, self.traits, field.graph.adjacency, before, sequence)
        turn(self.space, space, bases, before, self.threads)
        after = partial(side_by_side, bases)
        moved = apart(self.space, before, space, after, threshold, self.threads)
        write(field, space, bases)
        self.take(traits, space)
        return moved

    def next_bases(
        self, adjacency: Ground, vectors: NDArray[Any], sequence: int, copy: Copier, solve: Solver
    ) -> tuple[Traits, Space, list[Basis]]:
        """What an anchor makes of the rows as they are, wherever these are; see `_bases`."""
        return self._bases(self.space, self.traits, adjacency, vectors, sequence, copy, solve)

    def _bases(
        self,
        old: Space,
        then: Traits,
        adjacency: Ground,
        vectors: NDArray[Any],
        sequence: int,
        copy: Copier | None = None,
        solve: Solver = from_nothing,
    ) -> tuple[Traits, Space, list[Basis]]:
        """What an anchor makes of these rows: the traits its views go by, coordinates with nothing learned yet, bases.

        A graph that has become dense since its start gets the views of a dense graph now, once. A result that is not
        finite, or that has lost much of the spectrum, is replaced by a solution from nothing; where that is no good
        either, a CorrectionError says so, and the vectors are to stay as they are.
        """
        now, seed = then.now(adjacency, len(vectors)), self.seed + sequence
        copy = copy or partial(copied, directory=self.directory)
        if len(self.views(now)) > len(self.views(then)):
            traits, space = now, self._new_space(now)
            bases = from_others(space, adjacency, vectors, seed, self.threads, copy)
            good = all(map(is_finite, bases))
        else:
            traits, space = then._replace(bipartite=now.bipartite), old.successor()
            bases = corrected(old, adjacency, vectors, seed, self.threads, copy)
            good = holds_spectrum(old, bases)
        if not good:
            _log.info("correction solved afresh, its result lost part of the spectrum: sequence=%d", sequence)
            del bases  # so that there is memory for others
            bases = solve(space, adjacency, len(vectors), self.threads)
        if not all(map(is_finite, bases)) or (held(old.mu) > 0 and not any(held(basis.mu) > 0 for basis in bases)):
            raise CorrectionError(f"no usable vectors were found for the graph of batch {sequence}")
        return traits, space, per_unit(adjacency, bases)

    def correction(self, field: Field, sequence: int) -> Callable[[], Correction]:
        """An anchor of the state as it is now, to be worked out on a copy by whoever calls it, and taken over later."""
        graph, old, then, rows = field.graph, self.space, self.traits, field.empty()
        adjacency, vectors = graph.adjacency.copy(), field.vectors[: graph.rows].copy()
        edged, next_arrival = adjacency.links.count[: len(vectors)] > 0, graph.next_arrival

        def work_out() -> Correction:
            traits, space, bases = self._bases(old, then, adjacency, vectors, sequence)
            turn(old, space, bases, vectors, self.threads)
            fill(rows.grow(len(vectors)), space, bases)
            return Correction(space, traits, rows, adjacency.arrival[: len(vectors)].copy(), edged, next_arrival)

        return work_out

    def correction_from(self, state: dict[str, NDArray[Any]], field: Field) -> Correction:
        """The correction whose `state` this is."""
        traits, rows = Traits.of(state), field.filled(state["rows"])
        return Correction(
            self.space_from(state), traits, rows, state["arrival"], state["edged"], int(state["next_arrival"])
        )

    def prepare(
        self, field: Field, correction: Correction, touched: Sequence[Touched], sequence: int, threshold: float
    ) -> TakeOver:
        """Carry over what was worked out for an earlier state to the state as it is, which is only read.

        Vertices that have come since are placed in the new coordinates, and rows that were touched since are refreshed
        in them, one list after the other. The rows of the correction are used up.
        """
        size, space = field.graph.rows, correction.space
        placed, waiting = carried(field, correction)
        after = correction.rows.array
        world = _world(field, space, placed, field.as_cells(after))
        seen = np.zeros((placed.size, 2), np.int64)[:, 0]  # a column, as the kernels know it
        shared = Shared(world, seen, self._turn(sequence, correction.next_arrival), self.threads)
        kernels.place(world, waiting[:0], waiting, seen, -1)
        for number, (rows, arrival) in enumerate(touched):
            kept = rows[(field.graph.arrival[rows] == arrival) & (placed[rows] == 1)]
            shared.refresh(kept, self.max_reads, number)
        moved = apart(self.space, field.vectors[:size], space, lambda a, b: after[a:b], threshold, self.threads)
        return TakeOver(space, correction.traits, correction.rows, placed, moved)

    def adopt(self, field: Field, prepared: TakeOver) -> None:
        """Correct all vectors by what was prepared for the state as it is."""
        field.take(prepared.rows)
        field.placed[:] = prepared.placed
        self.take(prepared.traits, prepared.space)

    def apply(self, field: Field, delta: Delta, sequence: int) -> Rows:
        """Let a batch that has changed the graph move the vectors; the rows that may have moved, each once."""
        self.shortened = 0
        if not self.ready:
            return delta.arrived
        world = self.world(field)
        arrived, graph = delta.arrived, field.graph  # newcomers may have gone again, so that numbers are missing
        turn = self._turn(sequence, int(graph.arrival[arrived[0]]) if arrived.size else graph.next_arrival)
        moved: Rows
        if self.threads > 1 and len(delta.pairs) >= WORTH_SHARING:
            shared = Shared(world, field.seen, turn, self.threads)
            moved, self.shortened = shared.apply(delta)
        else:
            moved, self.shortened = kernels.ripple(
                world, delta.arrived, delta.pairs, delta.numbers, delta.chance, field.seen, turn
            )
        return moved

    def arrive(
        self, field: Field, names: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, int]:
        """One arrival in one kernel call; −1 where there is no start yet, no edge, or not enough room allocated."""
        graph, edges = field.graph, len(names) - 1
        if not self.ready or not edges:
            return -1, 0, 0
        row, new, edges, moved, self.shortened = arrive(
            self._stage(field),
            names_for_kernels(names),
            ones(edges) if weights is None else weights.astype(np.float32),
            sequence,
            graph.next_arrival,
        )
        if row >= 0:
            graph.next_arrival += new
        return row, edges, moved

    def _stage(self, field: Field) -> Stage:
        arrays = field.graph.ids.table, self.world(field), field.seen
        if any(mine is not now for mine, now in zip(self._staged[1], arrays, strict=True)):
            edges = field.graph.adjacency
            stage = set_stage(*arrays, self._turn(0, 0), edges.repeated, edges.directed)
            self._staged = stage, arrays
        return self._staged[0]

    def _turn(self, sequence: int, first_new: int) -> Turn:
        return Turn(self.seed, sequence, self.depth, self.max_reads, first_new)

    def reset(self, field: Field) -> None:
        """Forget the start: the graph has no edge left to have learned anything from."""
        self.take(Traits(), self._new_space(Traits()))

    def preview(self, field: Field, neighbors: Rows, weights: NDArray[np.float32]) -> NDArray[Any]:
        """The row a newcomer with these edges would be given on arrival; zero where it could not be placed."""
        row = np.zeros(self.dim, np.float32)
        if self.ready:
            kernels.preview(self.world(field), neighbors, weights, row)
        return row

    def serve(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Rows turned into the coordinates readers know, each view scaled to its weight."""
        return self.space.serve(rows)

    def server(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """`serve` in the coordinates of now."""
        return self.space.server()

    def inside(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Served vectors turned back."""
        return self.space.inside(vectors)

    def error(self, field: Field) -> float:
        """The largest cosine between two columns of a view, in its own inner product; zero right after an anchor."""
        return orthogonality_error(self.space, field, self.threads)

    def copy(self) -> Self:
        """A rule with the same coordinates, which are replaced, never altered."""
        other = copy(self)
        other._world, other._staged = None, _NOTHING_STAGED
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """The coordinates, and what the views were chosen by."""
        return learned(self.traits, self.space)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.take(Traits.of(state), self.space_from(state))

    def space_from(self, state: dict[str, NDArray[Any]]) -> Space:
        """The coordinates that a `state` describes; they are not taken over."""
        space = self._new_space(Traits.of(state))
        space.restore(state)
        return space

    def _new_space(self, traits: Traits) -> Space:
        return Space(self.views(traits), self.dim, self.normalize)


def _world(field: Field, space: Space, placed: NDArray[np.uint8], cells: NDArray[Any]) -> World:
    """These rows in these coordinates, on the graph as it is."""
    adjacency = field.graph.adjacency
    return World(adjacency.links, field.graph.arrival, placed, cells, space.frame(np.float32, adjacency.scale.unit))


def learned(traits: Traits, space: Space) -> dict[str, NDArray[Any]]:
    """Coordinates, and the traits that their views were chosen by, as arrays."""
    return space.state() | traits.state()


def _admit_part(world: World, rows: Rows, first: int, last: int) -> int:
    return int(kernels.admit(world, rows[first:last]))


class Shared:
    """The steps of `kernels.ripple` with the rows of each step shared out among threads. The same bits."""

    def __init__(self, world: World, seen: Rows, turn: Turn, threads: int) -> None:
        self.world, self.seen, self.turn, self.threads = world, seen, turn, threads
        self.stamp = 2 * turn.sequence
        self.shortened = 0  # rows so far

    def apply(self, delta: Delta) -> tuple[Rows, int]:
        """A whole batch; the rows that may have moved, each once, and how many were shortened."""
        world, turn = self.world, self.turn
        self._admit(delta.arrived)
        touched = self._found(kernels.unsettled, delta.pairs.reshape(-1))
        newcomers, shortened = kernels.place(world, delta.arrived, touched, self.seen, self.stamp - 1)
        self.shortened += shortened
        lost = kernels.release(world, touched)
        front = kernels.shaken(world, delta.pairs, delta.numbers, delta.chance, turn)
        influence.mark_new(newcomers.copy(), self.seen, self.stamp)
        front = front[: influence.mark_new(front, self.seen, self.stamp)]
        left = turn.max_reads * kernels.count_events(delta.arrived, delta.numbers, turn.first_new)
        moved = self._rounds(newcomers, front, left)
        counted = self.shortened
        outdated = self._found(kernels.outdated, newcomers, self.seen, self.stamp, turn.first_new)
        self.refresh(outdated, UNLIMITED, 0)
        unplaced = delta.arrived[world.placed[delta.arrived] == 0]
        return np.concatenate([newcomers, *moved, lost, unplaced]), counted

    def _rounds(self, sources: Rows, front: Rows, left: int) -> list[Rows]:
        rounds: list[Rows] = []
        depth, links = 0, self.world.links
        while True:
            limit = left // (2 * max(1, front.size))
            if limit == 0:
                return rounds
            if front.size:
                self.refresh(front, limit, depth)
                left -= kernels.room_for(links, front, limit)
                rounds.append(front)
            if depth == self.turn.depth:
                return rounds
            depth += 1
            limit = max(1, left // (2 * max(1, front.size)))
            reached = [self._spread(sources, UNLIMITED, depth), self._spread(front, limit, depth)]
            left -= kernels.room_for(links, front, limit)
            front = np.concatenate(reached)
            front = front[: influence.mark_new(front, self.seen, self.stamp)]
            sources = sources[:0]
            if not front.size:
                return rounds

    def _admit(self, arrived: Rows) -> None:
        wave = kernels.waves(self.world, arrived, self.turn.first_new)
        order = np.argsort(wave, kind="stable")
        cuts = np.flatnonzero(np.diff(wave[order])) + 1
        for rows in np.split(arrived[order], cuts):
            self.admit_together(rows)

    def admit_together(self, rows: Rows) -> None:
        """Admit newcomers none of whom reads another."""
        self._make(partial(_admit_part, self.world, rows), rows)

    def _make(self, work: Callable[[int, int], int], rows: Rows) -> None:
        """Share out work that makes rows, and count those that it shortened."""
        shortened: list[int] = []
        self._share(lambda first, last: shortened.append(work(first, last)), rows)
        self.shortened += sum(shortened)

    def _share(self, work: Callable[[int, int], None], rows: Rows) -> None:
        """Share rows out, to each thread a few times: at once it would wait for the slowest."""
        for_blocks(work, rows.size, size=max(BLOCK, rows.size // (4 * self.threads)), threads=self.threads)

    def refresh(self, rows: Rows, limit: int, depth: int) -> None:
        """Refresh rows, all of them from the values before."""
        world = self.world
        key = draw_key(self.turn.seed, self.turn.sequence, depth + kernels.RESAMPLE)
        values = np.empty((rows.size, world.vectors.shape[1]), world.vectors.dtype)

        def refresh(first: int, last: int) -> int:
            return int(kernels.refresh(world, rows[first:last], limit, key, values[first:last]))

        def store(first: int, last: int) -> None:
            kernels.store(world, rows[first:last], values[first:last])

        self._make(refresh, rows)
        self._share(store, rows)

    def _spread(self, sources: Rows, limit: int, depth: int) -> Rows:
        key = draw_key(self.turn.seed, self.turn.sequence, depth)

        def spread(world: World, part: Rows) -> Rows:
            reached = np.empty(kernels.room_for(world.links, part, limit), np.int64)
            count = influence.spread(world.links, world.arrival, part, self.seen, self.stamp, key, limit, reached)
            return reached[:count]

        return self._found(spread, sources)

    def _found(self, search: Callable[..., Rows], rows: Rows, *arguments: Any) -> Rows:
        """What a search finds among rows, each thread among some of them, in their order."""
        found: dict[int, Rows] = {}

        def work(first: int, last: int) -> None:
            found[first] = search(self.world, rows[first:last], *arguments)

        self._share(work, rows)
        return np.concatenate([rows[:0], *(found[first] for first in sorted(found))])
