"""Reads of a model with attributes, on one machine or on shards, and searches among its rows.

A served vector is [edge part | weight × attribute part], each part scaled to length one, and the whole as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes._kernels import OWN, join_rows, mean_of_rows
from ripplevec.attributes.store import AttributeStore
from ripplevec.attributes.table import NONE, AttributeTable
from ripplevec.attributes.weight_choice import WEIGHTS
from ripplevec.batch import AttributeRows
from ripplevec.changes import Changes
from ripplevec.engine.reads import EngineReads, LocalReads, Search, VertexInfo
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search import exact
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.views._kernels import ViewScaling, scale_to_unit

PREFIX = "attributes_"
"""Beginning of the names of saved arrays."""


class AttributedReads(EngineReads):
    """Read methods of an engine with attributes, before those of an engine without.

    `read_rows` returns the attribute parts of rows and their status as "attribute_parts" and "attribute_status".
    """

    attributes: AttributeStore

    @property
    def attribute_weight(self) -> float:
        """Length of the attribute part of a vector relative to its edge part."""
        return self.attributes.choice.weight

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return super().dim + self.attribute_dim

    def check_attributes(self, attributes: AttributeRows | None) -> None:
        """Raise `InvalidValueError` if attributes are not of the kind or the width of earlier ones."""
        if attributes is not None:
            self.attributes.projection.check(attributes)

    def placed(self, rows: RowArray) -> NDArray[np.bool_]:
        """Return which rows have a vector."""
        return super().placed(rows) | (self.read_rows(rows, "attribute_status") != NONE)

    def vertex_info(self, row: int) -> VertexInfo:
        """Return the properties of one vertex."""
        info = super().vertex_info(row)
        return info._replace(placed=info.placed or bool(self.read_row(row, ["attribute_status"])[0] != NONE))

    def diagnostics(self) -> dict[str, Any]:
        """Return sizes, counters and quality measures."""
        store = self.attributes
        scores = zip(WEIGHTS, store.choice.scores, strict=False)
        return super().diagnostics() | {
            "attributed": store.rows,
            "attribute_names": store.projection.size,
            "attribute_weight": self.attribute_weight,
            "attribute_weight_scores": {f"{weight:g}": round(score, 4) for weight, score in scores},
        }

    def get_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows as users see them."""
        return self._join(super().get_vectors(rows), self._read_parts(rows))

    def unit_vectors(self, rows: RowArray) -> NDArray[np.float32]:
        """Return the vectors of rows, scaled to length one and not rotated."""
        return self._join(super().unit_vectors(rows), self._read_parts(rows))

    def copy_vectors(self, rows: RowArray) -> tuple[Any, Callable[[Any], NDArray[np.float32]]]:
        """Return a copy of the stored vectors of rows, and the function that converts it to served vectors."""
        stored, to_served = super().copy_vectors(rows)
        return (stored, self._read_parts(rows)), partial(_serve_copy, to_served, self.attribute_weight)

    def empty_changes(self, sequence: int) -> Changes:
        """Build the empty changes of a batch that had already been applied under this sequence number."""
        no_rows = np.empty(0, np.int64)
        return Changes(no_rows, *self.copy_vectors(no_rows), np.empty(0, np.bool_), [], sequence, False)

    def preview(
        self, rows: RowArray, weights: NDArray[np.float32], attributes: AttributeRows | None = None
    ) -> NDArray[np.float32]:
        """Return the vector of a new vertex with edges to these rows, and with these attributes."""
        part = self._preview_part(rows, weights, attributes)
        return self._join(super().preview(rows, weights)[None], part[None])[0]

    def nearest(
        self, search: Search, like: int | NDArray[np.float64], count: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a row (itself excluded) or with a vector, highest first.

        The search is exact.
        """
        del search  # the index of a model without attributes
        if isinstance(like, int):
            return self._find_nearest_joined(self.unit_vectors(np.array([like]))[0].astype(np.float64), count, like)
        middle = super().dim
        query = np.concatenate([self.rule.to_internal(like[:middle]), like[middle:]])
        return self._find_nearest_joined(query, count, -1)

    def nearest_by_attributes(
        self, like: int | AttributeRows, count: int, among: RowArray | None = None
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows whose attribute parts have the highest cosine with that of a row or of given attributes."""
        if isinstance(like, int):
            part, exclude = self._read_parts(np.array([like]))[0], like
        else:
            part, exclude = self._preview_part(np.empty(0, np.int64), np.empty(0, np.float32), like), -1
        if among is None:
            return self._find_nearest_parts(part, count, exclude)
        parts, status = self._read_parts(among), self.read_rows(among, "attribute_status")
        found, cosines = search_parts(parts, (status == OWN) & (among != exclude), part, count, None)
        return among[found], cosines

    # ------------------------------------------------------------------ operations on rows, by subclasses

    def _find_nearest_joined(
        self, query: NDArray[np.float64], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows of highest cosine with a whole vector that is not rotated, without one row (−1: with all)."""
        raise NotImplementedError

    def _find_nearest_parts(
        self, part: NDArray[np.float32], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        """Return the rows with attributes of highest cosine with an attribute part, without one row (−1: with all)."""
        raise NotImplementedError

    # ------------------------------------------------------------------ parts

    def _read_parts(self, rows: RowArray) -> NDArray[np.float32]:
        return self.read_rows(rows, "attribute_parts")

    def _preview_part(
        self, rows: RowArray, weights: NDArray[np.float32], attributes: AttributeRows | None
    ) -> NDArray[np.float32]:
        """Return the part of a new vertex with these attributes, or without any and with edges to these rows."""
        projection = self.attributes.projection
        if projection.learned and attributes is not None and attributes.begin[1]:
            return projection.preview(attributes)
        part, positions = np.zeros(self.attribute_dim, np.float32), np.arange(rows.size)
        mean_of_rows(positions, weights, self.read_rows(rows, "attribute_status"), self._read_parts(rows), part)
        return part

    def _find_moved_parts(
        self, before: NDArray[np.float32], after: NDArray[np.float32], threshold: float
    ) -> NDArray[np.bool_]:
        """Return which attribute parts have moved by at least a threshold, as they are served without edges."""
        no_edges = np.zeros((len(before), 0), np.float32)
        change = self._join(no_edges, before) - self._join(no_edges, after)
        moved: NDArray[np.bool_] = np.linalg.norm(change, axis=1) >= max(threshold, 1e-12)
        return moved

    def _join(self, edge: NDArray[np.float32], parts: NDArray[np.float32]) -> NDArray[np.float32]:
        return _join(edge, parts, self.attribute_weight)


class LocalAttributedReads(AttributedReads, LocalReads):
    """Read methods of a state with attributes in the memory of this process."""

    def sizes(self) -> dict[str, int]:
        """Return counts and bytes."""
        sizes, store = super().sizes(), self.attributes
        return sizes | {"unplaced": store.count_unplaced(self.store.placed), "bytes": sizes["bytes"] + store.nbytes}

    def get_vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of one row as users see it."""
        return self._join(LocalReads.get_vector(self, row)[None], self.attributes.parts[row : row + 1])[0]

    def _column(self, attribute: str) -> NDArray[Any]:
        return self.attributes.column(attribute) if attribute.startswith("attribute_") else super()._column(attribute)

    def _find_nearest_joined(
        self, query: NDArray[np.float64], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        weight = self.attribute_weight
        return search_joined(self.store, self.rule.scaling, self.attributes, weight, query, count, exclude)

    def _find_nearest_parts(
        self, part: NDArray[np.float32], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        return search_own_parts(self.attributes, part, count, exclude)


class JoinedRows:
    """Edge parts and attribute parts of all rows side by side, read block by block. For a search."""

    def __init__(self, store: VectorStore, scaling: ViewScaling, parts: NDArray[np.float32]) -> None:
        self._vectors, self._scaling, self._parts = store.vectors, scaling, parts
        self.shape, self.ndim = (store.graph.row_count, store.vectors.shape[1] + parts.shape[1]), 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        """Return some rows: their edge parts have length one."""
        stored, parts = widen_half(self._vectors[rows]), self._parts[rows]
        joined = np.empty((len(parts), self.shape[1]), np.float32)
        middle = stored.shape[1]
        units = np.empty(stored.shape, np.float32)
        scale_to_unit(stored, self._scaling, units)
        joined[:, :middle], joined[:, middle:] = units, parts
        return joined


def search_joined(
    store: VectorStore,
    scaling: ViewScaling,
    table: AttributeTable,
    weight: float,
    query: NDArray[np.float64],
    count: int,
    exclude: int,
) -> tuple[RowArray, NDArray[np.float32]]:
    """Return the rows of highest cosine with a whole vector, without row `exclude`, and the cosines."""
    rows = slice(store.graph.row_count)
    alive = (store.placed[rows] == 1) | (table.status[rows] != NONE)
    middle = store.vectors.shape[1]
    joined = ViewScaling(np.array([0, middle, middle + table.columns]), np.array([1.0, weight]), np.ones(2))
    found, cosines = exact.nearest(
        JoinedRows(store, scaling, table.parts),  # type: ignore[arg-type]  # read block by block
        alive,
        query[None],
        joined,
        min(count, max(len(store.graph), 1)),
        np.array([exclude]),
        store.graph.threads,
    )
    return found[0][found[0] >= 0], cosines[0][found[0] >= 0]


def search_parts(
    parts: NDArray[np.float32], alive: NDArray[np.bool_], part: NDArray[np.float32], count: int, threads: int | None
) -> tuple[RowArray, NDArray[np.float32]]:
    """Return the positions of the attribute parts of highest cosine with a part, and the cosines."""
    scaling = ViewScaling(np.array([0, parts.shape[1]]), np.ones(1), np.ones(1))
    query = part.astype(np.float64)[None]
    found, cosines = exact.nearest(parts, alive, query, scaling, min(count, max(alive.size, 1)), threads=threads)
    return found[0][found[0] >= 0], cosines[0][found[0] >= 0]


def search_own_parts(
    table: AttributeTable, part: NDArray[np.float32], count: int, exclude: int
) -> tuple[RowArray, NDArray[np.float32]]:
    """Return the rows with attributes of highest cosine with an attribute part, without row `exclude`."""
    rows = np.arange(table.graph.row_count)
    alive = (table.status[rows] == OWN) & (rows != exclude)
    return search_parts(table.parts[: rows.size], alive, part, count, table.graph.threads)


def _join(edge: NDArray[np.float32], parts: NDArray[np.float32], weight: float) -> NDArray[np.float32]:
    joined = np.empty((len(edge), edge.shape[1] + parts.shape[1]), np.float32)
    join_rows(np.ascontiguousarray(edge), np.ascontiguousarray(parts), weight, joined)
    return joined


def _serve_copy(
    to_served: Callable[[Any], NDArray[np.float32]], weight: float, copied: tuple[Any, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Convert a copy of the two parts of rows to served vectors."""
    return _join(to_served(copied[0]), copied[1], weight)
