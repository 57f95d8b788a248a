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

from ripplevec.rules.vector_store import Field
from ripplevec.search import exact
from ripplevec.search._kernels import suspects
from ripplevec.search.query import Answers, Present, Query

MOVED = 0.3
"""How far a served direction may move before it is indexed again; candidates are ranked anew, so it may be far."""

CANDIDATES = 800
"""Proposed per query, at least; four per answer where more are asked for.

More than the community of a vertex has members, because entries that are a little off tell them apart no longer.
"""

FRESH = 2_048  # rows that may be searched exactly beside the index before it takes them up
AT_ONCE = 64  # rows that it then takes up per query, and one in SHARE of all that it lacks
SHARE = 2_048
BLOCK = 4_096  # rows looked through together for those that have moved
BLOCKS = 128  # looked through per query
EXAMINED = 2_048  # rows that were touched, compared with the index per query; a block is finished
WORN = 0.4
"""The share of dead entries, or of rows that wait, at which the index is made anew."""

_VERSION = 40  # a key is a row and, above this bit, how often the row has been indexed
_EVERYTHING = np.iinfo(np.int64).min
Rows = NDArray[np.int64]


class Work(NamedTuple):
    """What the index is to take up and to drop: decided while nobody writes, done while others may."""

    added: Rows
    vectors: NDArray[np.float32]
    dropped: Rows
    filled: int  # rows below this are in the index then


class AnnIndex:
    """The served directions of placed rows. One thread tends it at a time, any number may ask meanwhile."""

    def __init__(self, field: Field, threads: int) -> None:
        self.of = ref(field.lineage)  # whose rows these are: a model that begins anew has another
        self.dim, self.threads = field.vectors.shape[1], threads
        self.held = np.zeros(0, np.uint8)  # rows that the index has an entry for
        self.waiting = np.zeros(0, np.uint8)  # rows that it has no entry for, or one in the wrong place
        self.queue = np.empty(0, np.int64)  # the waiting; replaced, never altered, because others read it
        self.filled = 0  # rows below this have been taken up, once
        self.entries = _index(self.dim)
        self.former: Index | None = None  # the index before this one, asked until this one has everything
        self.covered = 0  # rows below this are in one of the two; the others are the tail
        self.version = np.zeros(0, np.uint64)  # how often each row has been taken up by this index
        self.live = 0  # entries that stand for a row; the others are only passed through
        self.taken_up = 0  # rows so far, by whichever index
        self._since = np.empty(0, np.int64)  # per block of rows: the stamp of the batch it was last looked through at
        self._anchors = self._sequence = 0
        self._one_at_a_time = Lock()  # usearch gives every call the same buffers

    def nearest(self, present: Present, query: Query, count: int) -> Answers:
        """The best `count` rows by exact cosine among those proposed and those that are not indexed yet."""
        # What is tended meanwhile goes from the queue and the tail to the entries, and from those to the former ones:
        # read in this order, nothing is missed.
        queue, covered, entries, former = self.queue, self.covered, self.entries, self.former
        proposed = [self._proposed(index, query, max(CANDIDATES, 4 * count)) for index in (entries, former) if index]
        rows = np.unique(np.concatenate([queue, *proposed]))
        rows = rows[(rows < covered) & (rows != query.exclude)]  # what has been taken up just now is in the tail, too
        near = self._among(present, rows, query, count)
        return _best(near, self._tail(present, covered, query, count), count)

    def plan(self, present: Present) -> Work:
        """Find out what has moved, and choose what the index should take up now; a bounded piece of work."""
        self._grow(len(present.field.placed), 2 * present.sequence)
        self._notice_anchor(present)
        if self._worn():
            self._renew()
        dropped = self._look(present)
        lacking = self._lacking(present)
        room = AT_ONCE + lacking // SHARE if lacking > FRESH or self.former is not None else 0
        chosen, filled = self._choose(present, room)
        vectors = _served(present, chosen)
        good = vectors.any(axis=1)
        return Work(chosen[good], vectors[good], dropped, filled)

    def carry_out(self, work: Work) -> None:
        """Do what was planned.

        Nothing is removed from a graph of entries: the links of others lead through it. What is dead stays until the
        index is made anew, and proposes its row in vain.
        """
        self.version[work.added] += np.uint64(1)
        if work.added.size:
            with self._one_at_a_time:
                self.entries.add(self._keys(work.added), work.vectors, threads=self.threads)
        self.live += int(np.count_nonzero(self.held[work.added] == 0)) - work.dropped.size
        self.held[work.dropped], self.held[work.added] = 0, 1
        self.waiting[work.added] = 0
        self.queue = self.queue[self.waiting[self.queue] == 1]
        self.filled, self.covered = work.filled, max(work.filled, self.covered)
        if self.filled == self.covered:
            self.former = None
        self.taken_up += work.added.size

    def settled(self, present: Present) -> bool:
        """Whether there is nothing to do: everybody looked at, and no more lacking than is left to exact search."""
        late = (self._since[: _blocks(self.covered)] < 2 * present.sequence).any() or present.anchors != self._anchors
        return not (late or self.former or self._worn()) and self._lacking(present) <= FRESH

    @property
    def nbytes(self) -> int:
        """The memory that all of it takes."""
        indexes = [self.entries] if self.former is None else [self.entries, self.former]
        return sum(index.memory_usage for index in indexes) + 10 * self.held.nbytes + self.queue.nbytes

    # ------------------------------------------------------------------ asking

    def _proposed(self, index: Index, query: Query, count: int) -> Rows:
        served = exact.unit(query.served[None])[0].astype(np.float32)
        with self._one_at_a_time:
            keys = index.search(served, count, threads=1).keys.astype(np.int64)
        return keys & ((1 << _VERSION) - 1)

    def _among(self, present: Present, rows: Rows, query: Query, count: int) -> Answers:
        field = present.field
        parts = field.vectors[rows], field.placed[rows], query.inside, present.rule.serving
        found, cosines = exact.nearest(*parts, count, threads=1)
        return np.where(found < 0, -1, rows[found] if rows.size else -1), cosines

    def _tail(self, present: Present, first: int, query: Query, count: int) -> Answers:
        """The best rows from `first` on, exactly."""
        field, tail = present.field, slice(first, present.field.graph.rows)
        parts = field.vectors[tail], field.placed[tail], query.inside, present.rule.serving
        exclude = np.array([query.exclude - first if query.exclude >= first else -1])
        found, cosines = exact.nearest(*parts, count, exclude, self.threads)
        return np.where(found < 0, -1, found + first), cosines

    # ------------------------------------------------------------------ keeping up

    def _keys(self, rows: Rows) -> NDArray[np.uint64]:
        return self.version[rows] << np.uint64(_VERSION) | rows.astype(np.uint64)

    def _lacking(self, present: Present) -> int:
        return self.queue.size + present.field.graph.rows - self.filled

    def _grow(self, size: int, now: int) -> None:
        """Have room for as many rows; what is taken up of them will be no older than now."""
        lacking = size - len(self.held)
        if lacking > 0:
            for name in ("held", "waiting", "version"):
                setattr(self, name, np.pad(getattr(self, name), (0, lacking)))
            self._since = np.pad(self._since, (0, _blocks(size) - len(self._since)), constant_values=now)

    def _notice_anchor(self, present: Present) -> None:
        """Have every row compared after an anchor; after every batch where the rule does not stamp what it moves."""
        unstamped = present.rule.one_by_one and present.sequence != self._sequence
        if present.anchors != self._anchors or unstamped:
            self._since[: _blocks(self.filled)] = _EVERYTHING  # the others will be taken up as they are then
        self._anchors, self._sequence = present.anchors, present.sequence

    def _look(self, present: Present) -> Rows:
        """Have the rows wait that have moved too far since they were indexed; returns those that are gone.

        The blocks that were not looked through for longest come first.
        """
        now, field = 2 * present.sequence, present.field
        late = np.flatnonzero(self._since[: _blocks(self.covered)] < now)
        dropped, examined = [np.empty(0, np.int64)], 0
        for block in late[np.argsort(self._since[late], kind="stable")][:BLOCKS].tolist():
            if examined > EXAMINED:
                break
            part = slice(block * BLOCK, min((block + 1) * BLOCK, self.covered))
            touched = suspects(
                field.seen[part], field.placed[part], self.held[part], self.waiting[part], self._since[block]
            )
            dropped.append(self._examine(present, touched + part.start))
            examined += touched.size
            self._since[block] = now
        return np.concatenate(dropped)

    def _examine(self, present: Present, touched: Rows) -> Rows:
        """Have those wait that the index does not hold where they are; returns those that it holds for nothing."""
        vectors = _served(present, touched)
        there, held = vectors.any(axis=1), self.held[touched] == 1
        far = there & ~held
        both = np.flatnonzero(there & held)
        if both.size:
            with self._one_at_a_time:
                stored = np.asarray(self.entries.get(self._keys(touched[both])), np.float32)
            far[both] = np.linalg.norm(stored - vectors[both], axis=1) > MOVED
        late = touched[far & (self.waiting[touched] == 0)]
        self.waiting[touched] = far
        self.queue = np.concatenate([self.queue[self.waiting[self.queue] == 1], late])
        return touched[held & ~there]

    def _choose(self, present: Present, room: int) -> tuple[Rows, int]:
        """Up to `room` rows to take up, those that wait first, and how far the index is filled by them."""
        waiting = self.queue[:room]
        last = min(self.filled + room - waiting.size, present.field.graph.rows)
        next_ones = np.arange(self.filled, last)
        next_ones = next_ones[(present.field.placed[next_ones] == 1) & (self.held[next_ones] == 0)]
        return np.unique(np.concatenate([waiting, next_ones])), last

    def _worn(self) -> bool:
        """Whether too many entries are dead, or too many rows elsewhere, to go on with this index."""
        dead, waiting = 1 - self.live / max(1, len(self.entries)), self.queue.size / max(1, self.covered)
        return self.former is None and len(self.entries) > 0 and max(dead, waiting) > WORN

    def _renew(self) -> None:
        """Begin another index, and ask this one as well until that has everything."""
        self.former, self.entries = self.entries, _index(self.dim)
        self.held[:], self.version[:] = 0, 0
        self.filled = self.live = 0


def _blocks(rows: int) -> int:
    return -(-rows // BLOCK)


def _index(dim: int) -> Index:
    return Index(ndim=dim, metric="ip", dtype="f16", connectivity=16, expansion_add=128, expansion_search=64)


def _served(present: Present, rows: Rows) -> NDArray[np.float32]:
    """The directions that rows are served in; zero for those that are not placed."""
    vectors = present.rule.serve(present.field.vectors[rows])
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    good = (length > 0) & np.isfinite(length) & (present.field.placed[rows, None] == 1)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=good)


def _best(first: Answers, second: Answers, count: int) -> Answers:
    """The best of two answers."""
    found, cosines = np.hstack([first[0], second[0]]), np.hstack([first[1], second[1]])
    return exact.merge(found, np.where(found < 0, np.float32(-np.inf), cosines), count)
