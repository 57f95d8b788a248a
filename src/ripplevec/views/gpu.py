"""The operator of a spectral view on a GPU: the same steps as `operators.py`, to rounding.

The graph goes there once for each view, as it lies in the arena; a block goes there and comes back. What is k×k stays
on the host.
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

CHUNK_ROWS = 2**18  # rows turned into float64 together
WARP, ROWS_PER_BLOCK, WARPS_PER_HUB = 32, 8, 32
HUB_DEGREE = 1_024  # neighbors from which a row has a block of threads to itself


class GpuOperator(Operator):
    """W for one graph and one τ, in the memory of a GPU; blocks are CuPy arrays of float32."""

    def __init__(self, adjacency: Adjacency, rows: int, tau: float, threads: int = 1) -> None:
        super().__init__(adjacency, rows, tau, threads)
        self._cupy = usable_cupy()
        self._links = self._graph()
        self._hubs = self.to_device(np.flatnonzero(self.links.degree[:rows] > HUB_DEGREE))
        self._here = self.to_device(self.active)
        self._measure = self.to_device(self.row_weights)

    def to_device(self, rows: Matrix) -> Matrix:
        """Rows in the memory of the GPU."""
        return self._cupy.asarray(rows)

    def to_host(self, block: Any, rows: Matrix | None = None) -> Matrix:
        """A block in the memory of the host: in that of these rows, if they are where it came from."""
        return block.get(out=rows)

    def allocate_workspace(self, block: Matrix) -> Matrix:
        """Zeros beside a block, as wide as its widest part."""
        return self._cupy.zeros((self.rows, self.column_chunks(block)[0].stop), block.dtype)

    def combine(self, source: Matrix, target: Matrix, factors: tuple[float, float, float]) -> None:
        """target ← f₀ · W source + f₁ · source + f₂ · target."""
        center = self.to_device(self.center(source).astype(np.float32))
        strides = tuple(np.int64(matrix.strides[0] // matrix.itemsize) for matrix in (source, target))
        step = (source, target, *strides, np.int32(source.shape[1]), center, self.tau, *factors)
        by_row = (*self._links, *step, np.int64(self.rows), np.int32(HUB_DEGREE))
        self._kernel("combine")((-(-self.rows // ROWS_PER_BLOCK),), (WARP, ROWS_PER_BLOCK), by_row)
        if self._hubs.size:
            self._kernel("combine_hubs")(self._hubs.shape, (WARP, WARPS_PER_HUB), (*self._links, *step, self._hubs))

    def apply(self, source: Matrix) -> Matrix:
        """W source."""
        target = self._cupy.zeros_like(source)
        self.combine(source, target, (1.0, 0.0, 0.0))
        return target

    def deflate(self, target: Matrix) -> None:
        """Take the trivial eigenvector (the constant) out, in place."""
        mean = self.to_device(self.sum_weighted(target, self.tau) / max(self.row_weights.sum(), 1e-300))
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            target[first:last] -= self._here[first:last, None] * mean

    def clear_unusable_rows(self, target: Matrix) -> None:
        """Make the rows without edges zero, in place, and rows that no step of this package can have made."""
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            usable = (abs(target[first:last]) <= MAX_ENTRY).all(axis=1)
            target[first:last][~(self._here[first:last] & usable)] = 0

    def scale_columns(self, target: Matrix, factors: NDArray[np.float64], how: np.ufunc = np.multiply) -> None:
        """Multiply (or divide) every column by its factor, in place."""
        how(target, self.to_device(factors.astype(target.dtype)), out=target)

    def gram(self, left: Matrix, right: Matrix) -> NDArray[np.float64]:
        """Σ (d+τ) left rightᵀ, k×k in float64."""
        return self._total(lambda a, b: (left[a:b] * self._measure[a:b, None]).T @ right[a:b].astype(np.float64))

    def squared_column_norms(self, source: Matrix) -> NDArray[np.float64]:
        """Σ (d+τ) x², per column."""
        return self._total(lambda a, b: self._measure[a:b] @ np.square(source[a:b], dtype=np.float64))

    def column_square_sums(self, source: Matrix) -> NDArray[np.float64]:
        """Σ x², per column."""
        return self._total(lambda a, b: np.square(source[a:b], dtype=np.float64).sum(axis=0))

    def max_row_length(self, source: Matrix) -> float:
        """The length of the longest row; NaN where an entry is."""
        squares = (
            np.square(source[a:b], dtype=np.float64).sum(axis=1).max() for a, b in block_ranges(self.rows, CHUNK_ROWS)
        )
        return float(np.sqrt(np.max([float(square) for square in squares], initial=0.0)))

    def transform_columns(self, target: Matrix, turn: NDArray[np.float64]) -> None:
        """target ← target · turn, in place."""
        matrix = self.to_device(turn.astype(target.dtype))
        for first, last in block_ranges(self.rows, CHUNK_ROWS):
            target[first:last] = target[first:last] @ matrix

    def make_noise(self, seed: int, columns: int, kind: Any) -> Matrix:
        """Columns that no graph has seen: the same for the same seed, and on every device."""
        return self.to_device(super().make_noise(seed, columns, kind))

    def _symmetric(self, vector: Matrix, inverse: Matrix) -> Matrix:
        """(D+τ)^½ W (D+τ)^-½ of one vector, given (D+τ)^-½."""
        source, target = inverse * vector, self._cupy.empty_like(vector)
        blocks_of_rows = (-(-self.rows // ROWS_PER_BLOCK),)
        arguments = (*self._links, source, target, np.int64(self.rows))
        self._kernel("multiply")(blocks_of_rows, (WARP, ROWS_PER_BLOCK), arguments)
        strength = self._links[2]
        target -= (strength @ source) / self.active_count
        target *= inverse
        return target

    def sum_weighted(self, source: Matrix, tau: float) -> NDArray[np.float64]:
        """Σ (d+τ) x, per column, with a τ that need not be the operator's own."""
        shift = tau - self.tau
        return self._total(lambda a, b: (self._measure[a:b] + shift * self._here[a:b]) @ source[a:b].astype(np.float64))

    def _total(self, part: Callable[[int, int], Matrix]) -> NDArray[np.float64]:
        """The sum of `part(first, last)` over all rows, many at a time, first to last."""
        first, *others = block_ranges(self.rows, CHUNK_ROWS)
        total = part(*first)
        for other in others:
            total += part(*other)
        return self.to_host(total)

    def _graph(self) -> tuple[Any, ...]:
        """The graph as the kernels want it: slots are records with the neighbor first, and go there as they lie."""
        links, rows = self.links, slice(self.rows)
        word = links.neighbor.itemsize
        apart = links.neighbor.strides[0] // word
        words = as_strided(links.neighbor, (int(links.allocator[ARENA_TOP]) * apart,), (word,))
        slots, weight = self.to_device(words), (links.weight.ctypes.data - links.neighbor.ctypes.data) // word
        vertices = [self.to_device(array[rows]) for array in (links.begin, links.degree, links.strength)]
        return (*vertices, slots, slots[weight:].view(np.float32), np.int32(apart))

    def _kernel(self, name: str) -> Any:
        return _module(self._cupy).get_function(name)


@cache
def usable_cupy() -> Any:
    """CuPy, if it is there and finds a GPU; else what to do about it."""
    try:
        import cupy
    except ImportError as missing:
        raise MissingExtraError('device="cuda"', "gpu") from missing
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        raise RipplevecError(f'device="cuda": no GPU can be used here ({problem}); use device="cpu"') from problem
    if not found:
        raise RipplevecError('device="cuda": there is no GPU here; use device="cpu"')
    return cupy


@cache
def _module(cupy: Any) -> Any:
    """The kernels, compiled when they are first needed; CuPy keeps them on disk."""
    return cupy.RawModule(code=resources.files(__package__).joinpath("_kernels.cu").read_text())
