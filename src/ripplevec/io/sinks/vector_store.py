"""Base of the sinks that keep a vector store in step with a model: one row per vertex, with its current vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.changes import Changes

if TYPE_CHECKING:
    from ripplevec.embedder import Embedder

MAX_QUEUED_ROWS = 1 << 17
"""Largest number of vertices queued; once it is reached, the sink flushes by itself."""


class VectorRows(NamedTuple):
    """Vertices with the sequence number of the batch that moved each of them last, and their vectors."""

    ids: list[Id]
    sequences: NDArray[np.int64]
    vectors: NDArray[np.float32]


class VectorStoreSink(ABC):
    """Queues changes until a flush; only the last change of a vertex is written.

    Writing the same changes again has no effect, so a store is complete after a failure once they are written again.
    """

    def __init__(self) -> None:
        self._queued: dict[Id, tuple[Changes, int] | None] = {}  # changes and row in them; None: vertex removed

    def write(self, changes: Changes) -> None:
        """Queue the changes of one batch for the next flush; they replace queued changes of the same vertices."""
        self._queued |= dict.fromkeys(changes.removed)
        self._queued |= {name: (changes, row) for row, name in enumerate(changes.ids)}
        if len(self._queued) >= MAX_QUEUED_ROWS:
            self.flush()

    def flush(self) -> None:
        """Return once the store has all queued changes."""
        if not self._queued:
            return
        updated = {name: change for name, change in self._queued.items() if change is not None}
        removed = [name for name, change in self._queued.items() if change is None]
        rows = None
        if updated:
            vectors = np.stack([changes.vectors[row] for changes, row in updated.values()])
            sequences = np.array([changes.sequence for changes, _ in updated.values()])
            rows = VectorRows(list(updated), sequences, vectors)
        self._apply(rows, removed)
        self._queued = {}

    def synchronize(self, model: Embedder) -> int:
        """Make the store contain exactly the vertices of a model; return the sequence number of that state.

        Nothing is written if the store is known to be up to date: its newest row has the sequence number of the model's
        last batch, and the number of rows agrees.
        """
        self._queued = {}
        store_state = self._newest_sequence_and_size()
        with model.lock.reading():
            rows, sequence = model.engine.rows_by_arrival(), model.sequence
            if store_state == (sequence, len(rows)):
                return sequence
            ids, vectors = model.engine.ids_of(rows), model.engine.get_vectors(rows)
        self._replace_all(VectorRows(ids, np.full(len(ids), sequence), vectors))
        return sequence

    def close(self) -> None:
        """Write the queued changes."""
        self.flush()

    @abstractmethod
    def _apply(self, updated: VectorRows | None, removed: Sequence[Id]) -> None:
        """Insert or update rows, and delete the rows of removed vertices; create what does not exist."""

    @abstractmethod
    def _replace_all(self, rows: VectorRows) -> None:
        """Make the store contain exactly these rows."""

    @abstractmethod
    def _newest_sequence_and_size(self) -> tuple[int, int]:
        """Return the newest sequence number in the store and its number of rows; (-1, 0) if it is empty or unknown."""
