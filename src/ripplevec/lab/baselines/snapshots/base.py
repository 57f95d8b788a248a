"""The interface of baselines that follow a sequence of snapshots."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix


class SnapshotBaseline(Protocol):
    """A method that updates vectors when it gets the next snapshot; vertices are rows, and keep their numbers.

    Its settings are the fields of a dataclass, `dim` and `seed` among them.
    """

    def __init__(self, **settings: Any) -> None: ...

    def update(self, graph: csr_array, /) -> NDArray[np.float32]:
        """Return a vector per row of the next snapshot, a symmetric weight matrix of at least as many rows."""


def extend_matrix(matrix: csr_array | None, size: int) -> csr_array:
    """Return a copy of the last snapshot with as many rows as the next one; an empty matrix if there was none."""
    if matrix is None:
        return csr_array((size, size))
    if matrix.shape[0] > size:
        raise InvalidValueError.of("graph", f"at least {matrix.shape[0]:,} rows, as before", f"{size:,}")
    extended = matrix.copy()
    extended.resize((size, size))
    return extended


def changed_vertices(before: csr_array | None, after: csr_array) -> NDArray[np.int64]:
    """Return the vertices with edges whose row differs between two snapshots."""
    after = as_weight_matrix(after)
    change = csr_array(after - extend_matrix(before, after.shape[0]))
    change.eliminate_zeros()
    return np.flatnonzero((np.diff(change.indptr) > 0) & (np.diff(after.indptr) > 0))
