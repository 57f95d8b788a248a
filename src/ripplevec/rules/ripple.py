"""Rule `ripple`: admit new vertices, then refresh influenced vertices by one local step of the view operators."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
    align_coordinates,
    bases_from_scratch,
    concatenate_views,
    find_moved_rows,
    orthogonality_error,
    solve_bases,
    to_weight_unit,
    write_bases,
)
from ripplevec.rules.base import PreviewReads
from ripplevec.rules.batch_step import RowWorker, ThreadBackend, run_batch_step
from ripplevec.rules.correction_workspace import Workspace, count_column_parts
from ripplevec.rules.device_correction import DeviceCorrection, kind_of_correction, uses_gpu
from ripplevec.rules.gradual_correction import GradualCorrection, Version
from ripplevec.rules.vector_store import KernelStateCache, VectorStore
from ripplevec.util.compilation import wait_for_kernels
from ripplevec.util.compile_ahead import is_compiling_ahead
from ripplevec.views._kernels import ViewScaling
from ripplevec.views.aligned_matrix import copy_aligned
from ripplevec.views.background_choice import BackgroundChoice, restore_choice
from ripplevec.views.base import Basis, Progress
from ripplevec.views.coordinates import Coordinates, identity_scaling
from ripplevec.views.graph_sample import MAX_EDGES, MAX_VERTICES, EndpointReader, LocalReader, sample_graph
from ripplevec.views.operators import AdjacencyLike
from ripplevec.views.recipes import Recipes
from ripplevec.views.view_choice import ViewChoice, choose_views, reconsider_views

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
        recipes: Recipes,
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
        self.recipes = recipes  # the views to choose from
        self.choice = ViewChoice()
        self.background_choice: BackgroundChoice | None = None  # whose result the next correction uses
        self.coordinates = self._new_coordinates(self.choice)
        self.depth = UNLIMITED_DEPTH if depth is None else depth
        self.seed = seed
        self.max_reads = max_reads
        self.threads = threads
        self.rows_shortened = 0
        self._kernel_states = KernelStateCache()
        self._kernels_loaded = False
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
        reader = LocalReader(store.graph.adjacency, store.graph.arrival[: store.graph.row_count])
        choice, coordinates, bases = self.solve_start(adjacency, rows, reader, progress)
        write_bases(store, coordinates, bases, order)
        self.set_coordinates(choice._replace(edges=store.graph.adjacency.edge_count), coordinates)

    def solve_start(
        self, adjacency: AdjacencyLike, rows: int, reader: EndpointReader, progress: Progress | None = None
    ) -> tuple[ViewChoice, Coordinates, list[Basis]]:
        """Compute a start without storing it: the choice of its views, coordinates and bases."""
        choice = self._choose_views(reader)
        coordinates = self._new_coordinates(choice)
        bases = to_weight_unit(adjacency, bases_from_scratch(coordinates, adjacency, rows, self.threads, progress))
        coordinates.adopt_bases(bases)
        return choice, coordinates, bases

    def _choose_views(self, reader: EndpointReader) -> ViewChoice:
        """Choose the views of a start; nothing is measured if there is only one recipe."""
        if len(self.recipes) == 1:
            return ViewChoice(next(iter(self.recipes)))
        graph = sample_graph(reader, self.seed)
        choice = choose_views(graph, self.recipes, self.dim, self.seed, self.threads)
        return self._log_choice(choice._replace(edges=reader.count()[1]), "start")

    def _log_choice(self, choice: ViewChoice, when: str) -> ViewChoice:
        report = self.describe_choice(choice)
        _log.info("views chosen: when=%s views=%s scores=%s", when, report["views"], report["view_scores"])
        return choice

    def describe_choice(self, choice: ViewChoice | None = None) -> dict[str, Any]:
        """Return the name of the chosen views, and the score of each recipe if they were compared."""
        choice = self.choice if choice is None else choice
        scores = {name: round(score, 4) for name, score in zip(self.recipes, choice.scores, strict=False)}
        return {"views": choice.recipe, "view_scores": scores}

    def set_coordinates(self, choice: ViewChoice, coordinates: Coordinates) -> None:
        """Use these coordinates from now on, with the choice of their views."""
        self.choice, self.coordinates = choice, coordinates
        self._kernel_states.clear()
        self._cached_context = _NO_CONTEXT  # it would keep replaced arrays alive

    def anchor(self, store: VectorStore, sequence: int, threshold: float) -> RowArray:
        """Correct all vectors, aligned with the served ones; return the rows that moved by more than the threshold."""
        before = store.vectors[: store.graph.row_count]
        reader = LocalReader(store.graph.adjacency, store.graph.arrival[: len(before)])
        choice, coordinates, bases = self._solve_anchor(store.graph.adjacency, before, sequence, reader)
        align_coordinates(self.coordinates, coordinates, bases, before, self.threads)
        after = partial(concatenate_views, bases)
        moved = find_moved_rows(self.coordinates, before, coordinates, after, threshold, self.threads)
        write_bases(store, coordinates, bases)
        self.set_coordinates(choice, coordinates)
        return moved

    def solve_anchor(
        self,
        adjacency: AdjacencyLike,
        vectors: NDArray[Any],
        sequence: int,
        reader: EndpointReader,
        copy: BlockCopier,
        solve: BasisSolver,
    ) -> tuple[ViewChoice, Coordinates, list[Basis]]:
        """Compute an anchor without storing it, for rows that may be on other machines; see `_solve_anchor`."""
        return self._solve_anchor(adjacency, vectors, sequence, reader, copy, solve)

    def begin_correction(self, store: VectorStore, sequence: int) -> GradualCorrection:
        """Begin a correction of all vectors that the stream pays for; see `gradual_correction.py`."""
        choice = self._continue_choice(store)
        before, after = Version(self.coordinates, self.choice), Version(self._new_coordinates(choice), choice)
        kind = DeviceCorrection if uses_gpu(after.coordinates) else GradualCorrection
        return kind(before, after, self.prepare_workspace(store, kind), self.seed, sequence)

    def prepare_workspace(self, store: VectorStore, kind: type[GradualCorrection]) -> Workspace:
        """Return the memory of gradual corrections of some kind, with room for all rows."""
        parts = count_column_parts(store.graph.row_count, self.dim, kind.most_column_parts)
        if self.workspace is None or self.workspace.parts != parts:
            self.workspace = None  # releases the memory first
            self.workspace = Workspace(store, parts)
        self.workspace.grow(store.graph.adjacency.capacity)
        self.workspace.allocate()
        return self.workspace

    def _continue_choice(self, store: VectorStore) -> ViewChoice:
        """Return the choice of views for the next correction; begin another one if the graph has doubled."""
        if self.background_choice is not None:
            choice, self.background_choice = self.background_choice.result(), None
            return self._log_choice(choice._replace(edges=store.graph.adjacency.edge_count), "anchor")
        if self.may_reconsider(len(store.graph), store.graph.adjacency.edge_count):
            graph = sample_graph(
                LocalReader(store.graph.adjacency, store.graph.arrival[: store.graph.row_count]), self.seed
            )
            self.background_choice = BackgroundChoice(graph, self.recipes, self.choice.recipe, self.dim, self.seed)
        return self.choice

    def may_reconsider(self, vertices: int, edges: int) -> bool:
        """Return whether a graph has changed a lot since its views were chosen, and is small enough to copy."""
        changed = len(self.recipes) > 1 and edges >= 2 * max(self.choice.edges, 1)
        return changed and vertices <= MAX_VERTICES and edges <= MAX_EDGES

    def restore_correction(
        self, store: VectorStore, state: dict[str, NDArray[Any]], kind: type[GradualCorrection] | None = None
    ) -> GradualCorrection:
        """Return a correction from the arrays of `GradualCorrection.state`."""
        kind = kind or kind_of_correction(state)
        before, after = (
            Version(self.coordinates_from_state(arrays), ViewChoice.from_state(arrays, self.recipes))
            for arrays in (strip_prefix(prefix, state) for prefix in ("old_", "new_"))
        )
        in_use = Version(self.coordinates, self.choice)
        before, after = (before, in_use) if bool(state["swapped"]) else (in_use, after)
        self.workspace = Workspace(store, int(state["column_parts"]))
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
            self._load_kernels()
            moved, self.rows_shortened = kernels.apply_batch(
                state, delta.arrived, delta.pairs, delta.arrival_numbers, delta.changed_share, store.seen, context
            )
        return moved

    def apply_arrival(
        self, store: VectorStore, ids: IdColumn, weights: NDArray[Any] | None, sequence: int
    ) -> tuple[int, int, RowArray]:
        """Apply one arrival in one kernel call; see `Rule.apply_arrival`.

        The row is −1 if there has been no start, if the arrival has no edges, if allocated arrays are too small, or if
        the kernel is still being compiled by another process.
        """
        graph, edges = store.graph, len(ids) - 1
        if not self.ready or not edges or is_compiling_ahead():
            return -1, 0, _NO_ROWS
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

    def _load_kernels(self) -> None:
        """Wait, before the first batch, for kernels that another process is compiling."""
        if not self._kernels_loaded:
            wait_for_kernels()
            self._kernels_loaded = True

    def reset(self, store: VectorStore) -> None:
        """Return to the state before the start: a graph without edges has nothing to embed."""
        self.background_choice = None
        self.set_coordinates(ViewChoice(), self._new_coordinates(ViewChoice()))

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
        """Return the coordinates and the choice of views as arrays, for saving."""
        background = {} if self.background_choice is None else self.background_choice.state()
        return self.coordinates.state() | self.choice.state() | background

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        self.set_coordinates(ViewChoice.from_state(state, self.recipes), self.coordinates_from_state(state))
        self.background_choice = restore_choice(state, self.recipes, self.choice.recipe, self.dim, self.seed)

    def coordinates_from_state(self, state: dict[str, NDArray[Any]]) -> Coordinates:
        """Return the coordinates of a saved state, without adopting them."""
        coordinates = self._new_coordinates(ViewChoice.from_state(state, self.recipes))
        coordinates.restore(state)
        return coordinates

    def _solve_anchor(
        self,
        adjacency: AdjacencyLike,
        vectors: NDArray[Any],
        sequence: int,
        reader: EndpointReader,
        copy: BlockCopier | None = None,
        solve: BasisSolver = bases_from_scratch,
    ) -> tuple[ViewChoice, Coordinates, list[Basis]]:
        """Compute an anchor; return the choice of views, new coordinates without the bases, and the bases.

        The views change only if others are clearly better; see `view_choice.py`. Raises `CorrectionError` if there are
        no usable bases; the caller keeps the current vectors.
        """
        choice = self._reconsider_now(reader)
        copy = copy or partial(copy_aligned, directory=self.directory)
        coordinates = self._new_coordinates(choice)
        bases = solve_bases(
            self.coordinates,
            coordinates,
            adjacency,
            vectors,
            seed=self.seed + sequence,
            sequence=sequence,
            threads=self.threads,
            copy=copy,
            solve=solve,
        )
        return choice, coordinates, to_weight_unit(adjacency, bases)

    def _reconsider_now(self, reader: EndpointReader) -> ViewChoice:
        """Return the choice of views for an immediate anchor."""
        self.background_choice = None
        if len(self.recipes) == 1 or not self.may_reconsider(*reader.count()):
            return self.choice
        graph = sample_graph(reader, self.seed)
        choice = reconsider_views(graph, self.recipes, self.choice.recipe, self.dim, self.seed, self.threads)
        return self._log_choice(choice, "anchor")

    def _new_coordinates(self, choice: ViewChoice) -> Coordinates:
        return Coordinates(self.recipes[choice.recipe or next(iter(self.recipes))], self.dim, self.normalize)

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
