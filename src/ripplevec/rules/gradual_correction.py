"""A correction of all vectors in small steps, paid for by the stream: no batch and no reader waits for it.

A gradual correction computes what an immediate anchor computes (`anchor.py`), in these stages:

    copy       copy the vectors to a block
    probe      estimate the eigenvalues of the columns, which have changed with the graph, from some rows
    filter     apply a Chebyshev filter to one part of the columns after the other, one pass over all rows per degree
    project    add up the k×k matrices of the Rayleigh–Ritz step
    solve      solve the k×k eigenproblems, on another thread
    rotate     only if the filter was too weak: change to the Ritz vectors, then filter again
    transform  compute the new rows, and the products that align them with the served vectors
    align      compute the rotation of served vectors, on another thread
    catch_up   refresh the rows that batches have moved in the meantime; then all rows are replaced
    announce   compare old and new rows, a few at a time; then serve the new ones, and report those that moved

Each stage processes slices of rows in order. The graph grows between slices, and every slice reads it as it is then, so
that nothing has to be copied or held still. The position in the stream decides when a slice is computed, never its
speed: the same batches give the same bits on any number of threads, also if the model is saved and loaded in between.

Slices are computed while readers read. Only `publish` changes what they see, as a part of the next batch: it replaces
all rows at once, or lets the rows that have been compared be served from the new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from math import ceil, inf
from os import getpid
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import RowArray, Totals
from ripplevec.graph.graph import strip_prefix
from ripplevec.influence._kernels import draw_key
from ripplevec.rules import _correction_kernels as kernels
from ripplevec.rules import _kernels as step_kernels
from ripplevec.rules import _ritz_kernels as ritz_kernels
from ripplevec.rules import _rotation_kernels as rotation_kernels
from ripplevec.rules._correction_kernels import SLICE_ROWS, FilterStep, RowRange
from ripplevec.rules._ritz_kernels import Sample
from ripplevec.rules._rotation_kernels import RowTransform, ServedScalings
from ripplevec.rules.anchor import MIN_SPECTRUM_RATIO, CorrectionError, sum_eigenvalues
from ripplevec.rules.correction_pace import CorrectionPace, cost_per_row, sample_step
from ripplevec.rules.correction_workspace import Workspace, count_spare_columns, select_columns
from ripplevec.rules.scaled_filter import ScaledFilter, bound_spectrum
from ripplevec.rules.vector_store import KernelStateCache, VectorStore
from ripplevec.util.growable_array import GrowableArray
from ripplevec.util.parallel import for_each_block, limit_blas_to_one_thread, submit
from ripplevec.views.base import MIN_EIGENVALUE
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.solvers import solve_projected
from ripplevec.views.spectral import MAX_ANCHOR_PASSES, MIN_CUTOFF, OTHER_VIEW_PASSES, REPEAT_RATIO
from ripplevec.views.view_choice import ViewChoice

CHUNK_ROWS = 1_024  # rows whose sums are added up separately, so that several threads can work on large batches
MAX_FRESH_PASSES = 13  # Rayleigh–Ritz steps of a correction from noise or from other views; the first has no filter
MAX_COLUMN_GROWTH = 8.0  # of a column's length in a filter, which does not grow if all eigenvalues are as expected
FRESH_TOLERANCE = 1e-3  # relative change of each view's eigenvalue sum at which such a correction has converged

STAGES = ("copy", "probe", "filter", "project", "solve", "rotate", "transform", "align", "catch_up", "announce")
_FILTER = STAGES.index("filter")
SAVED_BLOCKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("copy", "probe", "project", "solve", "rotate"), ("current",)),
    "filter": ("current", "spare"),
    "transform": ("current", "rows"),
    **dict.fromkeys(("align", "catch_up", "announce"), ("rows",)),
}
"""Blocks of the workspace that each stage reads, and that are saved with it; one block can have two of the names."""

_NUMBERS = {
    "seed": int, "since": int, "fresh": bool, "swapped": bool, "ready": bool, "stage": int, "cursor": int,
    "served": int, "passes": int, "column_part": int, "column_parts": int, "stopped_early": bool,
    "waited": float, "sampled_active": float, "pace": float, "credit": float,
    "paid_growth": float, "solve_cost": float,
}  # fmt: skip
_ARRAYS = (
    "columns", "ritz", "previous_sums", "column_mu", "lowest", "tau", "shifts", "center", "transform", "block_totals",
    "grams", "products", "column_lengths", "unfiltered_lengths",
)  # fmt: skip
"""Attributes that are saved."""

_NO_ROWS = np.empty(0, np.int64)
_log = logging.getLogger("ripplevec.rules")


class Version(NamedTuple):
    """Coordinates, and the choice of their views."""

    coordinates: Coordinates
    choice: ViewChoice

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return both as arrays, for saving."""
        return {f"{prefix}{name}": array for name, array in (self.coordinates.state() | self.choice.state()).items()}


class GradualCorrection(CorrectionPace):
    """One correction in progress: its stage, its blocks, and the sums over rows that it has read so far."""

    saved_blocks: ClassVar[dict[str, tuple[str, ...]]] = SAVED_BLOCKS
    most_column_parts: ClassVar[int] = 2  # into which the columns of a large graph are divided for the filter

    def __init__(self, before: Version, after: Version, workspace: Workspace, seed: int, since: int) -> None:
        self.before, self.after, self.workspace = before, after, workspace
        self.seed, self.since = seed, since  # `since`: sequence number at which the correction began
        self.old, self.new = old, new = before.coordinates, after.coordinates
        dim, views = new.dim, len(new.views)
        self.fresh = new.views != old.views  # whether the eigenvalues of the first columns are unknown
        self.columns = self._choose_columns()
        self.ritz = np.zeros(dim) if self.fresh else old.mu.copy()  # latest Ritz values
        self.column_mu = self.ritz  # eigenvalues of the columns of the block
        self.lowest = np.full(views, -1.0) if self.fresh else old.lowest.copy()  # −1 where it is not known
        self.filter = ScaledFilter(new)
        self.tau = np.zeros(views)  # in the weight unit of new edges, like all sums
        self.shifts, self.center = np.zeros((2, dim)), np.zeros(dim)  # of columns now, and before the last filter step
        self.column_lengths, self.unfiltered_lengths = np.zeros((2, dim))  # of columns now, and before the filter
        self.column_parts = workspace.parts  # number of parts of the columns, which are filtered one after the other
        self.column_part = 0  # the part that is being filtered
        self.stopped_early = False  # whether the filter of a part has ended before its last step
        self.block_totals: NDArray[np.float64] = np.zeros(4)  # sums of strength, endpoints, rows with edges, strength²
        self.grams: NDArray[np.float64] = np.zeros((3, dim, dim))  # sums of the project stage
        self.transform: NDArray[np.float64] = np.zeros((dim, dim))  # from filtered columns to Ritz vectors, or new rows
        self.products: NDArray[np.float64] = np.zeros((dim, dim))  # sums of the transform stage
        self.sampled_active = 0.0  # rows with edges among those of the third matrix of `grams`
        self.passes = 0  # completed Rayleigh–Ritz steps; each follows a filter, but for the first of a fresh correction
        self.previous_sums = np.zeros(views)  # of the Ritz values of each view after the last filter
        self.unplaced = [np.empty((0, 2), np.int64)]  # rows with edges but no vector so far, and arrival numbers
        super().__init__(self.filter.degree, dim)
        self.waited = 0.0  # cost of the solve in progress that is already paid
        self._solution: tuple[Future[Any] | None, int] | None = None  # submitted work, and the process
        self._states = KernelStateCache()
        self._step_of_unit: tuple[float, FilterStep] | None = None  # cached
        self._axes: NDArray[np.float32] | None = None  # cached; see `_old_to_new_axes`
        self.stage = self.cursor = 0
        self.served = 0  # rows up to here are served from the new ones, once these have replaced the old ones
        self.ready = False  # whether all rows are caught up with, or compared: `publish` ends the stage
        self._found: list[RowArray] | None = []  # moved rows between `served` and the cursor; None: not known
        self.sums: list[NDArray[np.float64]] = []
        self.chunk_sums: list[NDArray[np.float64]] = []  # of the chunk in progress
        self._begin_stage("copy")

    def _choose_columns(self) -> NDArray[np.int64]:
        """Return the columns to begin with; −1 for noise, where the old column is empty."""
        if self.fresh:
            return np.concatenate([np.arange(part.stop - part.start) for part in self.new.parts])
        return np.where(self.old.mu > MIN_EIGENVALUE, np.arange(self.new.dim), -1)

    # ------------------------------------------------------------------ slices

    @property
    def stage_name(self) -> str:
        """The current stage."""
        return "finished" if self.finished else STAGES[self.stage]

    @property
    def finished(self) -> bool:
        """Whether all stages are complete."""
        return self.stage == len(STAGES)

    @property
    def can_publish(self) -> bool:
        """Whether there is something to publish, which changes what readers see."""
        return self.ready or (self.swapped and self.cursor > self.served)

    def advance(self, store: VectorStore, credit: float, threshold: float, threads: int) -> None:
        """Compute slices worth this credit; stop, and keep the credit, when the result has to be published.

        Readers may be active. Raises `CorrectionError` if no usable vectors are found.
        """
        while credit > 0 and not self.finished and not self.ready:
            if self.stage_name in ("solve", "align"):
                credit = self._wait_for_solution(store, credit)
            elif self.stage_name == "catch_up":
                credit -= self._catch_up(store, credit)
            else:
                credit -= self._process_rows(store, credit, threshold, threads)
        self.credit = credit

    def publish(self, store: VectorStore, threshold: float, threads: int) -> RowArray:
        """Let readers see what has been computed; return the rows whose served vector moved. No reader may be active.

        The work is that of the rows which the last batch has moved, not of all rows.
        """
        if self.stage_name == "catch_up":
            self._refresh_queued(store, count_queued_rows(inf))
            self._swap(store)
            return _NO_ROWS
        if self._found is None:
            self._found = [self._announce_rows(store, self.served, self.cursor, [], threshold)]
        moved, marked = np.concatenate([_NO_ROWS, *self._found]), self.workspace.marked.array
        moved = moved[(marked[moved] == 0) & (store.graph.arrival[moved] >= 0)]
        marked[self.served : None if self.ready else self.cursor] = 0
        self.served, self._found = self.cursor, []
        if self.ready:
            self.stage, self.ready = len(STAGES), False
        return moved

    def abandon(self) -> None:
        """Stop the correction; its memory can be used by the next one."""
        self.workspace.clear_marks()

    def _process_rows(self, store: VectorStore, credit: float, threshold: float, threads: int) -> float:
        """Process as many slices as the credit allows; return their cost."""
        rows, first, columns = store.graph.row_count, self.cursor, self._processed_columns
        cost = cost_per_row(self.stage_name, rows) * (columns.stop - columns.start) / self.new.dim
        slices = max(1, ceil(min(credit, 4.0 * rows) / (cost * SLICE_ROWS)))
        last = min(rows, first + slices * SLICE_ROWS)
        self._process_range(store, last, threshold, threads)
        if last == rows:
            self._finish_pass()
        return (last - first) * cost

    def _process_range(self, store: VectorStore, last: int, threshold: float, threads: int) -> None:
        """Process the rows from the cursor to `last` in the current stage, on several threads.

        The sums of a chunk are added slice by slice, and then chunk by chunk, however many slices a call processes.
        """
        rows, first = store.graph.row_count, self.cursor
        ranges = _split_at_chunks(first, last)
        sums = [self.chunk_sums, *([np.zeros_like(array) for array in self.sums] for _ in ranges[1:])]
        work, found = self._row_work(), [_NO_ROWS] * len(ranges)

        def process(index: int, _: int) -> None:
            found[index] = work(store, *ranges[index], sums[index], threshold)

        for_each_block(process, len(ranges), size=1, threads=threads)
        with np.errstate(over="ignore", invalid="ignore"):  # checked at the end of a pass
            for (_, end), self.chunk_sums in zip(ranges, sums, strict=True):
                if end % CHUNK_ROWS == 0 or end == rows:
                    self._close_chunk()
        if self.stage_name == "announce":
            self._found = None if self._found is None else self._found + found
        elif self.stage_name == "transform":
            self.unplaced += [np.stack([part, store.graph.arrival[part]], axis=1) for part in found if part.size]
        self.cursor = last

    def _row_work(self) -> Callable[..., RowArray]:
        """Return the method that processes rows in the current stage."""
        return {
            "copy": self._copy_rows,
            "probe": self._probe_rows,
            "filter": self._filter_rows,
            "project": self._project_rows,
            "rotate": self._rotate_rows,
            "transform": self._transform_rows,
            "announce": self._announce_rows,
        }[self.stage_name]

    def _finish_pass(self) -> None:
        """Continue after the last row of a stage."""
        finish = {
            "copy": self._finish_copy,
            "probe": self._finish_probe,
            "filter": self._finish_filter_step,
            "project": self._finish_project,
            "rotate": self._finish_rotate,
            "transform": self._finish_transform,
            "announce": self._finish_announce,
        }[self.stage_name]
        with limit_blas_to_one_thread():  # the same bits on machines with any number of cores
            finish()

    def _begin_stage(self, name: str) -> None:
        """Begin a stage, with the sums that it adds up at zero."""
        self.stage, self.cursor, dim = STAGES.index(name), 0, self.new.dim
        self._step_of_unit = None
        self.sums = [np.zeros(shape) for shape in _sum_shapes(name, dim, len(self.new.views))]
        self.chunk_sums = [np.zeros_like(array) for array in self.sums]

    def _close_chunk(self) -> None:
        """Add the sums of a chunk to those of all rows."""
        for total, part in zip(self.sums, self.chunk_sums, strict=True):
            if self.stage_name == "transform" and total is self.sums[1]:
                np.maximum(total, part, out=total)  # lengths of the longest rows
            else:
                total += part
        self.chunk_sums = [np.zeros_like(array) for array in self.sums]

    # ------------------------------------------------------------------ copy and filter

    def _copy_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        graph, rows = store.graph, RowRange(first, last, 1 / store.graph.adjacency.weight_scale.unit)
        key, block = draw_key(self.seed, self.since, 0), self.workspace.current.array
        links, vectors = graph.adjacency.links, store.kernel_array
        if first == 0:  # few anchors need this stage: compile its kernel with the first of them, not later in a stream
            self._rotate_rows(store, 0, 0, sums, 0.0)
        kernels.copy_rows(links, graph.arrival, vectors, self.columns, key, rows, block, *sums)
        return _NO_ROWS

    def _finish_copy(self) -> None:
        strength, endpoints, active, _ = self.sums[1]
        totals = Totals(int(endpoints), float(strength), int(active))
        self.tau = np.array([view.regularization(totals) for view in self.new.views])
        self._complete_block()
        self._begin_stage("project" if self.fresh else "probe")

    def _probe_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        ritz_kernels.add_quotients(*self._operator_arguments(store, first, last, "probe"), sums[0])
        return _NO_ROWS

    def _operator_arguments(self, store: VectorStore, first: int, last: int, stage: str) -> tuple[Any, ...]:
        """Return the arguments of kernels that apply the operator to the sample of a stage."""
        graph, unit = store.graph, store.graph.adjacency.weight_scale.unit
        slices = sample_slices(store, first, last, stage)
        sample = Sample(slices.start, last, slices.step, 1 / unit)
        block = select_columns(self.workspace.current.array, 0, self.new.dim)
        return graph.adjacency.links, graph.arrival, self._kernel_step(unit), sample, block

    def _finish_probe(self) -> None:
        applied, squares = self.sums[0]
        quotients = applied / np.maximum(squares, 1e-300)
        # Never above the last Ritz values: the filter would damp columns whose eigenvalue has not changed.
        self.column_mu = np.where(self.columns < 0, 0.0, np.minimum(quotients, self.ritz))
        self.previous_sums = self._sum_each_view(self.column_mu)
        self._begin_filter(np.maximum(quotients, self.ritz))

    def _begin_filter(self, estimates: NDArray[np.float64]) -> None:
        """Begin to filter; the largest estimate of each view is that of its largest eigenvalue."""
        self.filter.begin(self.column_mu, self._lower_bounds(estimates))
        self.unfiltered_lengths = self.column_lengths.copy()
        self.column_part, self.stopped_early = 0, False
        self._begin_stage("filter")

    def _lower_bounds(self, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return lower bounds of the spectrum: estimates of the smallest eigenvalue, or bounds by the largest one."""
        active = self.block_totals[2]
        if self.fresh or not active:  # the largest eigenvalue is not known
            return np.full(len(self.tau), -1.0)
        strength, _, _, squares = self.block_totals / active
        variance = max(squares - strength**2, 0.0)
        tops = [estimates[part].max(initial=0.0) for part in self.new.parts]
        bounds = np.array(
            [bound_spectrum(top, tau, strength, variance) for top, tau in zip(tops, self.tau, strict=True)]
        )
        return np.where(self.lowest > -1, np.maximum(self.lowest, bounds), bounds)

    def _complete_block(self) -> None:
        """Compute the shift that deflates columns of the block, their center and lengths, from the sums over rows."""
        columns, (strength, _, active, _) = self._processed_columns, self.sums[1]
        weighted, plain, weighted_squares, squares = self.sums[0][:, columns]
        tau = self.filter.per_column(self.tau)[columns]
        volume = np.maximum(strength + tau * active, 1e-300)
        shift = (weighted + tau * plain) / volume
        lengths = np.sqrt(np.maximum(weighted_squares + tau * squares - volume * shift**2, 0.0))
        self.shifts[1, columns] = self.shifts[0, columns]
        self.shifts[0, columns], self.column_lengths[columns] = shift, lengths
        self.center[columns] = (weighted - shift * strength) / max(active, 1.0)
        self.block_totals = self.sums[1]

    @property
    def _processed_columns(self) -> slice:
        """The columns that the current stage processes: one part of them in a filter, else all."""
        if self.stage != _FILTER:
            return slice(0, self.new.dim)
        width = self.workspace.spare_columns
        return slice(self.column_part * width, min((self.column_part + 1) * width, self.new.dim))

    @property
    def _filtered_block(self) -> GrowableArray:
        """The block whose columns the operator is applied to: the spare block in every other step of a filter."""
        return self.workspace.spare if self.stage == _FILTER and self.filter.step % 2 else self.workspace.current

    def _filter_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        graph, unit, part = store.graph, store.graph.adjacency.weight_scale.unit, self._processed_columns
        width = part.stop - part.start
        source = select_columns(self.workspace.current.array, part.start, width)
        target = select_columns(self.workspace.spare.array, 0, width)
        if self._filtered_block is self.workspace.spare:
            source, target = target, source
        step, rows = self._kernel_step(unit), RowRange(first, last, 1 / unit)
        kernels.filter_rows(graph.adjacency.links, graph.arrival, step, rows, source, target, *sums)
        return _NO_ROWS

    def _finish_filter_step(self) -> None:
        if not np.isfinite(self.sums[0]).all():  # τ became far too small: edges with huge weights have arrived
            self._start_from_noise()
            return
        self._complete_block()
        returned = self.filter.step % 2 == 1  # the columns are in their own block again
        if not (self.filter.in_last_step or (returned and self._has_unknown_eigenvalue())):
            self.filter.begin_next()
            self._begin_stage("filter")
            return
        self.stopped_early |= not self.filter.in_last_step
        if self._processed_columns.stop == self.new.dim:
            self._begin_stage("project")
        else:
            self.column_part += 1
            self.filter.begin_again()
            self._begin_stage("filter")

    def _has_unknown_eigenvalue(self) -> bool:
        """Return whether a column has grown in the filter: the graph has an eigenvalue beyond those of its columns.

        A few hubs that got very many neighbors are enough. Its eigenvector grows with every step, and would soon be
        all that is left of the other columns. While they still differ, a Rayleigh–Ritz step finds the eigenvalue.
        """
        return bool((self.column_lengths > MAX_COLUMN_GROWTH * self.unfiltered_lengths)[self._processed_columns].any())

    def _kernel_step(self, unit: float) -> FilterStep:
        """Return the coefficients of the step in progress; `unit` is the stored value of a new weight of one."""
        if self._step_of_unit is not None and self._step_of_unit[0] == unit:
            return self._step_of_unit[1]
        part, factors = self._processed_columns, self.filter.factors
        f1, f2 = (self.filter.per_column(factor) for factor in factors.T[1:])
        per_column = np.stack([self.shifts[0], self.center * unit, f1 * self.shifts[0] + f2 * self.shifts[1]])
        bounds = np.clip(self.new.scaling.bounds, part.start, part.stop) - part.start
        per_view = np.column_stack([self.tau * unit, factors])
        step = FilterStep(part.start, bounds, per_view, per_column[:, part].astype(np.float32, order="C"))
        self._step_of_unit = unit, step
        return step

    # ------------------------------------------------------------------ Rayleigh–Ritz

    def _project_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        rows = store.graph.row_count
        step = sample_step("project", rows)
        plain_step = max(sample_step("transform", rows) // step, 1) * step
        arguments = self._operator_arguments(store, first, last, "project")
        sums[1] += ritz_kernels.add_projections(*arguments, plain_step, sums[0])
        return _NO_ROWS

    def _finish_project(self) -> None:
        upper = np.triu(self.sums[0][[0, 2]])  # the kernel leaves out the other half of the symmetric matrices
        self.grams, self.sampled_active = self.sums[0].copy(), float(self.sums[1][0])
        self.grams[[0, 2]] = upper + np.triu(upper, 1).swapaxes(1, 2)
        self._begin_stage("solve")
        self._solution = submit(_solver(), self._solve_work()), getpid()

    def _solve_work(self) -> Callable[[], Any]:
        mean_degree = self.block_totals[1] / max(self.block_totals[2], 1.0)
        return partial(_solve_views, self.new, self.grams, mean_degree, self.sampled_active)

    @property
    def wait_cost(self) -> float:
        """Credit that pays for the current solve."""
        return self.solve_cost

    def _wait_for_solution(self, store: VectorStore, credit: float) -> float:
        """Pay for a solve on another thread; take its result over once it is paid. Return the credit that is left."""
        self.waited += credit
        if self.waited < self.wait_cost:
            return 0.0
        work = self._solve_work() if self.stage_name == "solve" else self._alignment_work()
        future, process = self._solution or (None, 0)
        # Not submitted if the model was just loaded; in a forked child, the thread that solves does not exist.
        solution = work() if future is None or process != getpid() else future.result()
        credit, self.waited, self._solution = self.waited - self.wait_cost, 0.0, None
        with limit_blas_to_one_thread():  # the same bits on machines with any number of cores
            if self.stage_name == "solve":
                self._finish_solve(solution)
            else:
                self._finish_align(solution)
        return credit

    def _finish_solve(self, solution: Any) -> None:
        """Accept the Ritz vectors, filter once more, or start again from noise if they lost much of the spectrum."""
        ritz, transform, lengths = solution
        usable = np.isfinite(ritz).all() and np.isfinite(transform).all() and self._preserves_spectrum(ritz)
        if not usable:
            self._start_from_noise()
            return
        self.passes += 1
        converged = self._has_converged(ritz)
        before, self.ritz, self.previous_sums = self.ritz, ritz, self._sum_each_view(ritz)
        self._update_lowest(before, converged)
        self.transform = transform * lengths if converged else transform
        if converged:
            self._complete_coordinates()
        self._begin_stage("transform" if converged else "rotate")

    def _update_lowest(self, before: NDArray[np.float64], converged: bool) -> None:
        """Scale the estimates of the smallest eigenvalues with the largest ones; `before` has those before the filter.

        If the filter was too weak, the estimates may be too high, and are dropped.
        """
        if not converged:
            self.lowest[:] = -1.0
        for view, part in enumerate(self.new.parts):
            top, old_top = self.ritz[part].max(initial=0.0), before[part].max(initial=0.0)
            if self.lowest[view] > -1 and min(top, old_top) > MIN_EIGENVALUE:
                self.lowest[view] = max(self.lowest[view] * top / old_top, -1.0)

    def _preserves_spectrum(self, ritz: NDArray[np.float64]) -> bool:
        """Return whether each view captures about as much of the spectrum as at the last anchor, or as it still can.

        Where the graph has changed much, the second comparison is with what the columns captured before the filter. It
        does not detect columns that were lost entirely; their number does.
        """
        sums = self._sum_each_view(ritz)
        if self.fresh:
            return bool(sums.any()) or sum_eigenvalues(self.old.mu) == 0
        as_before = sums >= MIN_SPECTRUM_RATIO * self._sum_each_view(self.old.mu)
        as_possible = sums >= MIN_SPECTRUM_RATIO * self.previous_sums
        lost = [
            np.sum(ritz[part] > MIN_EIGENVALUE) < np.sum(self.old.mu[part] > MIN_EIGENVALUE) for part in self.new.parts
        ]
        return bool((as_before | (as_possible & np.logical_not(lost))).all())

    def _sum_each_view(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([sum_eigenvalues(values[part]) for part in self.new.parts])

    def _has_converged(self, ritz: NDArray[np.float64]) -> bool:
        if self.fresh:
            sums = self._sum_each_view(ritz)
            settled = bool((np.abs(sums - self.previous_sums) <= FRESH_TOLERANCE * sums).all())
            return self.passes >= MAX_FRESH_PASSES or (self.passes > OTHER_VIEW_PASSES and settled)
        smallest, cutoff = np.array([ritz[part].min(initial=1.0) for part in self.new.parts]), self.filter.cutoff
        strong_enough = (cutoff <= MIN_CUTOFF) | (smallest >= REPEAT_RATIO * cutoff)
        complete = not self.stopped_early and bool(strong_enough.all())
        return complete or self.passes >= MAX_ANCHOR_PASSES

    def _start_from_noise(self) -> None:
        if self.fresh:
            self._refuse()
        _log.info("anchor result unusable, solving from scratch: sequence=%d", self.since)
        self.fresh, self.passes, self.columns = True, 0, np.full(self.new.dim, -1)
        self.ritz = self.column_mu = np.zeros(self.new.dim)
        self._begin_stage("copy")

    def _refuse(self) -> None:
        raise CorrectionError(f"anchor that began after batch {self.since}: no usable vectors found; they are kept")

    def _rotate_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        """Replace rows of the block by Ritz vectors."""
        links, rows = store.graph.adjacency.links, RowRange(first, last, 1 / store.graph.adjacency.weight_scale.unit)
        rotation_kernels.rotate_rows(links, self._row_transform(), rows, self.workspace.current.array, *sums)
        return _NO_ROWS

    def _row_transform(self) -> RowTransform:
        """Return the arguments of kernels that deflate rows of the block and transform them."""
        return RowTransform(
            self.new.scaling.bounds, self.shifts[0].astype(np.float32), self.transform.astype(np.float32)
        )

    def _finish_rotate(self) -> None:
        self.column_mu = self.ritz
        self._complete_block()
        self._begin_filter(self.ritz)

    # ------------------------------------------------------------------ new rows and their alignment

    def _complete_coordinates(self) -> None:
        """Set the new coordinates, except for the rotation of served vectors and the lengths of rows."""
        self.new.mu[:], self.new.tau[:], self.new.lowest[:] = self.ritz, self.tau, self.lowest
        self.new.center[:] = self.center @ self.transform
        self.new.ready = True

    def _transform_rows(self, store: VectorStore, first: int, last: int, sums: list[Any], _: float) -> RowArray:
        """Write new rows, add up the products of the sampled ones with old vectors; return unplaced rows."""
        self._write_new_rows(store, first, last, sums[1])
        slices = sample_slices(store, first, last, "transform")
        new_rows = store.as_kernel_array(self.workspace.rows.array)
        sample = Sample(slices.start, last, slices.step, 1.0)
        rotation_kernels.add_alignment(new_rows, store.kernel_array, self._served_scalings(), sample, sums[0])
        links, placed = store.graph.adjacency.links, store.placed
        return first + np.flatnonzero((links.degree[first:last] > 0) & (placed[first:last] == 0))

    def _write_new_rows(self, store: VectorStore, first: int, last: int, longest: NDArray[np.float64]) -> None:
        """Write new rows to the workspace, and the largest lengths of views' parts to `longest`."""
        links, target = store.graph.adjacency.links, store.as_kernel_array(self.workspace.rows.array)
        arguments = self._row_transform(), RowRange(first, last, 1.0), self.workspace.current.array, target, longest
        rotation_kernels.write_new_rows(links, *arguments)

    def _served_scalings(self) -> ServedScalings:
        return ServedScalings(self.old.scaling, self.new.scaling, self.new.normalize)

    def _finish_transform(self) -> None:
        products, rotation = self.sums[0], self.old.rotation
        self.products, self.new.longest[:] = products.copy() if rotation is None else products @ rotation, self.sums[1]
        self._begin_stage("align")
        self._solution = submit(_solver(), self._alignment_work()), getpid()

    def _alignment_work(self) -> Callable[[], Any]:
        return partial(_solve_rotation, self.products)

    def _finish_align(self, rotation: NDArray[np.float64] | None) -> None:
        if rotation is None or not np.isfinite(self.new.longest).all():
            self._refuse()
        self.new.set_rotation(rotation)
        self._begin_stage("catch_up")

    # ------------------------------------------------------------------ batches in the meantime

    def record_batch(self, store: VectorStore, moved: RowArray, first_new: int) -> None:
        """Follow a batch that has moved these rows: remember those that the blocks do not have as they are now.

        A new vertex has a zero row in the blocks. A row computed from its neighbors there would be wrong: the filter
        makes columns nearly dependent, and a local step would divide each of them by the eigenvalue of another.
        """
        workspace, arrival = self.workspace, store.graph.arrival
        workspace.grow(store.graph.adjacency.capacity)
        if self.swapped:  # the new rows have replaced the old ones
            return
        in_last_step = self.column_part > 0 or self.filter.in_last_step  # for the first part of the columns at least
        filtered = self.stage > _FILTER or (self.stage == _FILTER and in_last_step)
        workspace.record_moved(moved, arrival, first_new, with_known=filtered)
        if self.stage_name in ("align", "catch_up"):
            new = moved[arrival[moved] >= first_new]
            self._admit(store, new[np.argsort(arrival[new], kind="stable")])

    def _admit(self, store: VectorStore, new: RowArray) -> None:
        """Give new vertices, in order of arrival, a row in the new coordinates."""
        rows = store.as_kernel_array(self.workspace.rows.array)
        step_kernels.admit(self._states.get(store, self.new, rows), new)

    def clear_rows(self, rows: RowArray) -> None:
        """Forget rows whose vertices were removed."""
        self.workspace.grow(int(rows.max(initial=-1)) + 1)
        self.workspace.clear_rows(rows)

    def _catch_up(self, store: VectorStore, credit: float) -> float:
        """Refresh queued rows in the new coordinates; return the cost."""
        return self._refresh_queued(store, count_queued_rows(credit))

    def _refresh_queued(self, store: VectorStore, count: int) -> float:
        """Refresh up to this many queued rows; return their number."""
        rows = self.workspace.take(count)
        self._refresh_rows(store, rows)
        self.ready = not self.workspace.queued.size
        return float(rows.size)

    def _refresh_rows(self, store: VectorStore, rows: RowArray) -> None:
        """Refresh rows in the new coordinates, slice by slice."""
        placed, block = store.placed[rows] == 1, self.workspace.rows.array
        if not placed.all():
            block[rows[~placed & (store.graph.adjacency.links.degree[rows] == 0)]] = 0
        state, key = self._states.get(store, self.new, store.as_kernel_array(block)), draw_key(self.seed, self.since, 1)
        for first in range(0, rows.size, SLICE_ROWS):
            part = slice(first, first + SLICE_ROWS)
            step_kernels.refresh(state, rows[part][placed[part]], kernels.MAX_NEIGHBORS, key)

    def _swap(self, store: VectorStore) -> None:
        """Replace all rows of the store; the old ones are served until they are announced."""
        rows, arrival = np.concatenate(self.unplaced).T
        degree = store.graph.adjacency.links.degree
        store.placed[rows[(store.graph.arrival[rows] == arrival) & (degree[rows] > 0)]] = 1
        self.workspace.exchange_rows(store)
        self.workspace.clear_queue()
        self.swapped, self.ready = True, False
        self._begin_stage("announce")

    # ------------------------------------------------------------------ served vectors after the swap

    def serves_old(self, rows: RowArray) -> NDArray[np.bool_]:
        """Return which rows are still served as they were before the correction."""
        return (rows >= self.served) & (self.workspace.marked.array[rows] == 0)

    def serve_new(self, rows: RowArray) -> None:
        """Serve these rows from the new ones from now on: a batch reports their vectors."""
        self.workspace.marked.array[rows[rows >= self.served]] = 1

    def read_old(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the served vectors of rows before the correction."""
        return self.old.to_served(self.workspace.rows.array[rows])

    def _announce_rows(self, store: VectorStore, first: int, last: int, _: list[Any], threshold: float) -> RowArray:
        """Return the rows whose served vector moves by more than the threshold, if no batch moves them before."""
        far, rows = np.zeros(last - first, bool), RowRange(first, last, 1.0)
        before = store.as_kernel_array(self.workspace.rows.array)
        arguments = before, store.kernel_array, self._served_scalings(), self._old_to_new_axes()
        rotation_kernels.find_moved(*arguments, rows, threshold, far)
        return first + np.flatnonzero(far)

    def _old_to_new_axes(self) -> NDArray[np.float32]:
        """Return the rotation from the old internal axes to the new ones, in which served vectors are compared."""
        if self._axes is None:
            old, new = (np.eye(self.new.dim) if c.rotation is None else c.rotation for c in (self.old, self.new))
            with limit_blas_to_one_thread():
                self._axes = (old @ new.T).astype(np.float32)
        return self._axes

    def _finish_announce(self) -> None:
        self.ready = True

    # ------------------------------------------------------------------ saved state

    def progress(self) -> NDArray[np.float64]:
        """Return numbers that differ between two corrections that have not computed the same."""
        position = [self.since, self.stage, self.column_part, self.filter.step, self.cursor, self.served, self.ready]
        sums = [float(array.sum()) for array in (*self.sums, *self.chunk_sums, self.shifts, self.center, self.ritz)]
        return np.array([*position, self.passes, self.workspace.queued.size, self.credit, self.paid_growth, *sums])

    def state(self, store: VectorStore) -> dict[str, NDArray[Any]]:
        """Return a copy of the correction as arrays, for saving."""
        rows, workspace = store.graph.row_count, self.workspace
        workspace.grow(rows)
        blocks = {getattr(workspace, name): name for name in self.saved_blocks[self.stage_name]}
        return {
            **{name: np.array(getattr(self, name)) for name in (*_NUMBERS, *_ARRAYS)},
            **{f"sums{index}": array.copy() for index, array in enumerate((*self.sums, *self.chunk_sums))},
            **{f"filter_{name}": array for name, array in self.filter.state().items()},
            **{f"block_{name}": block.array[:rows].copy() for block, name in blocks.items()},
            **self.before.state("old_"),
            **self.after.state("new_"),
            "marked": workspace.marked.array[:rows].copy(),
            "queue": workspace.queued.copy(),
            "unplaced": np.concatenate(self.unplaced),
        }

    @classmethod
    def from_state(
        cls, state: dict[str, NDArray[Any]], before: Version, after: Version, workspace: Workspace, store: VectorStore
    ) -> Self:
        """Restore a correction from the arrays of `state`."""
        correction = cls(before, after, workspace, 0, 0)
        for name, kind in _NUMBERS.items():
            setattr(correction, name, kind(state[name]))
        for name in _ARRAYS:
            setattr(correction, name, state[name])
        correction.filter.restore(strip_prefix("filter_", state))
        cursor, correction._found = correction.cursor, None if correction.swapped else []
        correction._begin_stage(correction.stage_name)
        correction.cursor, count = cursor, len(correction.sums)
        correction.sums = [state[f"sums{index}"] for index in range(count)]
        correction.chunk_sums = [state[f"sums{index}"] for index in range(count, 2 * count)]
        workspace.grow(store.graph.adjacency.capacity)
        rows = store.graph.row_count
        for name in cls.saved_blocks[correction.stage_name]:
            if (block := state.get(f"block_{name}")) is not None:  # one array can be two blocks
                getattr(workspace, name).array[:rows] = block
        workspace.restore_queue(state["queue"], state["marked"])
        correction.unplaced = [state["unplaced"]]
        return correction


def is_correction(saved: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether saved arrays are a correction of this version; earlier ones saved fewer numbers."""
    return "column_parts" in saved


def describe_saved_arrays(
    stage: str, blocks: Mapping[str, tuple[Any, int]], rows: int, dim: int, views: int
) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return type and shape of the arrays of finite numbers in a saved correction, by name.

    `blocks` are type and columns of its blocks.
    """
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("ritz", "column_mu", "center", "column_lengths", "unfiltered_lengths"), (dim,)),
        **dict.fromkeys(("lowest", "tau", "previous_sums", "filter_cutoff", "filter_half", "filter_middle"), (views,)),
        **dict.fromkeys(("filter_first_sigma", "filter_sigma"), (views,)),
        **dict.fromkeys(("transform", "products"), (dim, dim)),
        "filter_factors": (views, 3),
        "shifts": (2, dim),
        "block_totals": (4,),
        "grams": (3, dim, dim),
    }
    sums = _sum_shapes(stage, dim, views)
    shapes |= {f"sums{index}": shape for index, shape in enumerate((*sums, *sums))}
    floats: dict[str, tuple[Any, tuple[int, ...]]] = {name: (np.float64, shape) for name, shape in shapes.items()}
    return floats | {f"block_{name}": (dtype, (rows, columns)) for name, (dtype, columns) in blocks.items()}


def describe_saved_blocks(names: Iterable[str], precision: Any, dim: int, parts: int) -> dict[str, tuple[Any, int]]:
    """Return type and columns of the saved blocks among those with these names, by name; see `Workspace`."""
    blocks = {
        "current": (np.float32, dim),
        "spare": (np.float32, count_spare_columns(dim, parts)),
        "rows": (precision, dim),
    }
    same = precision == np.float32 and "rows" in names
    return {name: blocks[name] for name in names if not (same and name == "current")}


def _sum_shapes(stage: str, dim: int, views: int) -> list[tuple[int, ...]]:
    """Return the shapes of the sums over rows that a stage adds up."""
    shapes: dict[str, list[tuple[int, ...]]] = {
        **{name: [(4, dim), (4,)] for name in ("copy", "filter", "rotate")},
        "project": [(3, dim, dim), (1,)],
        "transform": [(dim, dim), (views,)],
    }
    return shapes.get(stage, [(2, dim), (4,)])


def count_queued_rows(credit: float) -> int:
    """Return the number of queued rows that a credit pays for: complete slices."""
    return max(1, ceil(min(credit, 1e9) / SLICE_ROWS)) * SLICE_ROWS


def _split_at_chunks(first: int, last: int) -> list[tuple[int, int]]:
    """Split a range of rows where chunks end."""
    return list(pairwise([first, *range((first // CHUNK_ROWS + 1) * CHUNK_ROWS, last, CHUNK_ROWS), last]))


def sample_slices(store: VectorStore, first: int, last: int, stage: str) -> range:
    """Return the first rows of the slices between first and last that are in the sample of a stage."""
    step = sample_step(stage, store.graph.row_count)
    return range(ceil(first / step) * step, last, step)


def _solve_views(
    coordinates: Coordinates, grams: NDArray[np.float64], mean_degree: float, active: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Solve the Rayleigh–Ritz problem of every view, given Σ (d+τ) x xᵀ, Σ (d+τ) x (Wx)ᵀ and Σ x xᵀ over rows.

    Returns Ritz values, the block-diagonal matrix that turns columns into Ritz vectors of length one, and the lengths
    that new columns get. The mean squared length of rows is then one.
    """
    dim = coordinates.dim
    ritz, transform, lengths = np.zeros(dim), np.zeros((dim, dim)), np.zeros(dim)
    if not np.isfinite(grams).all():
        return np.full(dim, np.nan), transform, lengths
    with limit_blas_to_one_thread():
        for view, part in zip(coordinates.views, coordinates.parts, strict=True):
            gram, projected, plain = (matrix[part, part] for matrix in grams)
            ritz[part], columns = solve_projected(gram, projected)
            transform[part, part] = columns
            relative = view.column_lengths(ritz[part], mean_degree)
            squares = np.maximum((columns * (plain @ columns)).sum(axis=0), 0.0)
            lengths[part] = relative * np.sqrt(active / max(float((squares * relative**2).sum()), 1e-300))
    return ritz, transform, lengths


def _solve_rotation(products: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the orthogonal Procrustes solution for Σ newᵀ old; None if it is not finite."""
    if not np.isfinite(products).all():
        return None
    with limit_blas_to_one_thread():
        left, _, right = np.linalg.svd(products)
        return np.asarray(left @ right)


def _solver() -> ThreadPoolExecutor:
    return _solver_of_process(getpid())


@cache
def _solver_of_process(process: int) -> ThreadPoolExecutor:
    """Return the thread that solves k×k problems; a forked child does not inherit the threads of its parent."""
    return ThreadPoolExecutor(1, thread_name_prefix="ripplevec-solve")
