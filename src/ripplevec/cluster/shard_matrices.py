"""The matrices of an anchor or a start on one shard, and the steps that the driver runs on them.

A matrix has the shard's own rows, followed by a halo with one row per remote neighbor. While matrices are open, the
slots of the graph point to matrix rows, so the operator for one machine works on them. Sums cover the rows of this
shard; the driver adds the sums of all shards.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as kernels
from ripplevec.graph.adjacency import RowArray, Totals
from ripplevec.rules.anchor import alignment_products, concatenate_views, fill_rows, find_moved_rows
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import block_ranges
from ripplevec.views.aligned_matrix import aligned_zeros
from ripplevec.views.base import Basis
from ripplevec.views.operators import Operator

Matrix = NDArray[Any]
SavedCoordinates = dict[str, NDArray[Any]]
VECTORS = 0  # matrix number of the stored vectors, which have no halo and are read-only here
NOISE_BLOCK_WORDS = 1 << 20  # random words drawn at a time


class ColumnSlice(NamedTuple):
    """A range of adjacent columns of one matrix, in the form in which driver and shards exchange it."""

    matrix: int
    first: int
    last: int


class ShardMatrices:
    """The matrices of one shard during an anchor or a start.

    Public methods are called by name through `Shard.run_matrix_step`.
    """

    def __init__(self, store: VectorStore, rule: RippleRule, index: int, shards: int) -> None:
        self.store, self.rule, self.index = store, rule, index
        self.rows = max(store.graph.row_count, 1)  # an empty shard has one row without edges
        self.sent = 0  # bytes of rows sent to other shards
        self._matrices: dict[int, Matrix] = {}
        self._lent_rows: list[RowArray] = []
        store.graph.adjacency.ensure_rows(self.rows)
        store.grow()
        self._map_slots(shards)

    def _map_slots(self, shards: int) -> None:
        """Point the slots of remote neighbors to halo rows, which are sorted by shard and row on that shard."""
        adjacency = self.store.graph.adjacency
        codes = np.empty(int(adjacency.links.degree[: self.rows].sum()), np.int64)
        codes = codes[: kernels.collect_remote_codes(adjacency.links, self.rows, codes)]
        index, distinct, _ = kernels.index_distinct(codes)
        order = np.lexsort((distinct // shards, distinct % shards))
        halo_index = np.empty_like(order)
        halo_index[order] = np.arange(order.size)
        self.codes = distinct[order]  # row codes of the halo rows
        ends = np.searchsorted(self.codes % shards, np.arange(1, shards))
        self.requested: list[RowArray] = np.split(self.codes // shards, ends)
        kernels.map_to_halo(adjacency.links, self.rows, halo_index[index])

    def close(self) -> None:
        """Restore the slots and drop all matrices."""
        kernels.restore_codes(self.store.graph.adjacency.links, self.rows, self.codes)
        self._matrices.clear()

    def original_neighbors(self, neighbors: RowArray) -> RowArray:
        """Return the neighbors that remapped slots held originally, for reads during an anchor."""
        in_halo = neighbors >= self.rows
        original = neighbors.copy()
        original[in_halo] = -1 - self.codes[neighbors[in_halo] - self.rows]
        return original

    # ------------------------------------------------------------------ setup

    def set_lent_rows(self, *requested: RowArray) -> int:
        """Set the rows that each shard requests in every exchange; return the number of matrix rows on this shard."""
        self._lent_rows = list(requested)
        return self.rows + self.codes.size

    def totals(self) -> Totals:
        """Return sums over the graph of this shard."""
        return self.store.graph.adjacency.totals(self.rows)

    def set_operator(self, tau: float) -> None:
        """Set the operator that the following steps use."""
        self.operator = Operator(self.store.graph.adjacency, self.rows, tau, self.rule.threads)

    # ------------------------------------------------------------------ matrices

    @property
    def matrix_numbers(self) -> set[int]:
        """The numbers of the matrices that exist now."""
        return set(self._matrices)

    def select(self, columns: ColumnSlice) -> Matrix:
        """Return a range of columns, with halo rows, as a view."""
        matrix = self._stored() if columns.matrix == VECTORS else self._matrices[columns.matrix]
        return matrix[:, columns.first : columns.last]

    def create(self, matrix: int, columns: int, kind: Any, dropped: list[int], persistent: bool = False) -> None:
        """Create a matrix of zeros and delete `dropped` ones; a persistent matrix is on disk if the vectors are."""
        for old in dropped:
            self._matrices.pop(old, None)
        directory = self.rule.directory if persistent else None
        self._matrices[matrix] = aligned_zeros(self.rows + self.codes.size, columns, kind, directory)

    def copy(self, target: ColumnSlice, source: ColumnSlice) -> None:
        """Copy columns over adjacent columns."""
        self.select(target)[: self.rows] = self.select(source)[: self.rows]

    def copy_to_positions(self, target: ColumnSlice, positions: RowArray, source: ColumnSlice) -> None:
        """Copy columns over the columns at `positions`."""
        self.select(target)[: self.rows, positions] = self.select(source)[: self.rows]

    def fill_noise(self, target: ColumnSlice, seed: int) -> None:
        """Fill columns with the values of `Operator.make_noise`.

        The random word of a vertex depends on its arrival number, so the values do not depend on the shard count.
        """
        arrival = self.store.graph.arrival[: self.rows]
        words, generator = np.zeros(self.rows, np.uint64), np.random.Generator(np.random.Philox(seed))
        order = np.argsort(arrival, kind="stable")
        for first, last in block_ranges(int(arrival.max(initial=-1)) + 1, NOISE_BLOCK_WORDS):
            drawn = generator.integers(0, 2**64, last - first, np.uint64)
            rows = order[slice(*np.searchsorted(arrival, (first, last), sorter=order))]
            words[rows] = drawn[arrival[rows] - first]
        self.operator.fill_noise(self.select(target), words)

    # ------------------------------------------------------------------ operator steps

    def lend_rows(self, source: ColumnSlice) -> list[Any]:
        """Return the rows that each shard requested, followed by Σ d x over the rows of this shard."""
        block = self.select(source)
        lent = [np.ascontiguousarray(block[rows]) for rows in self._lent_rows]
        self.sent += sum(part.nbytes for part in lent)
        return [*lent, self.operator.sum_weighted(block, 0.0)]

    def combine(
        self, *received: Matrix, source: ColumnSlice, target: ColumnSlice, center: NDArray[np.float64], factors: Any
    ) -> None:
        """Compute target ← f₀ · W source + f₁ · source + f₂ · target, with the rows lent by the other shards."""
        block, first = self.select(source), self.rows
        for part in received:
            block[first : first + len(part)] = part
            first += len(part)
        # The copy is for the reason given in `subtract`.
        self.operator.combine_with_center(center.copy(), block, self.select(target), factors)

    def sum_weighted(self, source: ColumnSlice, tau: float) -> NDArray[np.float64]:
        """Return Σ (d+τ) x per column."""
        return self.operator.sum_weighted(self.select(source), tau)

    def subtract(self, target: ColumnSlice, value: NDArray[np.float64]) -> None:
        """Subtract one value per column from every row that has edges."""
        # Arrays from other processes are read-only; without the copy, kernels would be compiled for these as well.
        self.operator.subtract_from_rows(self.select(target), value.copy())

    def clear(self, target: ColumnSlice) -> None:
        """Zero the rows without edges, and rows with an entry that is not finite or is too large."""
        self.operator.clear_unusable_rows(self.select(target))

    def scale(self, target: ColumnSlice, factors: NDArray[np.float64], how: np.ufunc) -> None:
        """Multiply (or divide) every column by its factor."""
        self.operator.scale_columns(self.select(target), factors, how)

    def unscale(self, target: ColumnSlice) -> None:
        """Divide every row with edges by √(d+τ): from eigenvectors of the symmetric form to those of W."""
        root = np.sqrt(np.where(self.operator.active, self.operator.row_weights, 1.0))
        self.select(target)[: self.rows] /= root[:, None]

    def gram(self, left: ColumnSlice, right: ColumnSlice) -> NDArray[np.float64]:
        """Return Σ (d+τ) left rightᵀ."""
        block = self.select(left)[: self.rows]
        return self.operator.gram(block, block if left == right else self.select(right)[: self.rows])

    def squared_norms(self, source: ColumnSlice) -> NDArray[np.float64]:
        """Return Σ (d+τ) x² per column."""
        return self.operator.squared_column_norms(self.select(source))

    def square_sums(self, source: ColumnSlice) -> NDArray[np.float64]:
        """Return Σ x² per column."""
        return self.operator.column_square_sums(self.select(source))

    def max_row_length(self, source: ColumnSlice) -> float:
        """Return the length of the longest row on this shard."""
        return self.operator.max_row_length(self.select(source)[: self.rows])

    def transform(self, target: ColumnSlice, matrix: NDArray[np.float64]) -> None:
        """Compute target ← target · matrix."""
        self.operator.transform_columns(self.select(target), matrix)

    # ------------------------------------------------------------------ results

    def alignment_products(self, bases: list[ColumnSlice], saved: SavedCoordinates) -> NDArray[np.float64]:
        """Return the products of new and previously served rows, from which the alignment of the two is computed."""
        new = self.rule.coordinates_from_state(saved)
        return alignment_products(self.rule.coordinates, new, self._bases(bases), self._stored(), self.rule.threads)

    def find_moved_rows(self, bases: list[ColumnSlice], saved: SavedCoordinates, threshold: float) -> RowArray:
        """Return the rows whose served vectors will move by more than the threshold."""
        after = partial(concatenate_views, self._bases(bases))
        new, before = self.rule.coordinates_from_state(saved), self._stored()
        return find_moved_rows(self.rule.coordinates, before, new, after, threshold, self.rule.threads)

    def store_vectors(self, bases: list[ColumnSlice], saved: SavedCoordinates) -> None:
        """Store the new rows as vectors, in the precision of the store."""
        fill_rows(self._stored(), self.rule.coordinates_from_state(saved), self._bases(bases))
        self.store.placed[: self.rows] = self.store.graph.adjacency.links.degree[: self.rows] > 0

    def _stored(self) -> Matrix:
        return self.store.vectors[: self.rows]

    def _bases(self, bases: list[ColumnSlice]) -> list[Basis]:
        """Wrap columns as bases, for functions that use only the rows of a basis."""
        unused = np.empty(0)
        return [Basis(self.select(columns)[: self.rows], unused, 0.0, unused, 0.0) for columns in bases]
