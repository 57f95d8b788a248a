"""Rule `ripple`: admit new vertices, then refresh influenced vertices by one local step of the view operators."""

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
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import GraphDelta, strip_prefix, unit_weights
from ripplevec.graph.id_table import encode_ids
from ripplevec.influence.cascade import UNLIMITED_DEPTH
from ripplevec.rules import _kernels as kernels
from ripplevec.rules._arrival_kernel import ArrivalContext, apply_arrival, make_arrival_context
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import BatchContext
from ripplevec.rules.anchor import (
    BasisSolver,
    BlockCopier,
    CorrectionError,
    align_coordinates,
    bases_from_other_views,
    bases_from_scratch,
    basis_is_finite,
    concatenate_views,
    correct_bases,
    find_moved_rows,
    orthogonality_error,
    preserves_spectrum,
    sum_eigenvalues,
    to_weight_unit,
    write_bases,
)
from ripplevec.rules.base import PreviewReads
from ripplevec.rules.batch_step import RowWorker, ThreadBackend, run_batch_step
from ripplevec.rules.correction_workspace import Workspace
from ripplevec.rules.gradual_correction import GradualCorrection, Version
from ripplevec.rules.vector_store import KernelStateCache, VectorStore
from ripplevec.util.compilation import wait_for_kernels
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.aligned_matrix import copy_aligned
from ripplevec.views.base import Basis, Progress, View
from ripplevec.views.coordinates import Coordinates, identity_scaling
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.operators import AdjacencyLike

_log = logging.getLogger("ripplevec.rules")
MIN_EDGES_FOR_THREADS = 2_048  # batches that change fewer edges are faster on one thread
_NO_ROWS = np.empty(0, np.int64)
_NO_CONTEXT: tuple[Any, tuple[Any, ...]] = None, (None, None, None)  # an empty cache: see `_arrival_context`


class RippleRule:
    """Vectors composed of views, refreshed where arrivals have influence, and corrected globally by anchors."""

    one_by_one: ClassVar[bool] = False
    precision: type[np.floating[Any]] = np.float32

    def __init__(
        self,
        dim: int,
        views: Callable[[GraphStats], Sequence[View]],
        *,
        normalize: bool,
        depth: int | None,
        seed: int,
        max_reads: int,
        threads: int,
        precision: type[np.floating[Any]] = np.float32,
        directory: str | PathLike[str] | None = None,
    ) -> None:
        self.directory = directory  # directory of the vector files; None: in memory
        self.dim, self.normalize, self.precision = dim, normalize, precision
        self.views = views  # chooses the views for the statistics of a graph
        self.graph_stats = GraphStats()  # of the graph when the current views were chosen
        self.coordinates = self._new_coordinates(self.graph_stats)
        self.depth = UNLIMITED_DEPTH if depth is None else depth
        self.seed = seed
        self.max_reads = max_reads
        self.threads = threads
        self.rows_shortened = 0
        self._kernel_states = KernelStateCache()
        self.workspace: Workspace | None = None  # memory of gradual corrections
        self._cached_context = _NO_CONTEXT  # arrival context, and the arrays that it was made from

    @property
    def ready(self) -> bool:
        """Whether there has been a start."""
        return self.coordinates.ready

    @property
    def scaling(self) -> ViewScaling:
        """Scaling of rows before they are compared: per view, or none if vectors are not normalized."""
        return self.coordinates.scaling if self.coordinates.normalize else identity_scaling(self.coordinates.dim)

    def kernel_state(self, store: VectorStore) -> KernelState:
        """Return the kernel arguments for the current state, cached until an array is replaced."""
        return self._kernel_states.get(store, self.coordinates, store.kernel_array)

    def start(self, store: VectorStore, progress: Progress | None = None) -> None:
        """Embed the current graph from scratch, with the views chosen for it."""
        adjacency, order = store.graph.adjacency_by_arrival()
        rows = store.graph.row_count if order is None else order.size
        stats, coordinates, bases = self.solve_start(adjacency, rows, progress)
        write_bases(store, coordinates, bases, order)
        self.set_coordinates(stats, coordinates)

    def solve_start(
        self, adjacency: AdjacencyLike, rows: int, progress: Progress | None = None
    ) -> tuple[GraphStats, Coordinates, list[Basis]]:
        """Compute a start without storing it: graph statistics, coordinates and bases."""
        stats = GraphStats().updated(adjacency, rows)
        coordinates = self._new_coordinates(stats)
        bases = to_weight_unit(adjacency, bases_from_scratch(coordinates, adjacency, rows, self.threads, progress))
        coordinates.adopt_bases(bases)
        return stats, coordinates, bases

    def set_coordinates(self, stats: GraphStats, coordinates: Coordinates) -> None:
        """Use these coordinates from now on; `stats` are the graph statistics that selected their views."""
        self.graph_stats, self.coordinates = stats, coordinates
        self._kernel_states.clear()
        self._cached_context = _NO_CONTEXT  # it would keep replaced arrays alive

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> RowArray:
        """Correct all vectors, aligned with the served ones; return the rows that moved by more than the threshold."""
        before = store.vectors[: store.graph.row_count]
        stats, coordinates, bases = self._solve_anchor(
            self.coordinates, self.graph_stats, store.graph.adjacency, before, sequence
        )
        align_coordinates(self.coordinates, coordinates, bases, before, self.threads)
        after = partial(concatenate_views, bases)
        moved = find_moved_rows(self.coordinates, before, coordinates, after, threshold, self.threads)
        write_bases(store, coordinates, bases)
        self.set_coordinates(stats, coordinates)
        return moved

    def solve_anchor(
        self, adjacency: AdjacencyLike, vectors: NDArray[Any], sequence: int, copy: BlockCopier, solve: BasisSolver
    ) -> tuple[GraphStats, Coordinates, list[Basis]]:
        """Compute an anchor without storing it, for rows that may be on other machines; see `_solve_anchor`."""
        return self._solve_anchor(self.coordinates, self.graph_stats, adjacency, vectors, sequence, copy, solve)

    def begin_correction(self, store: VectorStore, sequence: int) -> GradualCorrection:
        """Begin a correction of all vectors that the stream pays for; see `gradual_correction.py`."""
        adjacency, stats = store.graph.adjacency, self.graph_stats
        mean_degree = 2 * adjacency.edge_count / max(1, len(store.graph))  # about: vertices without edges count here
        if self.views(stats._replace(mean_degree=max(stats.mean_degree, mean_degree))) != self.views(stats):
            stats = stats.updated(adjacency, store.graph.row_count)
        workspace = self.prepare_workspace(store)
        new = self.coordinates.new_like() if stats == self.graph_stats else self._new_coordinates(stats)
        before, after = Version(self.coordinates, self.graph_stats), Version(new, stats)
        return GradualCorrection(before, after, workspace, self.seed, sequence)

    def prepare_workspace(self, store: VectorStore) -> Workspace:
        """Return the memory of gradual corrections, with room for all rows."""
        is_first, self.workspace = self.workspace is None, self.workspace or Workspace(store)
        self.workspace.grow(store.graph.adjacency.capacity)
        if is_first:
            self.workspace.allocate()
        return self.workspace

    def restore_correction(
        self, store: VectorStore, state: dict[str, NDArray[Any]], kind: type[GradualCorrection] = GradualCorrection
    ) -> GradualCorrection:
        """Return a correction from the arrays of `GradualCorrection.state`."""
        before, after = (
            Version(self.coordinates_from_state(arrays), GraphStats.from_state(arrays))
            for arrays in (strip_prefix(prefix, state) for prefix in ("old_", "new_"))
        )
        in_use = Version(self.coordinates, self.graph_stats)
        before, after = (before, in_use) if bool(state["swapped"]) else (in_use, after)
        self.workspace = Workspace(store)
        return kind.from_state(state, before, after, self.workspace, store)

    def apply(self, store: VectorStore, delta: GraphDelta, sequence: int) -> RowArray:
        """Move vectors after a batch has changed the graph; return the rows that may have moved, each once."""
        self.rows_shortened = 0
        if not self.ready:
            return delta.arrived
        state = self.kernel_state(store)
        arrived, graph = delta.arrived, store.graph  # `arrived` lacks vertices that the same batch removed again
        context = self._batch_context(sequence, int(graph.arrival[arrived[0]]) if arrived.size else graph.next_arrival)
        moved: RowArray
        if self.threads > 1 and len(delta.pairs) >= MIN_EDGES_FOR_THREADS:
            backend = ThreadBackend(RowWorker(state, store.seen, context, self.threads), delta)
            run_batch_step(backend)
            moved, self.rows_shortened = backend.moved_rows(), backend.shortened
        else:
            wait_for_kernels()
            moved, self.rows_shortened = kernels.apply_batch(
                state, delta.arrived, delta.pairs, delta.arrival_numbers, delta.changed_share, store.seen, context
            )
        return moved

    def apply_arrival(
        self, store: VectorStore, ids: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, RowArray]:
        """Apply one arrival in one kernel call; see `Rule.apply_arrival`.

        The row is −1 if there has been no start, if the arrival has no edges, or if allocated arrays are too small.
        """
        graph, edges = store.graph, len(ids) - 1
        if not self.ready or not edges:
            return -1, 0, _NO_ROWS
        wait_for_kernels()
        row, new_vertices, edges, moved, self.rows_shortened = apply_arrival(
            self._arrival_context(store),
            encode_ids(ids),
            unit_weights(edges) if weights is None else weights.astype(np.float32),
            sequence,
            graph.next_arrival,
        )
        if row >= 0:
            graph.next_arrival += new_vertices
        return row, edges, moved

    def reset(self, store: VectorStore) -> None:
        """Return to the state before the start: a graph without edges has nothing to embed."""
        self.set_coordinates(GraphStats(), self._new_coordinates(GraphStats()))

    def preview(self, reads: PreviewReads, neighbors: RowArray, weights: NDArray[np.float32]) -> NDArray[Any]:
        """Return the row that a new vertex with these edges would get; zero if it could not be placed."""
        row = np.zeros(self.dim, np.float32)
        if self.ready:
            store, positions = reads.store_with(neighbors)
            kernels.preview_row(self.kernel_state(store), positions, weights, row)
        return row

    def to_served(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Convert internal rows to served vectors: scaled view by view, and rotated."""
        return self.coordinates.to_served(rows)

    def served_transform(self) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
        """Return `to_served` with the current coordinates, unaffected by later anchors."""
        return self.coordinates.served_transform()

    def to_internal(self, vectors: NDArray[Any]) -> NDArray[np.float64]:
        """Rotate served vectors back to the axes of internal rows; the scaling of served vectors remains."""
        return self.coordinates.to_internal(vectors)

    def orthogonality_error(self, store: VectorStore) -> float:
        """Return the largest cosine between two columns of a view, in its inner product; zero right after an anchor."""
        return orthogonality_error(self.coordinates, store, self.threads)

    def copy(self) -> Self:
        """Return an independent copy; coordinates can be shared because they are replaced, never modified."""
        other = copy(self)
        other._kernel_states, other._cached_context, other.workspace = KernelStateCache(), _NO_CONTEXT, None
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the coordinates and the graph statistics as arrays, for saving."""
        return export_coordinates(self.graph_stats, self.coordinates)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        self.set_coordinates(GraphStats.from_state(state), self.coordinates_from_state(state))

    def coordinates_from_state(self, state: dict[str, NDArray[Any]]) -> Coordinates:
        """Return the coordinates of a saved state, without adopting them."""
        coordinates = self._new_coordinates(GraphStats.from_state(state))
        coordinates.restore(state)
        return coordinates

    def _solve_anchor(
        self,
        old: Coordinates,
        old_stats: GraphStats,
        adjacency: AdjacencyLike,
        vectors: NDArray[Any],
        sequence: int,
        copy: BlockCopier | None = None,
        solve: BasisSolver = bases_from_scratch,
    ) -> tuple[GraphStats, Coordinates, list[Basis]]:
        """Compute an anchor; return graph statistics, new coordinates that have not adopted the bases, and the bases.

        A graph that has become dense since its start gets the views of a dense graph, once. A result that is not
        finite, or that has lost much of the spectrum, is replaced by a solution from scratch. If that is not usable
        either, raises `CorrectionError`; the caller keeps the current vectors.
        """
        current_stats, seed = old_stats.updated(adjacency, len(vectors)), self.seed + sequence
        copy = copy or partial(copy_aligned, directory=self.directory)
        if len(self.views(current_stats)) > len(self.views(old_stats)):
            stats, coordinates = current_stats, self._new_coordinates(current_stats)
            bases = bases_from_other_views(coordinates, adjacency, vectors, seed, self.threads, copy)
            usable = all(map(basis_is_finite, bases))
        else:
            stats, coordinates = old_stats._replace(bipartite=current_stats.bipartite), old.new_like()
            bases = correct_bases(old, adjacency, vectors, seed, self.threads, copy)
            usable = preserves_spectrum(old, bases)
        if not usable:
            _log.info("anchor result unusable, solving from scratch: sequence=%d", sequence)
            del bases  # frees memory for the next ones
            bases = solve(coordinates, adjacency, len(vectors), self.threads)
        if not all(map(basis_is_finite, bases)) or (
            sum_eigenvalues(old.mu) > 0 and not any(sum_eigenvalues(basis.mu) > 0 for basis in bases)
        ):
            raise CorrectionError(
                f"anchor after batch {sequence}: no usable vectors found; the current vectors are kept"
            )
        return stats, coordinates, to_weight_unit(adjacency, bases)

    def _new_coordinates(self, stats: GraphStats) -> Coordinates:
        return Coordinates(self.views(stats), self.dim, self.normalize)

    def _arrival_context(self, store: VectorStore) -> ArrivalContext:
        """Return the context of single arrivals, cached until one of its arrays is replaced."""
        arrays = store.graph.ids.table, self.kernel_state(store), store.seen
        if any(cached is not current for cached, current in zip(self._cached_context[1], arrays, strict=True)):
            adjacency = store.graph.adjacency
            context = make_arrival_context(
                *arrays, self._batch_context(0, 0), adjacency.duplicate_policy, adjacency.directed
            )
            self._cached_context = context, arrays
        return self._cached_context[0]

    def _batch_context(self, sequence: int, first_new: int) -> BatchContext:
        return BatchContext(self.seed, sequence, self.depth, self.max_reads, first_new)


def export_coordinates(stats: GraphStats, coordinates: Coordinates) -> dict[str, NDArray[Any]]:
    """Return coordinates, and the graph statistics that selected their views, as arrays."""
    return coordinates.state() | stats.state()
