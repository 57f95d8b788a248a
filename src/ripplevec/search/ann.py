"""Approximate nearest-neighbor index (usearch) over vectors that are added, removed and moved.

The index holds served vectors, which anchors hardly move, and may be out of date: it only proposes candidates, whose
cosines are then computed exactly. Rows that are not indexed yet (the tail), and rows known to have moved away from
their entry (the queue), are searched exactly in addition.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from ripplevec.graph.adjacency import RowArray
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search import exact
from ripplevec.search._kernels import find_stale_rows
from ripplevec.search.searcher import Query, SearchResults, SearchTarget

REINDEX_DISTANCE = 0.3
"""Distance a served direction may move before it is indexed again. It can be large: candidates are ranked exactly."""

MIN_CANDIDATES = 800
"""Minimum number of candidates per query; four per requested neighbor if that is more.

It exceeds the size of a typical community, whose members slightly outdated entries cannot tell apart.
"""

MAX_UNINDEXED = 2_048  # rows that may be searched exactly in addition before they are indexed
MIN_INDEXED_PER_QUERY = 64  # rows indexed per query, plus the backlog / BACKLOG_DIVISOR
BACKLOG_DIVISOR = 2_048
BLOCK_ROWS = 4_096  # rows per block of the scan for moved rows
MAX_BLOCKS_SCANNED = 128  # per query
MAX_ROWS_COMPARED = 2_048  # touched rows compared with the index per query; a block is always completed
REBUILD_SHARE = 0.4
"""Share of dead entries, or of queued rows, above which the index is rebuilt."""

_VERSION_SHIFT = 40  # a key is the row, plus above this bit the number of times that the row has been indexed
_NEVER = np.iinfo(np.int64).min


class IndexUpdate(NamedTuple):
    """Rows that the index should add and drop: planned while writers are excluded, applied while they may run."""

    added: RowArray
    vectors: NDArray[np.float32]  # served directions of the added rows
    dropped: RowArray  # rows that have an entry but are no longer placed
    indexed_rows: int  # rows below this number have been indexed after the update


class AnnIndex:
    """Index of the served directions of placed rows.

    One thread at a time may update it; any number of threads may search it in the meantime.
    """

    def __init__(self, store: VectorStore, threads: int) -> None:
        self.lineage = ref(store.lineage)  # identifies the indexed store; a model that starts again has another lineage
        self.dim, self.threads = store.vectors.shape[1], threads
        self.indexed = np.zeros(0, np.uint8)  # flag per row: has an entry
        self.queued = np.zeros(0, np.uint8)  # flag per row: has no entry, or one in the wrong place
        self.queue = np.empty(0, np.int64)  # queued rows; replaced, never modified, because other threads read it
        self.indexed_rows = 0  # rows below this number have been indexed once
        self.entries = _make_index(self.dim)
        self.previous: Index | None = None  # the index before a rebuild, searched until the new one is complete
        self.covered_rows = 0  # rows below this number are in one of the two indexes; the others are the tail
        self.versions = np.zeros(0, np.uint64)  # number of times that this index has added each row
        self.live_entries = 0  # entries of current rows; dead ones remain as nodes of the search graph
        self.total_added = 0  # rows added so far, over all rebuilds
        self._checked_at = np.empty(0, np.int64)  # per block: stamp (2 · sequence number) of its last scan
        self._anchors = self._sequence = 0  # of the target at the last update
        self._usearch_lock = Lock()  # usearch reuses the same buffers in every call

    def nearest(self, target: SearchTarget, query: Query, count: int) -> SearchResults:
        """Return the best `count` rows by exact cosine among candidates of the index and rows not indexed yet."""
        # A concurrent update moves rows from the queue and the tail to the entries, and entries to the previous index:
        # reading in this order misses none.
        queue, covered, entries, previous = self.queue, self.covered_rows, self.entries, self.previous
        proposed = [
            self._propose(index, query, max(MIN_CANDIDATES, 4 * count)) for index in (entries, previous) if index
        ]
        rows = np.unique(np.concatenate([queue, *proposed]))
        rows = rows[(rows < covered) & (rows != query.exclude)]  # rows added since then are in the tail
        near = self._search_rows(target, rows, query, count)
        return _merge(near, self._search_tail(target, covered, query, count), count)

    def plan_update(self, target: SearchTarget) -> IndexUpdate:
        """Scan for moved rows and choose rows to index; the work of one call is bounded."""
        self._grow(len(target.store.placed), 2 * target.sequence)
        self._detect_anchor(target)
        if self._needs_rebuild():
            self._start_rebuild()
        dropped = self._scan_blocks(target)
        backlog, limit = self._backlog(target), 0
        if backlog > MAX_UNINDEXED or self.previous is not None:
            limit = MIN_INDEXED_PER_QUERY + backlog // BACKLOG_DIVISOR
        chosen, indexed_rows = self._choose_rows(target, limit)
        vectors = _served_directions(target, chosen)
        nonzero = vectors.any(axis=1)
        self._unqueue(chosen[~nonzero])
        return IndexUpdate(chosen[nonzero], vectors[nonzero], dropped, indexed_rows)

    def apply_update(self, update: IndexUpdate) -> None:
        """Apply a planned update.

        Entries are never removed, because paths of the search graph lead through them. Dead entries stay until the
        index is rebuilt; rows that they propose are ranked by current vectors, or ignored if unplaced.
        """
        self.versions[update.added] += np.uint64(1)
        if update.added.size:
            with self._usearch_lock:
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
        """Return whether no update is due: all blocks scanned, and a backlog small enough for exact search."""
        scanned = self._checked_at[: _block_count(self.covered_rows)] >= 2 * target.sequence
        stale = not scanned.all() or target.anchors != self._anchors
        return not (stale or self.previous or self._needs_rebuild()) and self._backlog(target) <= MAX_UNINDEXED

    @property
    def nbytes(self) -> int:
        """Approximate memory use in bytes."""
        indexes = [self.entries] if self.previous is None else [self.entries, self.previous]
        return sum(index.memory_usage for index in indexes) + 10 * self.indexed.nbytes + self.queue.nbytes

    # ------------------------------------------------------------------ searching

    def _propose(self, index: Index, query: Query, count: int) -> RowArray:
        """Return candidate rows of one index."""
        served = exact.normalize_queries(query.served[None])[0].astype(np.float32)
        with self._usearch_lock:
            keys = index.search(served, count, threads=1).keys.astype(np.int64)
        return keys & ((1 << _VERSION_SHIFT) - 1)

    def _search_rows(self, target: SearchTarget, rows: RowArray, query: Query, count: int) -> SearchResults:
        """Return the best of some rows, exactly."""
        store = target.store
        parts = store.vectors[rows], store.placed[rows], query.internal, target.rule.scaling
        found, cosines = exact.nearest(*parts, count, threads=1)
        return np.where(found < 0, -1, rows[found] if rows.size else -1), cosines

    def _search_tail(self, target: SearchTarget, first: int, query: Query, count: int) -> SearchResults:
        """Return the best rows from `first` on, exactly."""
        store, tail = target.store, slice(first, target.store.graph.row_count)
        parts = store.vectors[tail], store.placed[tail], query.internal, target.rule.scaling
        exclude = np.array([query.exclude - first if query.exclude >= first else -1])
        found, cosines = exact.nearest(*parts, count, exclude, self.threads)
        return np.where(found < 0, -1, found + first), cosines

    # ------------------------------------------------------------------ updating

    def _keys(self, rows: RowArray) -> NDArray[np.uint64]:
        return self.versions[rows] << np.uint64(_VERSION_SHIFT) | rows.astype(np.uint64)

    def _backlog(self, target: SearchTarget) -> int:
        """Return the number of rows that still have to be indexed."""
        return self.queue.size + target.store.graph.row_count - self.indexed_rows

    def _grow(self, size: int, now: int) -> None:
        """Grow the arrays per row; new blocks count as scanned now, because they will be indexed later."""
        missing = size - len(self.indexed)
        if missing > 0:
            for name in ("indexed", "queued", "versions"):
                setattr(self, name, np.pad(getattr(self, name), (0, missing)))
            self._checked_at = np.pad(
                self._checked_at, (0, _block_count(size) - len(self._checked_at)), constant_values=now
            )

    def _detect_anchor(self, target: SearchTarget) -> None:
        """Mark all rows for comparison after an anchor, or after any batch if the rule does not stamp moved rows.

        Rules that apply arrivals one by one do not write stamps to `store.seen`.
        """
        unstamped = target.rule.one_by_one and target.sequence != self._sequence
        if target.anchors != self._anchors or unstamped:
            self._checked_at[: _block_count(self.indexed_rows)] = _NEVER  # rows above are indexed later
        self._anchors, self._sequence = target.anchors, target.sequence

    def _scan_blocks(self, target: SearchTarget) -> RowArray:
        """Queue rows that have moved too far since they were indexed; return indexed rows that are no longer placed.

        Blocks that were scanned longest ago come first.
        """
        now, store = 2 * target.sequence, target.store
        stale = np.flatnonzero(self._checked_at[: _block_count(self.covered_rows)] < now)
        dropped, compared = [np.empty(0, np.int64)], 0
        for block in stale[np.argsort(self._checked_at[stale], kind="stable")][:MAX_BLOCKS_SCANNED].tolist():
            if compared > MAX_ROWS_COMPARED:
                break
            part = slice(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self.covered_rows))
            touched = find_stale_rows(
                store.seen[part], store.placed[part], self.indexed[part], self.queued[part], self._checked_at[block]
            )
            dropped.append(self._compare_rows(target, touched + part.start))
            compared += touched.size
            self._checked_at[block] = now
        return np.concatenate(dropped)

    def _compare_rows(self, target: SearchTarget, touched: RowArray) -> RowArray:
        """Queue rows whose entry is missing or too far away; return indexed rows that have no direction any more."""
        vectors = _served_directions(target, touched)
        exists, indexed = vectors.any(axis=1), self.indexed[touched] == 1
        far = exists & ~indexed
        both = np.flatnonzero(exists & indexed)
        if both.size:
            with self._usearch_lock:
                stored = np.asarray(self.entries.get(self._keys(touched[both])), np.float32)
            far[both] = np.linalg.norm(stored - vectors[both], axis=1) > REINDEX_DISTANCE
        new = touched[far & (self.queued[touched] == 0)]
        self.queued[touched] = far
        self.queue = np.concatenate([self.queue[self.queued[self.queue] == 1], new])
        return touched[indexed & ~exists]

    def _choose_rows(self, target: SearchTarget, limit: int) -> tuple[RowArray, int]:
        """Choose up to `limit` rows to index, queued rows first; also return the new value of `indexed_rows`."""
        queued = self.queue[:limit]
        last = min(self.indexed_rows + limit - queued.size, target.store.graph.row_count)
        following = np.arange(self.indexed_rows, last)
        following = following[(target.store.placed[following] == 1) & (self.indexed[following] == 0)]
        return np.unique(np.concatenate([queued, following])), last

    def _unqueue(self, rows: RowArray) -> None:
        """Remove rows without a direction from the queue; a row that gets a vector again is queued by the next scan."""
        if rows.size:
            self.queued[rows] = 0
            self.queue = self.queue[self.queued[self.queue] == 1]

    def _needs_rebuild(self) -> bool:
        """Return whether too many entries are dead, or too many rows have moved, to continue with this index."""
        dead, queued = 1 - self.live_entries / max(1, len(self.entries)), self.queue.size / max(1, self.covered_rows)
        return self.previous is None and len(self.entries) > 0 and max(dead, queued) > REBUILD_SHARE

    def _start_rebuild(self) -> None:
        """Start a new index; the current one is searched too until the new one is complete."""
        self.previous, self.entries = self.entries, _make_index(self.dim)
        self.indexed[:], self.versions[:] = 0, 0
        self.indexed_rows = self.live_entries = 0


def _block_count(rows: int) -> int:
    return -(-rows // BLOCK_ROWS)


def _make_index(dim: int) -> Index:
    return Index(ndim=dim, metric="ip", dtype="f16", connectivity=16, expansion_add=128, expansion_search=64)


def _served_directions(target: SearchTarget, rows: RowArray) -> NDArray[np.float32]:
    """Return the normalized served vectors of rows; zero for unplaced rows."""
    vectors = target.rule.to_served(target.store.vectors[rows])
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    valid = (length > 0) & np.isfinite(length) & (target.store.placed[rows, None] == 1)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=valid)


def _merge(first: SearchResults, second: SearchResults, count: int) -> SearchResults:
    """Return the best of two results."""
    found, cosines = np.hstack([first[0], second[0]]), np.hstack([first[1], second[1]])
    return exact.merge_best(found, np.where(found < 0, np.float32(-np.inf), cosines), count)
