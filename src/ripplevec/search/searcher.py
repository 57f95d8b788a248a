"""Nearest-neighbor search of a model: search targets, queries, and the choice between exact search and an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError, check_choice
from ripplevec.rules.base import Rule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search import exact
from ripplevec.util.numba_intrinsics import widen_half
from ripplevec.util.parallel import resolve_threads
from ripplevec.views._kernels import scale_to_unit

if TYPE_CHECKING:
    from ripplevec.search.ann import AnnIndex

METHODS = ("auto", "exact", "ann")
"""Values of the parameter `search` of a model."""

MAX_EXACT_VERTICES = 200_000
"""Vertices up to which "auto" searches exactly: a pass takes milliseconds and needs no index."""

SearchResults = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows and their cosines, one line per query, best first; padded with row −1 and cosine 0."""


class SearchTarget(NamedTuple):
    """The current state of the model that is searched."""

    store: VectorStore
    rule: Rule
    sequence: int  # number of the last batch
    anchors: int  # number of anchors so far


class Query(NamedTuple):
    """A direction, scaled like a served vector, with and without the rotation, and a row to exclude."""

    internal: NDArray[Any]  # (1, dim): not rotated, to be compared with scaled internal rows
    served: NDArray[Any]  # (dim,): rotated, to be compared with served vectors
    exclude: int  # −1 for none


def query_from_vector(rule: Rule, vector: NDArray[np.float64]) -> Query:
    """Create the query for the neighbors of a served vector."""
    return Query(rule.to_internal(vector)[None], vector, -1)


def query_from_row(rule: Rule, vector: NDArray[Any], row: int) -> Query:
    """Create the query for the neighbors of a row with this internal vector, excluding the row itself."""
    internal = np.empty((1, vector.size))
    scale_to_unit(widen_half(vector[None]), rule.scaling, internal)
    return Query(internal, rule.to_served(vector[None])[0], row)


def check_search_method(method: object) -> None:
    """Raise if the search method is unknown, or needs a package that is not installed."""
    check_choice("search", method, METHODS)
    if method == "ann" and not _usearch_installed():
        raise MissingExtraError('search="ann"', "ann")


class Searcher:
    """Nearest-neighbor search of one model; owns the index, which is built on demand and never saved."""

    def __init__(self, method: str, threads: int | None) -> None:
        self.method, self.threads = method, threads
        self.index: AnnIndex | None = None
        self._update_lock = Lock()

    @contextmanager
    def open_search(self) -> Iterator[Callable[[SearchTarget, Query, int], SearchResults]]:
        """Yield a search function to call while writers are excluded; at exit, apply the index updates that it planned.

        The caller admits writers again before the context exits, so that the index is updated while they may run. One
        thread at a time plans and applies updates; the others search the index in its current state.
        """
        may_update, updates = self._update_lock.acquire(blocking=False), list[Callable[[], None]]()

        def search(target: SearchTarget, query: Query, count: int) -> SearchResults:
            index = self._ensure_index(target.store) if may_update else self.index
            if may_update and index is not None:
                updates.append(partial(index.apply_update, index.plan_update(target)))
            return self._search(index, target, query, count)

        try:
            yield search
            for update in updates:
                update()
        finally:
            if may_update:
                self._update_lock.release()

    def uses_index(self, vertices: int) -> bool:
        """Return whether a model of this size uses an index; "auto" keeps an existing one down to half the limit."""
        if self.method == "auto":
            limit = MAX_EXACT_VERTICES if self.index is None else MAX_EXACT_VERTICES // 2
            return vertices > limit and _usearch_installed()
        return self.method == "ann"

    def _search(self, index: AnnIndex | None, target: SearchTarget, query: Query, count: int) -> SearchResults:
        store = target.store
        if index is not None and index.lineage() is store.lineage:
            results = index.nearest(target, query, count)
            if results[0].min() >= 0:  # otherwise there may be rows that the index did not propose
                return results
        rows = slice(store.graph.row_count)
        parts = store.vectors[rows], store.placed[rows], query.internal, target.rule.scaling
        return exact.nearest(*parts, count, np.array([query.exclude]), self.threads)

    def _ensure_index(self, store: VectorStore) -> AnnIndex | None:
        """Return the index of this store, created if needed; None if the search is exact."""
        if not self.uses_index(len(store.graph)):
            self.index = None
        elif self.index is None or self.index.lineage() is not store.lineage:
            from ripplevec.search.ann import AnnIndex

            self.index = AnnIndex(store, resolve_threads(self.threads))
        return self.index


@cache
def _usearch_installed() -> bool:
    return find_spec("usearch") is not None
