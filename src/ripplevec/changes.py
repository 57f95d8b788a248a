"""The result of a batch: the vertices whose vectors moved, with their new vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdColumn, ids_to_list, take_ids
from ripplevec.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


class BatchOutcome(NamedTuple):
    """Effect of a batch on an engine, by row."""

    moved: NDArray[np.int64]  # rows whose vectors moved
    first_new: int  # arrival number of the first new vertex; later numbers are new too
    removed: list[Id]  # ids of the removed vertices
    anchored: bool  # whether an anchor moved vectors with the batch


class Changes:
    """The vertices whose vectors a batch moved, with their vectors right after the batch.

    Returned by the methods of `Embedder` and `Session` that change a model; not created by users. Vectors are computed
    on first access, so changes that are not read cost no time.

    Attributes
    ----------
    arrived : bool array
        For each changed vertex, whether the batch added it.
    removed : list of int or str
        The vertices that the batch removed.
    sequence : int
        Sequence number of the batch.
    anchored : bool
        Whether an anchor (global correction) moved vectors with the batch. The changes of a gradual anchor are divided
        among several batches.
    spectrum : list of two lists of float, or None
        For `Embedder.anchor(gap=True)`: the share of the attainable spectrum that each view captured, one list from
        before the anchor and one from after; else None.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")])
    >>> changes = model.partial_fit([("e", "a"), ("e", "b")])
    >>> "e" in changes.ids, changes.sequence
    (True, 1)
    >>> changes.vectors.shape == (len(changes), 4)
    True
    """

    __slots__ = {
        "_column": "ids as a column",
        "_rows": "stored rows of the vectors",
        "_to_vectors": "converts stored rows to vectors",
        "_vectors": "the vectors, once computed",
        "anchored": "whether an anchor (global correction) moved vectors with the batch",
        "arrived": "for each changed vertex, whether the batch added it",
        "removed": "the vertices that the batch removed",
        "sequence": "sequence number of the batch",
        "spectrum": "share of the attainable spectrum per view, before and after a requested anchor, or None",
    }

    def __init__(
        self,
        column: IdColumn,
        rows: NDArray[Any],
        to_vectors: Callable[[NDArray[Any]], NDArray[np.float32]],
        arrived: NDArray[np.bool_],
        removed: list[Id],
        sequence: int,
        anchored: bool,
    ) -> None:
        self._column, self._rows, self._to_vectors = column, rows, to_vectors
        self._vectors: NDArray[np.float32] | None = None
        self.arrived, self.removed, self.sequence, self.anchored = arrived, removed, sequence, anchored
        self.spectrum: list[list[float]] | None = None

    def __len__(self) -> int:
        return len(self._column)

    @property
    def ids(self) -> list[Id]:
        """Ids of the changed vertices, in order of arrival."""
        return ids_to_list(self._column)

    def select_ids(self, rows: slice) -> list[Id]:
        """Return a part of `ids` without converting all of them.

        Parameters
        ----------
        rows : slice
            The positions.

        Returns
        -------
        list of int or str
            The same as `ids[rows]`.
        """
        return ids_to_list(take_ids(self._column, rows))

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Vectors of the changed vertices after the batch, one row per id in `ids`."""
        if self._vectors is None:
            self._vectors = self._to_vectors(self._rows)
        return self._vectors

    def to_pandas(self) -> pd.DataFrame:
        """Return the changes as a data frame: one row per changed vertex, then one per removed vertex.

        Returns
        -------
        pandas.DataFrame
            The columns `id`, `arrived`, `removed` and `vector`; a removed vertex has no vector.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a")])
        >>> model.remove_vertex("a").to_pandas().columns.tolist()
        ['id', 'arrived', 'removed', 'vector']
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("Changes.to_pandas", "pandas") from error

        columns = {
            "id": [*self.ids, *self.removed],
            "arrived": [*self.arrived.tolist(), *[False] * len(self.removed)],
            "removed": [*[False] * len(self), *[True] * len(self.removed)],
            "vector": [*self.vectors, *[None] * len(self.removed)],
        }
        return pd.DataFrame(
            {
                name: pd.Series(values, dtype=object if name in ("id", "vector") else bool)
                for name, values in columns.items()
            }
        )

    def __repr__(self) -> str:
        counts = f"{len(self):,} vertices, {int(self.arrived.sum()):,} new, {len(self.removed):,} removed"
        return f"Changes({counts}, sequence {self.sequence}{', anchored' if self.anchored else ''})"
