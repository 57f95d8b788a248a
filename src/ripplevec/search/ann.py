"""Near rows through an index (usearch) that follows a matrix whose rows come, go and move.

The index holds vectors as they are served, which anchors leave nearly where they were, and is allowed to be out of
date: it only proposes candidates, and their cosines are worked out anew. What it does not hold yet (the tail), or holds
in a place that has been left (the waiting), is searched exactly beside it as soon as that has been noticed.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from ripplevec.rules.vector_store import VectorStore
from ripplevec.search import exact
from ripplevec.search._kernels import find_stale_rows
from ripplevec.search.query import Query, SearchResults, SearchTarget

REINDEX_DISTANCE = 0.3
"""How far a served direction may move before it is indexed again; candidates are ranked anew, so it may be far."""

MIN_CANDIDATES = 800
"""Proposed per query, at least; four per answer where more are asked for.

More than the community of a vertex has members, because entries that are a little off tell them apart no longer.
"""

MAX_UNINDEXED = 2_048  # rows that may be searched exactly beside the index before it takes them up
MIN_INDEXED_PER_QUERY = 64  # rows that it then takes up per query, and one in BACKLOG_DIVISOR of all that it lacks
BACKLOG_DIVISOR = 2_048
BLOCK_ROWS = 4_096  # rows looked through together for those that have moved
MAX_BLOCKS_SCANNED = 128  # looked through per query
MAX_ROWS_COMPARED = 2_048  # rows that were touched, compared with the index per query; a block is finished
REBUILD_SHARE = 0.4
"""The share of dead entries, or of rows that wait, at which the index is made anew."""

_VERSION = 40  # a key is a row and, above this bit, how often the row has been indexed
_EVERYTHING = np.iinfo(np.int64).min
Rows = NDArray[np.int64]


class IndexUpdate(NamedTuple):
    """What the index is to take up and to drop: decided while nobody writes, done while others may."""

    added: Rows
    vectors: NDArray[np.float32]
    dropped: Rows
    indexed_rows: int  # rows below this are in the index then


class AnnIndex:
    """The served directions of placed rows. One thread tends it at a time, any number may ask meanwhile."""

    def __init__(self, store: VectorStore, threads: int) -> None:
        self.lineage = ref(store.lineage)  # whose rows these are: a model that begins anew has another
        self.dim, self.threads = store.vectors.shape[1], threads
        self.indexed = np.zeros(0, np.uint8)  # rows that the index has an entry for
        self.queued = np.zeros(0, np.uint8)  # rows that it has no entry for, or one in the wrong place
        self.queue = np.empty(0, np.int64)  # the waiting; replaced, never altered, because others read it
        self.indexed_rows = 0  # rows below this have been taken up, once
        self.entries = _index(self.dim)
        self.previous: Index | None = None  # the index before this one, asked until this one has everything
        self.covered_rows = 0  # rows below this are in one of the two; the others are the tail
        self.versions = np.zeros(0, np.uint64)  # how often each row has been taken up by this index
        self.live_entries = 0  # entries that stand for a row; the others are only passed through
        self.total_added = 0  # rows so far, by whichever index
        self._checked_at = np.empty(
            0, np.int64
        )  # per block of rows: the stamp of the batch it was last looked through at
        self._anchors = self._sequence = 0
        self._one_at_a_time = Lock()  # usearch gives every call the same buffers

    def nearest(self, target: SearchTarget, query: Query, count: int) -> SearchResults:
        """The best `count` rows by exact cosine among those proposed and those that are not indexed yet."""
        # What is tended meanwhile goes from the queue and the tail to the entries, and from those to the former ones:
        # read in this order, nothing is missed.
        queue, covered, entries, former = self.queue, self.covered_rows, self.entries, self.previous
        proposed = [
            self._proposed(index, query, max(MIN_CANDIDATES, 4 * count)) for index in (entries, former) if index
        ]
        rows = np.unique(np.concatenate([queue, *proposed]))
        rows = rows[(rows < covered) & (rows != query.exclude)]  # what has been taken up just now is in the tail, too
        near = self._among(target, rows, query, count)
        return _best(near, self._tail(target, covered, query, count), count)

    def plan_update(self, target: SearchTarget) -> IndexUpdate:
        """Find out what has moved, and choose what the index should take up now; a bounded piece of update."""
        self._grow(len(target.store.placed), 2 * target.sequence)
        self._notice_anchor(target)
        if self._worn():
            self._renew()
        dropped = self._look(target)
        lacking = self._lacking(target)
        room = (
            MIN_INDEXED_PER_QUERY + lacking // BACKLOG_DIVISOR
            if lacking > MAX_UNINDEXED or self.previous is not None
            else 0
        )
        chosen, filled = self._choose(target, room)
        vectors = _served(target, chosen)
        good = vectors.any(axis=1)
        return IndexUpdate(chosen[good], vectors[good], dropped, filled)

    def apply_update(self, update: IndexUpdate) -> None:
        """Do what was planned.

        Nothing is removed from a graph of entries: the links of others lead through it. What is dead stays until the
        index is made anew, and proposes its row in vain.
        """
        self.versions[update.added] += np.uint64(1)
        if update.added.size:
            with self._one_at_a_time:
                self.entries.add(self._keys(update.added), update.vectors, threads=self.threads)
        self.live_entries += int(np.count_nonzero(self.indexed[update.added] == 0)) - update.dropped.size
        self.indexed[update.dropped], self.indexed[update.added] = 0, 1
        self.queued[update.added] = 0
        self.queue = self.queue[self.queued[self.queue] == 1]
        self.indexed_rows, self.covered_rows = update.indexed_rows, max(update.indexed_rows, self.covered_rows)
        if self.indexed_rows == self.covered_rows:
            self.previous = None
        self.total_added += update.added.size

    def is_current(self, target: SearchTarget) -> bool:
        """Whether there is nothing to do: everybody looked at, and no more lacking than is left to exact search."""
        late = (
            self._checked_at[: _blocks(self.covered_rows)] < 2 * target.sequence
        ).any() or target.anchors != self._anchors
        return not (late or self.previous or self._worn()) and self._lacking(target) <= MAX_UNINDEXED

    @property
    def nbytes(self) -> int:
        """The memory that all of it takes."""
        indexes = [self.entries] if self.previous is None else [self.entries, self.previous]
        return sum(index.memory_usage for index in indexes) + 10 * self.indexed.nbytes + self.queue.nbytes

    # ------------------------------------------------------------------ asking

    def _proposed(self, index: Index, query: Query, count: int) -> Rows:
        served = exact.normalize_queries(query.served[None])[0].astype(np.float32)
        with self._one_at_a_time:
            keys = index.search(served, count, threads=1).keys.astype(np.int64)
        return keys & ((1 << _VERSION) - 1)

    def _among(self, target: SearchTarget, rows: Rows, query: Query, count: int) -> SearchResults:
        store = target.store
        parts = store.vectors[rows], store.placed[rows], query.internal, target.rule.scaling
        found, cosines = exact.nearest(*parts, count, threads=1)
        return np.where(found < 0, -1, rows[found] if rows.size else -1), cosines

    def _tail(self, target: SearchTarget, first: int, query: Query, count: int) -> SearchResults:
        """The best rows from `first` on, exactly."""
        store, tail = target.store, slice(first, target.store.graph.row_count)
        parts = store.vectors[tail], store.placed[tail], query.internal, target.rule.scaling
        exclude = np.array([query.exclude - first if query.exclude >= first else -1])
        found, cosines = exact.nearest(*parts, count, exclude, self.threads)
        return np.where(found < 0, -1, found + first), cosines

    # ------------------------------------------------------------------ keeping up

    def _keys(self, rows: Rows) -> NDArray[np.uint64]:
        return self.versions[rows] << np.uint64(_VERSION) | rows.astype(np.uint64)

    def _lacking(self, target: SearchTarget) -> int:
        return self.queue.size + target.store.graph.row_count - self.indexed_rows

    def _grow(self, size: int, now: int) -> None:
        """Have room for as many rows; what is taken up of them will be no older than now."""
        lacking = size - len(self.indexed)
        if lacking > 0:
            for name in ("indexed", "queued", "versions"):
                setattr(self, name, np.pad(getattr(self, name), (0, lacking)))
            self._checked_at = np.pad(self._checked_at, (0, _blocks(size) - len(self._checked_at)), constant_values=now)

    def _notice_anchor(self, target: SearchTarget) -> None:
        """Have every row compared after an anchor; after every batch where the rule does not stamp what it moves."""
        unstamped = target.rule.one_by_one and target.sequence != self._sequence
        if target.anchors != self._anchors or unstamped:
            self._checked_at[: _blocks(self.indexed_rows)] = _EVERYTHING  # the others will be taken up as they are then
        self._anchors, self._sequence = target.anchors, target.sequence

    def _look(self, target: SearchTarget) -> Rows:
        """Have the rows wait that have moved too far since they were indexed; returns those that are gone.

        The blocks that were not looked through for longest come first.
        """
        now, store = 2 * target.sequence, target.store
        late = np.flatnonzero(self._checked_at[: _blocks(self.covered_rows)] < now)
        dropped, examined = [np.empty(0, np.int64)], 0
        for block in late[np.argsort(self._checked_at[late], kind="stable")][:MAX_BLOCKS_SCANNED].tolist():
            if examined > MAX_ROWS_COMPARED:
                break
            part = slice(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self.covered_rows))
            touched = find_stale_rows(
                store.seen[part], store.placed[part], self.indexed[part], self.queued[part], self._checked_at[block]
            )
            dropped.append(self._examine(target, touched + part.start))
            examined += touched.size
            self._checked_at[block] = now
        return np.concatenate(dropped)

    def _examine(self, target: SearchTarget, touched: Rows) -> Rows:
        """Have those wait that the index does not hold where they are; returns those that it holds for nothing."""
        vectors = _served(target, touched)
        there, held = vectors.any(axis=1), self.indexed[touched] == 1
        far = there & ~held
        both = np.flatnonzero(there & held)
        if both.size:
            with self._one_at_a_time:
                stored = np.asarray(self.entries.get(self._keys(touched[both])), np.float32)
            far[both] = np.linalg.norm(stored - vectors[both], axis=1) > REINDEX_DISTANCE
        late = touched[far & (self.queued[touched] == 0)]
        self.queued[touched] = far
        self.queue = np.concatenate([self.queue[self.queued[self.queue] == 1], late])
        return touched[held & ~there]

    def _choose(self, target: SearchTarget, room: int) -> tuple[Rows, int]:
        """Up to `room` rows to take up, those that wait first, and how far the index is filled by them."""
        waiting = self.queue[:room]
        last = min(self.indexed_rows + room - waiting.size, target.store.graph.row_count)
        next_ones = np.arange(self.indexed_rows, last)
        next_ones = next_ones[(target.store.placed[next_ones] == 1) & (self.indexed[next_ones] == 0)]
        return np.unique(np.concatenate([waiting, next_ones])), last

    def _worn(self) -> bool:
        """Whether too many entries are dead, or too many rows elsewhere, to go on with this index."""
        dead, waiting = 1 - self.live_entries / max(1, len(self.entries)), self.queue.size / max(1, self.covered_rows)
        return self.previous is None and len(self.entries) > 0 and max(dead, waiting) > REBUILD_SHARE

    def _renew(self) -> None:
        """Begin another index, and ask this one as well until that has everything."""
        self.previous, self.entries = self.entries, _index(self.dim)
        self.indexed[:], self.versions[:] = 0, 0
        self.indexed_rows = self.live_entries = 0


def _blocks(rows: int) -> int:
    return -(-rows // BLOCK_ROWS)


def _index(dim: int) -> Index:
    return Index(ndim=dim, metric="ip", dtype="f16", connectivity=16, expansion_add=128, expansion_search=64)


def _served(target: SearchTarget, rows: Rows) -> NDArray[np.float32]:
    """The directions that rows are served in; zero for those that are not placed."""
    vectors = target.rule.to_served(target.store.vectors[rows])
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    good = (length > 0) & np.isfinite(length) & (target.store.placed[rows, None] == 1)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=good)


def _best(first: SearchResults, second: SearchResults, count: int) -> SearchResults:
    """The best of two answers."""
    found, cosines = np.hstack([first[0], second[0]]), np.hstack([first[1], second[1]])
    return exact.merge_best(found, np.where(found < 0, np.float32(-np.inf), cosines), count)
