"""Matrices that are distributed over the shards during an anchor or a start, and the graph that views work on.

The driver has handles only; a view uses a `MatrixHandle` like a NumPy array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.distributed_operator import DistributedOperator
from ripplevec.cluster.shard_matrices import VECTORS, ColumnSlice
from ripplevec.cluster.transport import Transport
from ripplevec.graph.adjacency import Totals


class DistributedGraph:
    """The graph of all shards, as a context manager for one anchor or start: a `RemoteAdjacency` for views.

    Parameters
    ----------
    transport
        The shards.
    dim
        Number of columns of the stored vectors.
    kind
        Data type of the stored vectors.
    """

    def __init__(self, transport: Transport, dim: int, kind: Any) -> None:
        self.transport, self.rows = transport, 0
        self._matrix_numbers, self._unreferenced = count(VECTORS + 1), list[int]()
        self.vectors = MatrixHandle(self, _MatrixReference(VECTORS, []), slice(0, dim), np.dtype(kind))

    def __enter__(self) -> DistributedGraph:
        """Remap the slots of every shard to matrix rows, and exchange the lists of rows that shards need."""
        try:
            requested = self.transport.call("open_matrices", parts=self.transport.size)
            self.rows = max(self.transport.get(self.submit_step("set_lent_rows", *requested)))
            self._totals = self._sum_totals()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def __exit__(self, error_type: type[BaseException] | None = None, *details: object) -> None:
        """Restore the slots of every shard. After an error, further errors are ignored: the first one is reported."""
        closed = self.transport.call("close_matrices")
        if error_type is None:
            self.transport.get(closed)

    def submit_step(self, step: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Call a `ShardMatrices` method on every shard; return unresolved results."""
        return self.transport.call("run_matrix_step", *columns, step=step, parts=parts, **constants)

    def sum_over_shards(self, step: str, **constants: Any) -> NDArray[np.float64]:
        """Call a `ShardMatrices` method and add the results in the order of the shards."""
        return reduce(np.add, self.transport.get(self.submit_step(step, **constants)))

    def totals(self, rows: int = 0) -> Totals:
        """Return sums over the graph."""
        return self._totals

    def _sum_totals(self) -> Totals:
        endpoints, strengths, active = zip(*self.transport.get(self.submit_step("totals")), strict=True)
        return Totals(sum(endpoints), sum(strengths), sum(active))

    def operator(self, tau: float) -> DistributedOperator:
        """Return the operator of a view with this τ."""
        return DistributedOperator(self, tau)

    def zeros(self, columns: int, kind: Any, *, persistent: bool = False) -> MatrixHandle:
        """Create a matrix of zeros; a persistent matrix is on disk if the vectors are."""
        matrix, dropped, kind = next(self._matrix_numbers), self._unreferenced.copy(), np.dtype(kind)
        del self._unreferenced[: len(dropped)]
        self.submit_step("create", matrix=matrix, columns=columns, kind=kind, dropped=dropped, persistent=persistent)
        return MatrixHandle(self, _MatrixReference(matrix, self._unreferenced), slice(0, columns), kind)


class _MatrixReference:
    """A reference to a matrix on the shards, shared by its handles.

    The shards delete the matrix when the next one is created after the last handle was collected.
    """

    def __init__(self, matrix: int, unreferenced: list[int]) -> None:
        self.matrix, self._unreferenced = matrix, unreferenced

    def __del__(self) -> None:
        self._unreferenced.append(self.matrix)


class MatrixHandle:
    """Adjacent columns of a matrix on the shards, in place of the array that a view works on."""

    def __init__(
        self, graph: DistributedGraph, reference: _MatrixReference, columns: slice, kind: np.dtype[Any]
    ) -> None:
        self.graph, self.dtype, self.itemsize = graph, kind, kind.itemsize
        self.columns = ColumnSlice(reference.matrix, columns.start, columns.stop)
        self._reference = reference

    @property
    def shape(self) -> tuple[int, int]:
        """The largest number of rows on a shard, and the number of columns."""
        return self.graph.rows, self.columns.last - self.columns.first

    def __len__(self) -> int:
        return self.graph.rows

    def __getitem__(self, key: tuple[slice, slice]) -> MatrixHandle:
        """Return a handle to adjacent columns `[:, a:b]`; the rows cannot be sliced."""
        rows, columns = key
        first, last, step = columns.indices(self.shape[1])
        if rows != slice(None) or step != 1:
            raise IndexError(f"Unsupported index: expected all rows and adjacent columns [:, a:b], got {key}.")
        offset = self.columns.first
        return MatrixHandle(self.graph, self._reference, slice(offset + first, offset + last), self.dtype)

    def __setitem__(self, key: Any, other: MatrixHandle) -> None:
        """Overwrite all columns `[:]`, or the columns at some positions `[:, positions]`."""
        if isinstance(key, tuple):
            positions = key[1]
            self.graph.submit_step("copy_to_positions", target=self.columns, positions=positions, source=other.columns)
        else:
            self.graph.submit_step("copy", target=self.columns, source=other.columns)

    def copy(self) -> MatrixHandle:
        """Return a copy in a new matrix."""
        return self.astype(self.dtype)

    def astype(self, kind: Any) -> MatrixHandle:
        """Return a copy of another data type in a new matrix."""
        copied = self.graph.zeros(self.shape[1], kind, persistent=True)
        copied[:] = self
        return copied


def copy_for_solver(handle: Any, threads: int) -> Any:
    """Copy a matrix to float32 or wider, for a view to overwrite: `views.aligned_matrix.copy_aligned` for handles."""
    return handle.astype(np.promote_types(handle.dtype, np.float32))
