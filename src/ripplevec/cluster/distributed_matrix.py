"""The graph of all shards as views see it, and the matrices that lie there: the driver has handles only."""

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
    """All shards, for as long as an anchor or a start takes: `views.devices.RemoteAdjacency`."""

    def __init__(self, transport: Transport, dim: int, kind: Any) -> None:
        """Vectors with so many columns are kept there, as this kind of number."""
        self.transport, self.rows = transport, 0
        self._handles, self._gone = count(VECTORS + 1), list[int]()
        self.vectors = MatrixHandle(self, _Held(VECTORS, []), slice(0, dim), np.dtype(kind))

    def __enter__(self) -> DistributedGraph:
        """Have every shard point its slots to rows of matrices, and tell the others what it will want of them."""
        try:
            wanted = self.transport.call("open_matrices", parts=self.transport.size)
            self.rows = max(self.transport.get(self.submit_step("lend_to", *wanted)))
            self._totals = self._add_totals()
        except BaseException as problem:
            self.__exit__(type(problem))
            raise
        return self

    def __exit__(self, problem: type[BaseException] | None = None, *details: object) -> None:
        """Have every shard as it was, whatever has happened: of two problems the first is the one to tell."""
        closed = self.transport.call("close_matrices")
        if problem is None:
            self.transport.get(closed)

    def submit_step(self, step: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        """Have every shard take a step of its `ShardMatrices`; answers that have not been looked at."""
        return self.transport.call("run_matrix_step", *columns, step=step, parts=parts, **constants)

    def sum_over_shards(self, step: str, **constants: Any) -> NDArray[np.float64]:
        """What the shards say, added up in their order."""
        return reduce(np.add, self.transport.get(self.submit_step(step, **constants)))

    def totals(self, rows: int = 0) -> Totals:
        """Sums over the graph."""
        return self._totals

    def _add_totals(self) -> Totals:
        ends, strengths, active = zip(*self.transport.get(self.submit_step("totals")), strict=True)
        return Totals(sum(ends), sum(strengths), sum(active))

    def operator(self, tau: float) -> DistributedOperator:
        """The operator of a view with this τ."""
        return DistributedOperator(self, tau)

    def zeros(self, columns: int, kind: Any, *, lasting: bool = False) -> MatrixHandle:
        """A new matrix; where vectors lie on disk, it does if it is to last."""
        handle, gone, kind = next(self._handles), self._gone.copy(), np.dtype(kind)
        del self._gone[: len(gone)]
        self.submit_step("make", handle=handle, columns=columns, kind=kind, gone=gone, lasting=lasting)
        return MatrixHandle(self, _Held(handle, self._gone), slice(0, columns), kind)


class _Held:
    """A matrix on the shards. They let go of it when the next one is made after the last sheet of it has gone."""

    def __init__(self, handle: int, gone: list[int]) -> None:
        self.handle, self._gone = handle, gone

    def __del__(self) -> None:
        self._gone.append(self.handle)


class MatrixHandle:
    """Columns of a matrix on the shards, in place of the array that a view would work on."""

    def __init__(self, workspace: DistributedGraph, held: _Held, columns: slice, kind: np.dtype[Any]) -> None:
        self.workspace, self.dtype, self.itemsize = workspace, kind, kind.itemsize
        self.piece = ColumnSlice(held.handle, columns.start, columns.stop)
        self._held = held

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, on the shard that has most, and columns."""
        return self.workspace.rows, self.piece.last - self.piece.first

    def __len__(self) -> int:
        return self.workspace.rows

    def __getitem__(self, key: tuple[slice, slice]) -> MatrixHandle:
        """Neighboring columns `[:, a:b]`, all rows."""
        rows, columns = key
        first, last, step = columns.indices(self.shape[1])
        if rows != slice(None) or step != 1:
            raise IndexError("of a matrix on shards there are only neighboring columns, with all rows")
        return MatrixHandle(
            self.workspace, self._held, slice(self.piece.first + first, self.piece.first + last), self.dtype
        )

    def __setitem__(self, key: Any, other: MatrixHandle) -> None:
        """Write over all columns `[:]`, or over some `[:, places]`."""
        if isinstance(key, tuple):
            self.workspace.submit_step("scatter", target=self.piece, places=key[1], source=other.piece)
        else:
            self.workspace.submit_step("copy", target=self.piece, source=other.piece)

    def copy(self) -> MatrixHandle:
        """The same numbers in a matrix of their own."""
        return self.astype(self.dtype)

    def astype(self, kind: Any) -> MatrixHandle:
        """The same numbers as another kind, in a matrix of their own."""
        own = self.workspace.zeros(self.shape[1], kind, lasting=True)
        own[:] = self
        return own


def copied(sheet: Any, threads: int) -> Any:
    """A matrix of its own for a view to use up, in float32 at least: `views.aligned_matrix.copy_aligned` of a sheet."""
    return sheet.astype(np.promote_types(sheet.dtype, np.float32))
