"""State of a `LinkScorer`: the history of vertices by row, the targets so far, weights and calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch
from ripplevec.engine.state_validation import MAX_COUNT, check_ids
from ripplevec.errors import InvalidValueError
from ripplevec.graph.graph import strip_prefix
from ripplevec.graph.id_table import IdTable
from ripplevec.link_scoring import _kernels as kernels
from ripplevec.link_scoring._calibration import KNOTS, Calibration
from ripplevec.link_scoring._kernels import RECENT, WIDTH, Candidates, History, Regression
from ripplevec.util.growable_array import GrowableArray, next_capacity
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES

Rows = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
"""Value of `History.begin` for a row without a vertex."""

_HISTORY_COLUMNS: dict[str, tuple[Any, tuple[int, ...], int]] = {  # type, shape per vertex, initial value
    "partner": (np.int64, (2, RECENT), -1),
    "repeats": (np.float32, (2, RECENT), 0),
    "tick": (np.int64, (2, RECENT), 0),
    "events": (np.float32, (2,), 0),
    "begin": (np.int64, (), 0),
}


class EnteredBatch(NamedTuple):
    """Rows of a batch that the model has not applied yet."""

    src: Rows
    dst: Rows
    new_rows: Rows  # rows of vertices without a history
    targets: Rows  # rows of all targets, with those of the batch


class Examples(NamedTuple):
    """What a batch is scored with and learned from."""

    cosines: NDArray[np.float32]  # of its pairs
    alternatives: Candidates
    importance: float  # of a random alternative
    candidates: Candidates
    by_batch: bool
    scores: NDArray[np.float64]  # the result: one line per event


class ScorerState:
    """Everything that a scorer has learned.

    A batch is entered before the model applies it, then observed; or withdrawn, if the model rejects it. The rows of
    removed vertices are reused. Other vertices may still have such a row as a partner, in entries from before
    `History.begin`, which do not count.
    """

    def __init__(self) -> None:
        self.ids, self.events = IdTable(), 0
        self.columns = {
            name: GrowableArray(dtype, shape, fill=fill) for name, (dtype, shape, fill) in _HISTORY_COLUMNS.items()
        }
        self.regression = Regression(np.zeros(WIDTH), np.eye(WIDTH))
        self.calibration = Calibration(np.zeros(KNOTS), np.zeros(KNOTS))
        self.entered: EnteredBatch | None = None
        self.update_incomplete = False  # a batch has been entered, and neither observed nor withdrawn
        self._targets, self._target_count = GrowableArray(np.int64), 0
        self._target_places = GrowableArray(np.int64, fill=-1)  # by row: the place in `_targets`, −1 for other vertices

    @property
    def targets(self) -> Rows:
        """Rows of all targets so far, in order of their first event as long as no vertex is removed."""
        return self._targets.array[: self._target_count]

    @property
    def history(self) -> History:
        """The history as kernels see it."""
        return History(**{name: column.array for name, column in self.columns.items()})

    # ------------------------------------------------------------------ batches

    def enter(self, batch: Batch) -> EnteredBatch:
        """Assign rows to the vertices of added edges; new vertices get an empty history."""
        self.update_incomplete = True
        src, dst, new_rows = self.ids.intern(batch.src, batch.dst)
        self._grow(self.ids.row_count)
        self.columns["begin"].array[new_rows] = self.events
        self.entered = EnteredBatch(src, dst, new_rows, self._add_targets(dst))
        return self.entered

    def withdraw(self) -> None:
        """Undo `enter`: rows and targets will be assigned again in the same order."""
        assert self.entered is not None
        entered, self.entered = self.entered, None
        self._target_places.array[entered.targets[self._target_count :]] = -1
        self._free(entered.new_rows[::-1])
        self.update_incomplete = False

    def observe(self, examples: Examples, removed: Rows) -> None:
        """Score the entered events, learn from them, record them; and forget the vertices of removed rows."""
        assert self.entered is not None
        entered, self.entered = self.entered, None
        kernels.observe_events(
            self.history,
            self.regression,
            self.calibration,
            entered.src,
            entered.dst,
            self.events,
            examples.cosines,
            examples.alternatives,
            examples.importance,
            examples.candidates,
            examples.by_batch,
            examples.scores,
        )
        self.events += len(entered.src)
        self._target_count = len(entered.targets)
        for row in removed.tolist():
            self._remove_target(row)
        self._free(removed)
        self.update_incomplete = False

    def _grow(self, rows: int) -> None:
        capacity = len(self._target_places.array)
        if rows > capacity:
            for column in (*self.columns.values(), self._target_places):
                column.grow(next_capacity(capacity, rows, CACHE_LINE_BYTES))

    def _add_targets(self, dst: Rows) -> Rows:
        """Return all targets so far and the new ones of a batch: negative examples are drawn from them.

        Those of the batch are included, so that even the first batch has negative examples.
        """
        distinct = dst[np.sort(np.unique(dst, return_index=True)[1])]
        new = distinct[self._target_places.array[distinct] < 0]
        first, end = self._target_count, self._target_count + len(new)
        if end > len(self._targets.array):
            self._targets.grow(next_capacity(len(self._targets.array), end, 8))
        self._targets.array[first:end] = new
        self._target_places.array[new] = np.arange(first, end)
        return self._targets.array[:end]

    def _remove_target(self, row: int) -> None:
        """Remove a row from the targets, if it is one; the last target takes its place."""
        places, targets = self._target_places.array, self._targets.array
        if places[row] >= 0:
            self._target_count -= 1
            last = targets[self._target_count]
            targets[places[row]], places[last] = last, places[row]
            places[row] = -1

    def _free(self, rows: Rows) -> None:
        """Remove the ids and the history of rows."""
        self.ids.remove(rows)
        for name, (_, _, fill) in _HISTORY_COLUMNS.items():
            self.columns[name].array[rows] = NEVER if name == "begin" else fill

    # ------------------------------------------------------------------ saving and loading

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the state, without the number of events, as arrays."""
        rows = self.ids.row_count
        return {
            **{f"ids_{name}": array for name, array in self.ids.state().items()},
            **{f"history_{name}": column.array[:rows].copy() for name, column in self.columns.items()},
            **{f"learned_{name}": array.copy() for name, array in self._learned().items()},
            "targets": self.targets.copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], events: Any) -> ScorerState:
        """Restore a state, after checking everything that the kernels rely on."""
        if isinstance(events, bool) or not isinstance(events, int) or not 0 <= events <= MAX_COUNT:
            raise InvalidValueError.of("events", "a number of events", events)
        state, ids = cls(), strip_prefix("ids_", arrays)
        check_ids(ids)
        state.ids, state.events = IdTable.from_state(ids), events
        state._restore_history(arrays)
        for name, part in state._learned().items():
            bound = float(MAX_COUNT)
            _check_column(name, arrays[f"learned_{name}"], part, 0.0 if name in Calibration._fields else -bound, bound)
            part[:] = arrays[f"learned_{name}"]
        _check_covariance(state.regression.covariance)
        state._restore_targets(arrays["targets"])
        return state

    def _restore_history(self, arrays: dict[str, NDArray[Any]]) -> None:
        rows = self.ids.row_count
        limits = {
            "partner": (-1, rows - 1),
            "tick": (0, self.events),
            "repeats": (0, MAX_COUNT),
            "events": (0, MAX_COUNT),
            "begin": (0, NEVER),
        }
        self._grow(rows)
        for name, column in self.columns.items():
            saved = arrays[f"history_{name}"]
            _check_column(name, saved, column.array[:rows], *limits[name])
            column.array[:rows] = saved
        self.columns["begin"].array[self.ids.state()["free"]] = NEVER

    def _restore_targets(self, targets: NDArray[Any]) -> None:
        rows = self.ids.row_count
        _check_column("targets", targets, np.empty(targets.size, np.int64), 0, rows - 1)
        if len(self._add_targets(targets)) != len(targets) or (self.columns["begin"].array[targets] == NEVER).any():
            raise InvalidValueError.of("targets", "each vertex at most once, and no free row", "other rows")
        self._target_count = len(targets)

    def _learned(self) -> dict[str, NDArray[np.float64]]:
        """Return all arrays that are learned from examples."""
        return self.regression._asdict() | self.calibration._asdict()


def _check_column(name: str, saved: NDArray[Any], expected: NDArray[Any], least: float, most: float) -> None:
    """Raise if a saved array has another type or shape than expected, or values out of range."""
    if saved.shape != expected.shape or saved.dtype != expected.dtype:
        raise InvalidValueError.of(name, f"{expected.dtype} of shape {expected.shape}", f"{saved.dtype}, {saved.shape}")
    if saved.size and not (least <= saved.min() and saved.max() <= most):  # false for NaN, too
        raise InvalidValueError.of(name, f"{least:g} to {most:g}", f"{saved.min()} to {saved.max()}")


def _check_covariance(covariance: NDArray[np.float64]) -> None:
    """Raise if a matrix is not symmetric and positive semidefinite: learning would diverge."""
    tolerance = 1e-6 * max(1.0, float(np.abs(covariance).max()))
    if np.abs(covariance - covariance.T).max() > tolerance or np.linalg.eigvalsh(covariance)[0] < -tolerance:
        raise InvalidValueError.of("covariance", "a symmetric matrix without negative eigenvalues", "another one")
