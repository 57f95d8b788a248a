"""Operator of a spectral view on a GPU: the same computation as `operators.py`, equal up to rounding.

The graph is copied to the GPU once per view, in its arena layout; a block of rows is copied there and back. Matrices
of k×k entries, for k columns, stay on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError, RipplevecError
from ripplevec.graph._block_kernels import ARENA_TOP
from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import block_ranges
from ripplevec.views.operators import MAX_ENTRY, Matrix, Operator

CHUNK_ROWS = 2**18  # rows converted to float64 at a time
WARP, ROWS_PER_BLOCK, WARPS_PER_HUB = 32, 8, 32
HUB_DEGREE = 1_024  # a row with more neighbors gets a thread block of its own


class GpuOperator(Operator):
    """The operator W of one graph and one τ in GPU memory; blocks are CuPy arrays of float32."""

    def __init__(self, adjacency: Adjacency, rows: int, tau: float, threads: int = 1) -> None:
        super().__init__(adjacency, rows, tau, threads)
        self._cupy = usable_cupy()
        self._links = self._copy_graph()
        self._hubs = self.to_device(np.flatnonzero(self.links.degree[:rows] > HUB_DEGREE))
        self._active = self.to_device(self.active)
        self._row_weights = self.to_device(self.row_weights)

    def to_device(self, rows: Matrix) -> Matrix:
        """Return rows in GPU memory."""
        return self._cupy.asarray(rows)

    def to_host(self, block: Any, rows: Matrix | None = None) -> Matrix:
        """Return a block in host memory, written into `rows` if given."""
        return block.get(out=rows)

    def allocate_workspace(self, block: Matrix) -> Matrix:
        """Return a zero matrix as wide as the widest column chunk of a block."""
        return self._cupy.zeros((self.rows, self.column_chunks(block)[0].stop), block.dtype)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """Compute target ← f₀ · W source + f₁ · source + f₂ · target."""
        center = self.to_device(self.center(source).astype(np.float32))
        strides = tuple(np.int64(matrix.strides[0] // matrix.itemsize) for matrix in (source, target))
        step = (source, target, *strides, np.int32(source.shape[1]), center, self.tau, *factors)
        by_row = (*self._links, *step, np.int64(self.rows), np.int32(HUB_DEGREE))
        self._kernel("combine")((-(-self.rows // ROWS_PER_BLOCK),), (WARP, ROWS_PER_BLOCK), by_row)
        if self._hubs.size:
            self._kernel("combine_hubs")(self._hubs.shape, (WARP, WARPS_PER_HUB), (*self._links, *step, self._hubs))

    def apply(self, source: Matrix) -> Matrix:
        """Return W source."""
        target = self._cupy.zeros_like(source)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def deflate(self, target: Matrix) -> None:
        """Remove the component along the trivial (constant) eigenvector, in place."""
        mean = self.to_device(self.sum_weighted(target, self.tau) / max(self.row_weights.sum(), 1e-300))
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            target[first:last] -= self._active[first:last, None] * mean

    def clear_unusable_rows(self, target: Matrix) -> None:
        """Zero the rows without edges, and rows with an entry that is not finite or exceeds `MAX_ENTRY`, in place."""
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            usable = (abs(target[first:last]) <= MAX_ENTRY).all(axis=1)
            target[first:last][~(self._active[first:last] & usable)] = 0

    def scale_columns(self, target: Matrix, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply each column by its factor, or divide by it with `how=np.divide`, in place."""
        how(target, self.to_device(factors.astype(target.dtype)), out=target)

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Return the inner products Σ (d+τ) leftᵀ right of columns, k×k in float64."""
        return self._sum_over_chunks(
            lambda a, b: (left[a:b] * self._row_weights[a:b, None]).T @ right[a:b].astype(np.float64)
        )

    def squared_column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ (d+τ) x² per column."""
        return self._sum_over_chunks(lambda a, b: self._row_weights[a:b] @ np.square(source[a:b], dtype=np.float64))

    def column_square_sums(self, source: Matrix) -> NDArray[np.float64]:
        """Return Σ x² per column."""
        return self._sum_over_chunks(lambda a, b: np.square(source[a:b], dtype=np.float64).sum(axis=0))

    def max_row_length(self, source: Matrix) -> float:
        """Return the length of the longest row; NaN if any entry is NaN."""
        squares = (
            np.square(source[a:b], dtype=np.float64).sum(axis=1).max() for a, b in block_ranges(self.rows, CHUNK_ROWS)
        )
        return float(np.sqrt(np.max([float(square) for square in squares], initial=0.0)))

    def transform_columns(self, target: Matrix, matrix: NDArray[np.float64]) -> None:
        """Compute target ← target · matrix (k×k), in place."""
        converted = self.to_device(matrix.astype(target.dtype))
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            target[first:last] = target[first:last] @ converted

    def make_noise(self, seed: int, columns: int, dtype: Any) -> Matrix:
        """Return random columns: equal for equal seeds, on every device."""
        return self.to_device(super().make_noise(seed, columns, dtype))

    def sum_weighted(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        """Return Σ (d+τ) x per column, for a given τ (0 for the center)."""
        shift = tau - self.tau
        return self._sum_over_chunks(
            lambda a, b: (self._row_weights[a:b] + shift * self._active[a:b]) @ source[a:b].astype(np.float64)
        )

    def _apply_symmetric(self, vector: Matrix, inverse: Matrix) -> Matrix:
        """Return (D+τ)^½ W (D+τ)^-½ vector, given inverse = (D+τ)^-½."""
        source, target = inverse * vector, self._cupy.empty_like(vector)
        grid = (-(-self.rows // ROWS_PER_BLOCK),)
        arguments = (*self._links, source, target, np.int64(self.rows))
        self._kernel("multiply")(grid, (WARP, ROWS_PER_BLOCK), arguments)
        strength = self._links[2]
        target -= (strength @ source) / self.active_count
        target *= inverse
        return target

    def _sum_over_chunks(self, part: Callable[[int, int], Matrix]) -> NDArray[np.float64]:
        """Return the sum of `part(first, last)` over all rows, chunk by chunk from first to last."""
        first, *others = block_ranges(self.rows, CHUNK_ROWS)
        total = part(*first)
        for other in others:
            total += part(*other)
        return self.to_host(total)

    def _copy_graph(self) -> tuple[Any, ...]:
        """Return the graph as kernel arguments in GPU memory.

        A slot of the arena is a record that begins with the neighbor; the records are copied unchanged.
        """
        links, rows = self.links, slice(self.rows)
        word = links.neighbor.itemsize
        slot_words = links.neighbor.strides[0] // word
        words = as_strided(links.neighbor, (int(links.allocator[ARENA_TOP]) * slot_words,), (word,))
        slots, weight_offset = self.to_device(words), (links.weight.ctypes.data - links.neighbor.ctypes.data) // word
        vertices = [self.to_device(array[rows]) for array in (links.begin, links.degree, links.strength)]
        return (*vertices, slots, slots[weight_offset:].view(np.float32), np.int32(slot_words))

    def _kernel(self, name: str) -> Any:
        return _compile_kernels(self._cupy).get_function(name)


@cache
def usable_cupy() -> Any:
    """Import CuPy and check that a GPU is available; raise an error that says what to do otherwise."""
    try:
        import cupy
    except ImportError as missing:
        raise MissingExtraError('device="cuda"', "gpu") from missing
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        raise RipplevecError(f'device="cuda": no usable GPU ({problem}). Use device="cpu".') from problem
    if not found:
        raise RipplevecError('device="cuda": no GPU found. Use device="cpu".')
    return cupy


@cache
def _compile_kernels(cupy: Any) -> Any:
    """Compile the CUDA kernels on first use; CuPy caches them on disk."""
    return cupy.RawModule(code=resources.files(__package__).joinpath("_kernels.cu").read_text())
