"""The attribute part of every vertex: set from its own attributes, or from those of its neighbors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.attributes import _kernels as kernels
from ripplevec.attributes._kernels import OWN
from ripplevec.attributes.kept import KeptAttributes
from ripplevec.attributes.projection import SLICE_ATTRIBUTES, Part, Projection
from ripplevec.attributes.table import DERIVED, NONE, AttributeTable
from ripplevec.batch import AttributeRows
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import Graph, strip_prefix

MAX_NEIGHBORS = 256  # neighbors that a derived part is the mean of: the latest ones
LEARN_AT_ONCE = 4  # below this many rows per column, the basis is learned again whenever the rows have doubled
REFIT_GROWTH = 0.1  # growth of the number of rows from one refit of the basis to the next
REFIT_ATTRIBUTES = 24  # attributes of a refit that every new row pays for
REFRESHED_ROWS = 8  # rows that are projected again, after a refit, for every new row
DEFAULT_WEIGHT = 0.5  # of attribute parts, unless hidden edges are clearly better predicted with another one
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class AttributeSettings:
    """Settings of the attributes of a model."""

    columns: int  # dimensions of the attribute part of a vector
    seed: int
    keep: bool  # whether sparse attributes are kept
    weight: float | None  # of attribute parts; None: it is chosen


class WeightChoice(NamedTuple):
    """The weight of attribute parts, and the scores of the weights to choose from, if it was chosen."""

    weight: float = DEFAULT_WEIGHT
    scores: tuple[float, ...] = ()


class StoredRows(NamedTuple):
    """Rows of the graph with attributes, and these as a matrix: sparse, or dense if `values` has two dimensions."""

    rows: RowArray
    begin: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]


WeightChooser: TypeAlias = "Callable[[AttributeStore, StoredRows], WeightChoice]"
"""Chooses the weight of attribute parts; see `weight_choice.py`."""


class AttributeStore(AttributeTable):
    """Attribute parts of all vertices of a graph, and the projection that they come from."""

    def __init__(self, graph: Graph, settings: AttributeSettings) -> None:
        super().__init__(graph, settings.columns)
        self.settings, self.projection = settings, Projection(settings.columns, settings.seed)
        self.choice = WeightChoice(DEFAULT_WEIGHT if settings.weight is None else settings.weight)
        self.rows = 0  # vertices with attributes
        self.rows_at_refit = 0  # when the basis was last learned, or its refit begun
        self.refresh_position = -1  # row from which the parts are still to be computed with the new basis; −1: none
        self.credit = 0  # attributes of a refit that are paid for and not processed

    @property
    def nbytes(self) -> int:
        """Bytes used."""
        return super().nbytes + self.projection.nbytes

    @property
    def _learns_at_once(self) -> bool:
        return self.rows_at_refit < LEARN_AT_ONCE * self.columns

    @property
    def _keeps_rows(self) -> bool:
        """Whether attributes are kept: sparse ones on request, and all of them until there are enough."""
        return (self.settings.keep and self.projection.kind == "sparse") or self._learns_at_once

    # ------------------------------------------------------------------ changes

    def clear(self, rows: RowArray) -> None:
        """Remove the parts of rows, for example of removed vertices."""
        known = rows[rows < len(self.status)]
        for row in known[self.status[known] == OWN].tolist():
            self._forget(row)
        self.status[known], self.parts[known] = NONE, 0.0

    def set_start(self, rows: RowArray, attributes: AttributeRows, choose: WeightChooser | None = None) -> None:
        """Set the attributes of an initial graph, and the parts of the vertices without; then choose the weight."""
        self.grow()
        projection = self.projection
        columns = projection.enter_columns(attributes)
        filled = np.flatnonzero(np.diff(attributes.begin))
        rows, begin = rows[filled], np.append(attributes.begin[filled], attributes.begin[-1])
        self.rows = self.rows_at_refit = rows.size
        if rows.size:
            projection.count_all(rows.size, columns, attributes.values)
            self.status[rows] = OWN
            self.parts[rows] = projection.learn(begin, columns, attributes.values, self._adjacency(rows))
            if self._keeps_rows:
                flat = np.tile(columns, rows.size) if attributes.kind == "dense" else columns
                self.kept.set_all(rows, begin, flat, attributes.values.ravel())
        self._derive(self._live_rows())
        if choose is not None and rows.size and self._may_choose:
            self.choice = choose(self, StoredRows(rows, begin, columns, attributes.values))

    @property
    def _may_choose(self) -> bool:
        """Whether the weight is not given, and has not been chosen: it changes once at most."""
        return self.settings.weight is None and not self.choice.scores

    def choose_weight(self, choose: WeightChooser) -> bool:
        """Choose the weight if it is still to be chosen and all attributes are kept; return whether it changed."""
        before = self.choice.weight
        if self.rows and self._keeps_rows and self._may_choose:
            self.choice = choose(self, self._gather_kept())
        return self.choice.weight != before

    def update(self, named: RowArray, rows: RowArray, attributes: AttributeRows | None) -> RowArray:
        """Set the attributes of rows, then continue the update of all parts; return the rows whose part moved.

        `named` are the rows that a batch names. Those without a part get it from their neighbors.
        """
        self.grow()
        moved = [rows]
        entered = 0
        if attributes is not None:
            before = self.rows
            self._enter_all(rows, attributes)
            entered = rows.size
            if self._learns_at_once and self.rows >= max(2 * self.rows_at_refit, before + 1):
                moved.append(self._learn())
            named = np.concatenate([named, self._neighbors_without_part(rows)])
        named = np.unique(named)
        moved.append(self._derive(named[self.status[named] == NONE]))
        moved.append(self._advance(entered))
        return np.unique(np.concatenate(moved))

    def relearn(self) -> None:
        """Learn the projection again from all attributes that are kept, and compute all parts anew."""
        self.grow()
        if not self.rows:
            return
        if self._keeps_rows:
            self._learn()
        else:
            self.projection.begin_refit()
            self.projection.advance_refit(self.projection.size * 2)
            # Rows that were dropped cannot be learned from again, even if few vertices are left.
            self.rows_at_refit = max(self.rows, LEARN_AT_ONCE * self.columns)
        self.refresh_position, self.credit = -1, 0
        self._derive(self._live_rows())

    def _enter_all(self, rows: RowArray, attributes: AttributeRows) -> None:
        """Count rows, keep them if necessary, and project them if there is a basis."""
        projection = self.projection
        columns = projection.enter_columns(attributes)
        for position, row in enumerate(rows.tolist()):
            entries = attributes.entries(position, columns)
            if self.status[row] == OWN:
                self._forget(row)
            if not entries[1].size:
                self.status[row], self.parts[row] = NONE, 0.0
                continue
            self.status[row] = OWN
            self.rows += 1
            if projection.learned:
                self.parts[row] = projection.project(*entries, self._sum_of_neighbors(row))
            projection.count(*entries)
            if self._keeps_rows:
                self.kept.set(row, *entries)

    def _forget(self, row: int) -> None:
        """Remove the attributes of a row from the counts."""
        self.rows -= 1
        columns, values = self.kept.get(row)
        if values.size:
            self.projection.count(columns, values, -1)
            self.kept.clear(row)

    def _live_rows(self) -> RowArray:
        return np.flatnonzero(self.graph.arrival[: self.graph.row_count] >= 0)

    def _learn(self) -> RowArray:
        """Learn the basis from all rows, which are kept; return the rows, whose parts are computed anew."""
        rows, begin, columns, values = self._gather_kept()
        self.parts[rows] = self.projection.learn(begin, columns, values, self._adjacency(rows))
        self.rows_at_refit = self.rows
        if not self._keeps_rows:
            self.kept = KeptAttributes()
        return rows

    def _gather_kept(self) -> StoredRows:
        """Return all rows with attributes, which are kept."""
        rows = np.flatnonzero(self.status[: self.graph.row_count] == OWN)
        kept = self.kept.gather(rows)
        values = kept["values"]
        if self.projection.kind == "dense":
            values = values.reshape(rows.size, -1)
        return StoredRows(rows, kept["begin"], kept["columns"], values)

    def _adjacency(self, rows: RowArray) -> csr_array:
        """Return the adjacency matrix between rows, normalized by the strengths of both ends."""
        links, slots = self.graph.adjacency.links, self.graph.adjacency.slots(rows)
        position = np.full(self.graph.row_count, -1, np.int64)
        position[rows] = np.arange(rows.size)
        source, target = np.repeat(rows, links.degree[rows]), links.neighbor[slots]
        inside = position[target] >= 0
        source, target = source[inside], target[inside]
        scale = np.sqrt(links.strength[source] * links.strength[target])
        values = (links.weight[slots[inside]] / scale).astype(np.float32)
        return csr_array((values, (position[source], position[target])), shape=(rows.size, rows.size))

    def _sum_of_neighbors(self, row: int) -> Part:
        part = np.empty(self.columns, np.float32)
        kernels.sum_of_neighbors(self.graph.adjacency.links, row, self.status, self.parts, MAX_NEIGHBORS, part)
        return part

    def _neighbors_without_part(self, rows: RowArray) -> RowArray:
        """Return those of the latest neighbors of rows that have no part."""
        adjacency = self.graph.adjacency
        found = [_NO_ROWS]
        for row in rows.tolist():
            slots = adjacency.slots(np.array([row]))[-MAX_NEIGHBORS:]
            found.append(adjacency.links.neighbor[slots].astype(np.int64))
        neighbors = np.concatenate(found)
        return neighbors[self.status[neighbors] == NONE]

    def _derive(self, rows: RowArray) -> RowArray:
        """Set the parts of rows without attributes from their neighbors; return the rows that have such a part."""
        if not self.projection.learned:
            return _NO_ROWS
        derived = [row for row in rows[self.status[rows] != OWN].tolist() if self._derive_one(row)]
        return np.array(derived, np.int64)

    def _derive_one(self, row: int) -> bool:
        links, part = self.graph.adjacency.links, self.parts[row]
        found = kernels.mean_of_neighbors(links, row, self.status, self.parts, MAX_NEIGHBORS, part)
        self.status[row] = DERIVED if found else NONE
        return bool(found)

    # ------------------------------------------------------------------ updates in slices

    def _advance(self, entered: int) -> RowArray:
        """Pay for slices of a refit, and for rows to be projected again; return the rows whose part moved."""
        if not entered or not self.projection.learned or self._learns_at_once:
            return _NO_ROWS
        projection = self.projection
        if (
            projection.position < 0
            and self.refresh_position < 0
            and self.rows > (1 + REFIT_GROWTH) * self.rows_at_refit
        ):
            projection.begin_refit()
            self.rows_at_refit, self.credit = self.rows, 0
        if projection.position >= 0:
            self.credit += entered * REFIT_ATTRIBUTES
            slices, self.credit = divmod(self.credit, SLICE_ATTRIBUTES)
            if projection.advance_refit(slices):
                self.refresh_position = 0
            return _NO_ROWS
        return self._refresh(entered * REFRESHED_ROWS) if self.refresh_position >= 0 else _NO_ROWS

    def _refresh(self, count: int) -> RowArray:
        """Compute the parts of the next rows with the current basis; return these rows."""
        first, end = self.refresh_position, self._refresh_end
        last = min(first + count, end)
        rows = self._rows_to_refresh(first, last)
        self.refresh_position = -1 if last == end else last
        own = rows[self.status[rows] == OWN] if self._keeps_rows else _NO_ROWS
        for row in own.tolist():
            self.parts[row] = self.projection.project(*self.kept.get(row))
        return np.concatenate([own, self._derive(rows)])

    @property
    def _refresh_end(self) -> int:
        """Position at which all parts have been computed with the current basis."""
        return self.graph.row_count

    def _rows_to_refresh(self, first: int, last: int) -> RowArray:
        """Return the live rows between two positions."""
        rows = np.arange(first, last)
        return rows[self.graph.arrival[rows] >= 0]

    # ------------------------------------------------------------------ saving

    def copy(self, graph: Graph) -> AttributeStore:
        """Return an independent copy for a copy of the graph."""
        other = AttributeStore(graph, self.settings)
        other.restore(self.state())
        return other

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        return super().state() | self.projection_state()

    def projection_state(self) -> dict[str, NDArray[Any]]:
        """Return the projection, the counters and the choice of the weight as arrays."""
        counters = self.rows, self.rows_at_refit, self.refresh_position, self.credit
        return {
            "counters": np.array(counters, np.int64),
            "weight": np.array([self.choice.weight, *self.choice.scores]),
            **{f"projection_{name}": array for name, array in self.projection.state().items()},
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`, which `check_attributes` has checked."""
        super().restore(state)
        self.restore_projection(state)

    def restore_projection(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the projection, the counters and, unless it is given, the weight."""
        self.rows, self.rows_at_refit, self.refresh_position, self.credit = state["counters"].tolist()
        if self.settings.weight is None:
            weight, *scores = state["weight"].tolist()
            self.choice = WeightChoice(weight, tuple(scores))
        self.projection.restore(strip_prefix("projection_", dict(state)))


def select_attribute_arrays(state: Mapping[str, NDArray[Any]], order: RowArray) -> dict[str, NDArray[Any]]:
    """Return the arrays of a saved state that enter the digest, with vertices in order of arrival."""
    arrays = {name: array for name, array in state.items() if not name.startswith("kept_")}
    kept = csr_array(
        (state["kept_values"], state["kept_columns"], state["kept_begin"]),
        shape=(len(state["status"]), int(state["kept_columns"].max(initial=0)) + 1),
    )[order]
    arrays |= {
        "parts": state["parts"][order],
        "status": state["status"][order],
        "kept_begin": kept.indptr.astype(np.int64),
        "kept_columns": kept.indices.astype(np.int64),
        "kept_values": kept.data,
    }
    return {f"attributes_{name}": array for name, array in arrays.items()}
