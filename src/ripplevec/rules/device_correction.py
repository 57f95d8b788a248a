"""A gradual correction that a GPU computes: the stream pays for copies of rows, and another thread for the rest.

The stages are those of `gradual_correction.py`, but for the filter and the Rayleigh–Ritz step:

    copy       copy the vectors and the edges of the rows to a snapshot
    solve      compute an anchor of the snapshot on the GPU, on another thread
    transform  copy the new rows, and add up the products that align them with the served vectors

The other stages are the same. The stream pays for the solve what it would pay for it on the CPU, so it waits for the
GPU only if the GPU is slower. The result is taken over once the solve is paid for, never earlier: the same batches give
the same bits, also if the model is saved and loaded in between. Nothing of this depends on the device. If a model is
loaded on a machine without a GPU, views with `device="auto"` compute the same stages on the CPU, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from os import getpid
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ripplevec.graph.adjacency import Adjacency, WeightScale
from ripplevec.graph.graph import strip_prefix
from ripplevec.rules.anchor import concatenate_views, solve_bases
from ripplevec.rules.correction_pace import COST, cost_per_row
from ripplevec.rules.correction_workspace import Workspace
from ripplevec.rules.gradual_correction import SAVED_BLOCKS, GradualCorrection, Version
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import GrowableArray
from ripplevec.util.parallel import submit
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.operators import resolve_device

SNAPSHOT_PREFIX = "snapshot_"


class GraphSnapshot:
    """Vectors, edges and arrival numbers of rows, each as it was when it was copied."""

    def __init__(self, dim: int) -> None:
        self.adjacency = Adjacency()
        self._vectors, self._arrival = GrowableArray(np.float32, (dim,)), GrowableArray(np.int64)

    @property
    def rows(self) -> int:
        """Number of copied rows."""
        return len(self._arrival.array)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors of all copied rows."""
        return self._vectors.array

    @property
    def arrival(self) -> NDArray[np.int64]:
        """The arrival number of the vertex of each copied row."""
        return self._arrival.array

    def append(self, store: VectorStore, last: int) -> None:
        """Copy the next rows, up to `last`."""
        rows = slice(self.rows, last)
        self.adjacency.append_rows(store.graph.adjacency, rows.start, last)
        self._vectors.grow(last)[rows] = store.vectors[rows]
        self._arrival.grow(last)[rows] = store.graph.arrival[rows]

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays, for saving."""
        edges = self.adjacency.weight_scale.effective_edges
        return {
            **self.adjacency.to_packed(slice(self.rows)),
            "vectors": self.vectors.copy(),
            "arrival": self.arrival.copy(),
            "effective_edges": np.array(edges),
        }

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]]) -> Self:
        """Restore the arrays of `state`."""
        rows, dim = state["vectors"].shape
        snapshot = cls(dim)
        snapshot.adjacency = Adjacency.from_packed(state, directed=False, duplicates="add")
        snapshot.adjacency.weight_scale = WeightScale(effective_edges=float(state["effective_edges"]))
        snapshot._vectors.grow(rows)[:] = state["vectors"]
        snapshot._arrival.grow(rows)[:] = state["arrival"]
        return snapshot


class DeviceCorrection(GradualCorrection):
    """One correction in progress on a GPU."""

    saved_blocks: ClassVar = SAVED_BLOCKS | {"copy": (), "solve": (), "transform": ("rows",)}

    def __init__(self, before: Version, after: Version, workspace: Workspace, seed: int, since: int) -> None:
        super().__init__(before, after, workspace, seed, since)
        self.snapshot: GraphSnapshot | None = GraphSnapshot(self.new.dim)  # until its new rows are copied
        self._bases: list[Basis] | None = None  # the result

    # ------------------------------------------------------------------ copy

    def _process_range(self, store: VectorStore, last: int, threshold: float, threads: int) -> None:
        if self.stage_name != "copy":
            super()._process_range(store, last, threshold, threads)
            return
        self._used_snapshot.append(store, last)
        self.cursor = last

    @property
    def _used_snapshot(self) -> GraphSnapshot:
        assert self.snapshot is not None
        return self.snapshot

    def _finish_copy(self) -> None:
        self._begin_stage("solve")
        self._solution = submit(_device_thread(getpid()), self._solve), getpid()

    # ------------------------------------------------------------------ solve

    @property
    def wait_cost(self) -> float:
        """Credit that pays for the current solve: on the GPU, as much as for the same stages on the CPU."""
        if self.stage_name != "solve":
            return super().wait_cost
        rows = self._used_snapshot.rows
        per_row = self._degree * COST["filter"] + cost_per_row("probe", rows) + cost_per_row("project", rows)
        return rows * per_row + super().wait_cost

    def _solve_work(self) -> Callable[[], Any]:
        return self._solve

    def _solve(self) -> list[Basis]:
        snapshot = self._used_snapshot
        seed = self.seed + self.since
        solve = partial(solve_bases, self.old, self.new, snapshot.adjacency, snapshot.vectors)
        return solve(seed=seed, sequence=self.since, threads=1)  # other threads belong to the stream

    def _finish_solve(self, solution: list[Basis]) -> None:
        self._bases = solution
        self.new.adopt_bases(solution)
        self._begin_stage("transform")

    # ------------------------------------------------------------------ transform

    def _write_new_rows(self, store: VectorStore, first: int, last: int, longest: NDArray[np.float64]) -> None:
        """Write new rows; zero for vertices without edges, and for those that arrived after the snapshot."""
        snapshot, links = self._used_snapshot, store.graph.adjacency.links
        if self._bases is None:  # the model was just loaded
            self._bases = self._solve()
        rows, known = np.zeros((last - first, self.new.dim), np.float32), slice(first, min(last, snapshot.rows))
        if known.stop > first:
            rows[: known.stop - first] = concatenate_views(self._bases, first, known.stop)
            same = snapshot.arrival[known] == store.graph.arrival[known]
            rows[: same.size][~same] = 0
        rows[links.degree[first:last] == 0] = 0
        self.workspace.rows.array[first:last] = rows
        squares = [np.square(rows[:, part]).sum(axis=1).max(initial=0.0) for part in self.new.parts]
        np.maximum(longest, np.sqrt(squares), out=longest)

    def _finish_transform(self) -> None:
        super()._finish_transform()
        self.snapshot = self._bases = None

    # ------------------------------------------------------------------ saved state

    def state(self, store: VectorStore) -> dict[str, NDArray[Any]]:
        """Return a copy of the correction as arrays, for saving; without a snapshot, it is a `GradualCorrection`."""
        snapshot = {} if self.snapshot is None else self.snapshot.state()
        return super().state(store) | {f"{SNAPSHOT_PREFIX}{name}": array for name, array in snapshot.items()}

    @classmethod
    def from_state(
        cls, state: dict[str, NDArray[Any]], before: Version, after: Version, workspace: Workspace, store: VectorStore
    ) -> Self:
        """Restore a correction that has a snapshot from the arrays of `state`."""
        correction = super().from_state(state, before, after, workspace, store)
        correction.snapshot = GraphSnapshot.from_state(strip_prefix(SNAPSHOT_PREFIX, state))
        return correction


def uses_gpu(coordinates: Coordinates) -> bool:
    """Return whether a view of these coordinates computes on a GPU."""
    return any(resolve_device(getattr(view, "device", "cpu")) == "cuda" for view in coordinates.views)


def kind_of_correction(state: Mapping[str, NDArray[Any]]) -> type[GradualCorrection]:
    """Return the class of a saved correction."""
    return DeviceCorrection if f"{SNAPSHOT_PREFIX}arrival" in state else GradualCorrection


@cache
def _device_thread(process: int) -> ThreadPoolExecutor:
    """Return the thread that computes on the GPU; a forked child does not inherit the threads of its parent."""
    return ThreadPoolExecutor(1, thread_name_prefix="ripplevec-device")
