"""What a batch changed, for whoever follows the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdColumn, ids_to_list, take_ids


class BatchOutcome(NamedTuple):
    """What applying a batch did, by row."""

    moved: NDArray[np.int64]
    first_new: int  # arrival numbers from here on are new
    removed: list[Id]
    anchored: bool


class Changes:
    """The vertices whose vectors a batch moved, with their vectors right after it.

    Nothing is served before it is asked for: a batch whose changes nobody reads costs no time for them.
    """

    __slots__ = {
        "_column": "ids, as they are kept",
        "_inside": "rows, as they are kept",
        "_serve": "makes vectors of them",
        "_vectors": "once they were asked for",
        "anchored": "whether an anchor came with the batch",
        "arrived": "for each vertex, whether it is new",
        "removed": "the vertices that are gone",
        "sequence": "the number of the batch",
        "spectrum": "per view, what it held before and after an anchor that was asked to say; else None",
    }

    def __init__(
        self,
        column: IdColumn,
        inside: NDArray[Any],
        serve: Callable[[NDArray[Any]], NDArray[np.float32]],
        arrived: NDArray[np.bool_],
        removed: list[Id],
        sequence: int,
        anchored: bool,
    ) -> None:
        self._column, self._inside, self._serve = column, inside, serve
        self._vectors: NDArray[np.float32] | None = None
        self.arrived, self.removed, self.sequence, self.anchored = arrived, removed, sequence, anchored
        self.spectrum: list[list[float]] | None = None

    def __len__(self) -> int:
        return len(self._column)

    @property
    def ids(self) -> list[Id]:
        """The vertices that changed, in order of arrival."""
        return ids_to_list(self._column)

    def select_ids(self, rows: slice) -> list[Id]:
        """The ids of some of them."""
        return ids_to_list(take_ids(self._column, rows))

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Their vectors after the batch, a row each."""
        if self._vectors is None:
            self._vectors = self._serve(self._inside)
        return self._vectors

    def __repr__(self) -> str:
        counts = f"{len(self):,} vertices, {int(self.arrived.sum()):,} new, {len(self.removed):,} removed"
        return f"Changes({counts}, sequence {self.sequence}{', anchored' if self.anchored else ''})"
