"""The operator of a view on shards: each shard computes its own rows, and all of them run the same solver together.

A matrix has the rows of the shard, followed by a halo with one row per remote neighbor. While a `ShardedAdjacency` is
`mapped`, the slots of the graph point to matrix rows, so the kernels of `views/operators.py` work on them. Before each
product, the halo is filled with the current rows of the other shards. Sums are added over the shards, so all of them
continue with the same numbers. The results equal those of one machine up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.halo import RemoteNeighbors, collect_slots
from ripplevec.graph.adjacency import RowArray, Totals, WeightScale
from ripplevec.util.parallel import block_ranges
from ripplevec.views.aligned_matrix import aligned_zeros
from ripplevec.views.graph_sample import Endpoints, LocalReader, hash_numbers
from ripplevec.views.operators import (
    LANCZOS_STEPS,
    UNKNOWN_SPECTRUM,
    Operator,
    SpectrumEstimate,
    spectrum_from_lanczos,
)

if TYPE_CHECKING:
    from ripplevec.cluster.shard import Shard

Matrix = NDArray[Any]
UNSCALED = WeightScale()
NOISE_BLOCK_WORDS = 1 << 20  # random words drawn at a time


class ShardedAdjacency:
    """The graph of all shards, as one of them sees it during a start or an anchor: a `RemoteAdjacency` for views."""

    def __init__(self, shard: Shard, weight_scale: WeightScale = UNSCALED) -> None:
        self.shard, self.mesh, self.graph = shard, shard.mesh, shard.graph
        self.weight_scale = weight_scale
        self.rows = max(shard.graph.row_count, 1)  # an empty shard has one row without edges
        shard.graph.adjacency.ensure_rows(self.rows)
        shard.store.grow()

    @contextmanager
    def mapped(self) -> Iterator[None]:
        """Point the slots of remote neighbors to halo rows, grouped by shard, inside the `with` block."""
        adjacency = self.graph.adjacency
        slots, _ = collect_slots(adjacency, np.arange(self.rows), remote_only=True)
        remote = RemoteNeighbors(adjacency, slots, self.mesh.size, self.rows)
        self._end_row = remote.end_row
        self._sent_rows: list[RowArray] = self.mesh.exchange(remote.requested)
        totals = zip(*self.mesh.gather(adjacency.totals(self.rows)), strict=True)
        self.endpoints, strength, active = map(sum, totals)
        effective = int(min(self.endpoints, 2 * self.weight_scale.effective_edges))
        self._totals = Totals(effective, strength, active)
        with remote.mapped():
            yield

    def totals(self, rows: int = 0) -> Totals:
        """Return sums over the graph of all shards."""
        return self._totals

    def operator(self, tau: float) -> ShardOperator:
        """Return the operator of a view with this τ."""
        return ShardOperator(self, tau)

    def zeros(self, columns: int, dtype: Any, directory: Any = None) -> Matrix:
        """Return a zero matrix with halo rows."""
        return aligned_zeros(self._end_row, columns, dtype, directory)

    def copy_for_solver(self, rows: Matrix, threads: int) -> Matrix:
        """Return a copy with halo rows in at least float32, which a view may overwrite."""
        copied = self.zeros(rows.shape[1], np.promote_types(rows.dtype, np.float32), self.shard.rule.directory)
        copied[: self.rows] = rows[: self.rows]
        return copied

    def fill_halo(self, block: Matrix, summand: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fill the halo of a matrix with the rows of the other shards; return the sum of a value over all shards."""
        sent = [np.ascontiguousarray(block[rows]) for rows in self._sent_rows]
        received, total, first = self.mesh.exchange([(part, summand) for part in sent]), 0.0, self.rows
        for part, value in received:
            block[first : first + len(part)] = part
            first, total = first + len(part), total + value
        return np.asarray(total)


class ShardOperator(Operator):
    """The operator W for the graph of all shards and one τ, on the rows of one shard."""

    def __init__(self, graph: ShardedAdjacency, tau: float) -> None:
        super().__init__(graph.graph.adjacency, graph.rows, tau, graph.shard.rule.threads)
        self.graph, self.mesh, totals = graph, graph.mesh, graph.totals()
        self.active_count, self.total_strength = totals.active, totals.strength
        self.mean_degree = graph.endpoints / max(self.active_count, 1)

    def allocate_workspace(self, block: Matrix) -> Matrix:
        """Return a zero matrix as wide as the widest column chunk of a block."""
        return self.graph.zeros(self.column_chunks(block)[0].stop, block.dtype)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """Compute target ← f₀ · W source + f₁ · source + f₂ · target."""
        total = self.graph.fill_halo(source, super().sum_weighted(source, 0.0))
        self.combine_with_center(total / max(self.active_count, 1), source, target, factors)

    def sum_weighted(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        """Return Σ (d+τ) x per column, over all shards."""
        return self.mesh.sum(super().sum_weighted(source, tau))

    def deflate(self, target: Matrix) -> None:
        """Remove the component along the trivial (constant) eigenvector, in place."""
        mass = self.total_strength + self.active_count * self.tau
        self.subtract_from_rows(target, self.sum_weighted(target, self.tau) / max(mass, 1e-300))

    def clear_unusable_rows(self, target: Matrix) -> None:
        """Zero the rows without edges, and rows with an entry that is not finite or is too large, in place."""
        super().clear_unusable_rows(target[: self.rows])

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Return Σ (d+τ) leftᵀ right over all shards, k×k in float64."""
        rows = left[: self.rows]
        return self.mesh.sum(super().gram(rows, rows if left is right else right[: self.rows]))

    def squared_column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ (d+τ) x² per column, over all shards."""
        return self.mesh.sum(super().squared_column_norms(source))

    def column_square_sums(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ x² per column, over all shards."""
        return self.mesh.sum(super().column_square_sums(source))

    def max_row_length(self, source: Matrix) -> float:
        """Return the length of the longest row of all shards; NaN if any entry is NaN."""
        return float(np.max(self.mesh.gather(super().max_row_length(source[: self.rows]))))

    def make_noise(self, seed: int, columns: int, dtype: Any) -> Matrix:
        """Return random columns that depend on the seed and on arrival numbers, not on the number of shards."""
        arrival = self.graph.graph.arrival[: self.rows]
        words, generator = np.zeros(self.rows, np.uint64), np.random.Generator(np.random.Philox(seed))
        order = np.argsort(arrival, kind="stable")
        for first, last in block_ranges(int(arrival.max(initial=-1)) + 1, NOISE_BLOCK_WORDS):
            drawn = generator.integers(0, 2**64, last - first, np.uint64)
            rows = order[slice(*np.searchsorted(arrival, (first, last), sorter=order))]
            words[rows] = drawn[arrival[rows] - first]
        target = self.graph.zeros(columns, dtype)
        self.fill_noise(target, words)
        return target

    def estimate_spectrum(self) -> SpectrumEstimate:
        """Estimate the spectrum without the trivial eigenvalue by a few Lanczos steps from a random vector.

        The estimate is that of `Operator.estimate_spectrum`, computed in the inner product Σ (d+τ) x x', which needs no
        square roots. A column transformation makes the last basis column orthogonal to the others, which it leaves
        unchanged.
        """
        if self.active_count < LANCZOS_STEPS + 2:
            return UNKNOWN_SPECTRUM
        basis = self.graph.zeros(LANCZOS_STEPS + 1, np.float64)
        first = basis[:, :1]
        first[:] = self.make_noise(0, 1, np.float64)
        first[: self.rows] /= np.sqrt(np.where(self.active, self.row_weights, 1.0))[:, None]
        self.deflate(first)
        diagonal, off_diagonal, beta = list[float](), list[float](), float(self.column_norms(first)[0])
        for step in range(LANCZOS_STEPS):
            current, following = basis[:, step : step + 1], basis[:, step + 1 : step + 2]
            self.scale_columns(current, np.array([beta]), np.divide)
            self.combine(current, following, (1.0, 0.0, 0.0))
            projections = self.gram(basis[:, : step + 1], following)[:, 0]
            diagonal.append(float(projections[-1]))
            orthogonalization = np.eye(step + 2)
            orthogonalization[:-1, -1] = -projections
            self.transform_columns(basis[:, : step + 2], orthogonalization)
            beta = float(self.column_norms(following)[0])
            if beta < 1e-12:
                break
            off_diagonal.append(beta)
        return spectrum_from_lanczos(diagonal, off_diagonal, beta)


class ShardReader:
    """Reads neighbor lists by arrival numbers, for samples of the graph: an `EndpointReader`.

    The `ShardedAdjacency` is mapped. All shards read together, and every shard gets the answers of all.
    """

    def __init__(self, graph: ShardedAdjacency) -> None:
        numbers = graph.zeros(1, np.int64)
        numbers[: graph.rows, 0] = graph.graph.arrival[: graph.rows]
        graph.fill_halo(numbers, np.zeros(1))
        arrival, copies = numbers[: graph.rows, 0], numbers[graph.rows :, 0]
        self._mesh, self._local = graph.mesh, LocalReader(graph.graph.adjacency, arrival, copies)

    def count(self) -> tuple[int, int]:
        """Return the number of vertices with edges, and of edges."""
        vertices, endpoints = self._mesh.sum(np.array(self._local.count_endpoints())).tolist()
        return int(vertices), int(endpoints) // 2

    def lowest(self, key: int, count: int) -> NDArray[np.int64]:
        """Return the vertices with edges whose hashes are the lowest."""
        numbers = np.sort(np.concatenate(self._mesh.gather(self._local.lowest(key, count))))
        return numbers[np.argsort(hash_numbers(key, numbers), kind="stable")[:count]]

    def read(self, vertices: NDArray[np.int64] | None) -> Endpoints:
        """Return up to `MAX_LIST` endpoints of each of these vertices, or all endpoints of the graph."""
        parts = self._mesh.gather(tuple(self._local.read(vertices)))
        return Endpoints(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
