"""The matrices of an anchor on one shard: its own rows, and behind them the halo, a row per neighbor elsewhere.

For as long as this lasts the slots of the graph point to rows of these matrices, so that the operator of one machine
works on them. What is summed over rows is summed over the rows here; the driver adds up what the shards say.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster import _kernels as kernels
from ripplevec.graph.adjacency import Totals
from ripplevec.rules.anchor import alignment_products, concatenate_views, fill_rows, find_moved_rows
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.parallel import block_ranges
from ripplevec.views.aligned_matrix import aligned_zeros
from ripplevec.views.base import Basis
from ripplevec.views.operators import Operator

Rows = NDArray[np.int64]
Matrix = NDArray[Any]
Learned = dict[str, NDArray[Any]]
VECTORS = 0  # the handle of the vectors as they are kept, which have no halo and are not written to
WORDS = 1 << 20  # random words drawn at a time


class ColumnSlice(NamedTuple):
    """Some columns of a matrix, as driver and shards speak of them."""

    handle: int
    first: int
    last: int


class ShardMatrices:
    """What a shard has to do with an anchor, or a start, of all shards."""

    def __init__(self, store: VectorStore, rule: RippleRule, number: int, shards: int) -> None:
        self.store, self.rule, self.number = store, rule, number
        self.rows = max(store.graph.row_count, 1)  # where there is no vertex, a row without edges
        self.sent = 0  # bytes of rows that other shards were given
        self._matrices: dict[int, Matrix] = {}
        self._lent: list[Rows] = []
        store.graph.adjacency.ensure_rows(self.rows)
        store.grow()
        self._point(shards)

    def _point(self, shards: int) -> None:
        """Have all slots point to rows here or to places in the halo, which go by shard and row there."""
        adjacency = self.store.graph.adjacency
        codes = np.empty(int(adjacency.links.degree[: self.rows].sum()), np.int64)
        codes = codes[: kernels.collect_remote_codes(adjacency.links, self.rows, codes)]
        place, distinct, _ = kernels.index_distinct(codes)
        order = np.lexsort((distinct // shards, distinct % shards))
        where = np.empty_like(order)
        where[order] = np.arange(order.size)
        self.codes = distinct[order]
        ends = np.searchsorted(self.codes % shards, np.arange(1, shards))
        self.wanted: list[Rows] = np.split(self.codes // shards, ends)
        kernels.map_to_halo(adjacency.links, self.rows, where[place])

    def close(self) -> None:
        """Have the slots point where they did."""
        kernels.restore_codes(self.store.graph.adjacency.links, self.rows, self.codes)
        self._matrices.clear()

    def as_before(self, neighbor: Rows) -> Rows:
        """What slots held that hold this now: for those who read meanwhile."""
        behind = neighbor >= self.rows
        before = neighbor.copy()
        before[behind] = -1 - self.codes[neighbor[behind] - self.rows]
        return before

    # ------------------------------------------------------------------ the operator

    def lend_to(self, *asked: Rows) -> int:
        """Know which rows each shard will want, whenever rows are lent; how many rows matrices have here."""
        self._lent = list(asked)
        return self.rows + self.codes.size

    def totals(self) -> Totals:
        """Sums over the graph here."""
        return self.store.graph.adjacency.totals(self.rows)

    def operate(self, tau: float) -> None:
        """Have the operator of a view from now on."""
        self.operator = Operator(self.store.graph.adjacency, self.rows, tau, self.rule.threads)

    # ------------------------------------------------------------------ matrices

    def make(self, handle: int, columns: int, kind: Any, gone: list[int], lasting: bool = False) -> None:
        """A new matrix of zeros, in place of those that have gone; where vectors lie on disk, so do lasting ones."""
        for old in gone:
            self._matrices.pop(old, None)
        directory = self.rule.directory if lasting else None
        self._matrices[handle] = aligned_zeros(self.rows + self.codes.size, columns, kind, directory)

    def copy(self, target: ColumnSlice, source: ColumnSlice) -> None:
        """Write columns over others."""
        self._of(target)[: self.rows] = self._of(source)[: self.rows]

    def scatter(self, target: ColumnSlice, places: Rows, source: ColumnSlice) -> None:
        """Write columns over others that do not lie side by side."""
        self._of(target)[: self.rows, places] = self._of(source)[: self.rows]

    def noise(self, target: ColumnSlice, seed: int) -> None:
        """What `Operator.make_noise` has, a vertex having the word that goes with its number: for any number of shards."""
        arrival = self.store.graph.arrival[: self.rows]
        words, draw = np.zeros(self.rows, np.uint64), np.random.Generator(np.random.Philox(seed))
        order = np.argsort(arrival, kind="stable")
        for first, last in block_ranges(int(arrival.max(initial=-1)) + 1, WORDS):
            drawn = draw.integers(0, 2**64, last - first, np.uint64)
            here = order[slice(*np.searchsorted(arrival, (first, last), sorter=order))]
            words[here] = drawn[arrival[here] - first]
        self.operator.fill_noise(self._of(target), words)

    # ------------------------------------------------------------------ steps of the operator

    def lend(self, source: ColumnSlice) -> list[Any]:
        """The rows that each shard wants, packed; last, Σ d x of all rows here."""
        block = self._of(source)
        given = [np.ascontiguousarray(block[rows]) for rows in self._lent]
        self.sent += sum(part.nbytes for part in given)
        return [*given, self.operator.sum_weighted(block, 0.0)]

    def combine(
        self, *received: Matrix, source: ColumnSlice, target: ColumnSlice, center: NDArray[np.float64], factors: Any
    ) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target, with what the other shards have lent."""
        block, first = self._of(source), self.rows
        for part in received:
            block[first : first + len(part)] = part
            first += len(part)
        self.operator.combine_with_center(center.copy(), block, self._of(target), factors)  # see `subtract`

    def weighted(self, source: ColumnSlice, tau: float) -> NDArray[np.float64]:
        """Σ (d+τ) x."""
        return self.operator.sum_weighted(self._of(source), tau)

    def subtract(self, target: ColumnSlice, value: NDArray[np.float64]) -> None:
        """Take one value per column off every row that has edges."""
        own = value.copy()  # what comes from elsewhere may be read-only, for which kernels would be compiled once more
        self.operator.subtract_from_rows(self._of(target), own)

    def clear(self, target: ColumnSlice) -> None:
        """Make the rows without edges zero, and rows that no step of this package can have made."""
        self.operator.clear_unusable_rows(self._of(target))

    def scale(self, target: ColumnSlice, factors: NDArray[np.float64], how: np.ufunc) -> None:
        """Multiply (or divide) every column by its factor."""
        self.operator.scale_columns(self._of(target), factors, how)

    def straighten(self, target: ColumnSlice) -> None:
        """From eigenvectors of the symmetric form to those of W: divide every row by √(d+τ), where it has edges."""
        root = np.sqrt(np.where(self.operator.active, self.operator.row_weights, 1.0))
        self._of(target)[: self.rows] /= root[:, None]

    def gram(self, left: ColumnSlice, right: ColumnSlice) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ."""
        block = self._of(left)[: self.rows]
        return self.operator.gram(block, block if left == right else self._of(right)[: self.rows])

    def squared_lengths(self, source: ColumnSlice) -> NDArray[np.float64]:
        """Σ (d+τ) x²."""
        return self.operator.squared_column_norms(self._of(source))

    def squares(self, source: ColumnSlice) -> NDArray[np.float64]:
        """Σ x²."""
        return self.operator.column_square_sums(self._of(source))

    def longest(self, source: ColumnSlice) -> float:
        """The length of the longest row here."""
        return self.operator.max_row_length(self._of(source)[: self.rows])

    def turn(self, target: ColumnSlice, turn: NDArray[np.float64]) -> None:
        """target ← target · turn."""
        self.operator.transform_columns(self._of(target), turn)

    # ------------------------------------------------------------------ what comes of it

    def agreement(self, pieces: list[ColumnSlice], learned: Learned) -> NDArray[np.float64]:
        """The products of new rows and those served before, by which the new coordinates are turned."""
        new = self.rule.coordinates_from_state(learned)
        return alignment_products(self.rule.coordinates, new, self._bases(pieces), self._before(), self.rule.threads)

    def apart(self, pieces: list[ColumnSlice], learned: Learned, threshold: float) -> Rows:
        """The rows that will be served further than the threshold from where they were."""
        after = partial(concatenate_views, self._bases(pieces))
        new, before = self.rule.coordinates_from_state(learned), self._before()
        return find_moved_rows(self.rule.coordinates, before, new, after, threshold, self.rule.threads)

    def keep(self, pieces: list[ColumnSlice], learned: Learned) -> None:
        """Have the new rows from now on, in the precision that rows are kept in."""
        fill_rows(self._before(), self.rule.coordinates_from_state(learned), self._bases(pieces))
        self.store.placed[: self.rows] = self.store.graph.adjacency.links.degree[: self.rows] > 0

    # ------------------------------------------------------------------ inside

    def _before(self) -> Matrix:
        return self.store.vectors[: self.rows]

    def _bases(self, pieces: list[ColumnSlice]) -> list[Basis]:
        """New rows as those functions know them that need nothing else of a basis."""
        nothing = np.empty(0)
        return [Basis(self._of(piece)[: self.rows], nothing, 0.0, nothing, 0.0) for piece in pieces]

    def _of(self, piece: ColumnSlice) -> Matrix:
        whole = self._before() if piece.handle == VECTORS else self._matrices[piece.handle]
        return whole[:, piece.first : piece.last]
