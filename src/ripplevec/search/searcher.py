"""Which search answers: exact where that is quick, an index where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ripplevec.errors import MissingExtraError, check_choice
from ripplevec.rules.vector_store import VectorStore
from ripplevec.search import exact
from ripplevec.search.query import Query, SearchResults, SearchTarget
from ripplevec.util.parallel import resolve_threads

if TYPE_CHECKING:
    from ripplevec.search.ann import AnnIndex

METHODS = ("auto", "exact", "ann")
MAX_EXACT_VERTICES = 200_000
"""Vertices up to which "auto" is exact: a pass over their vectors takes milliseconds, and there is nothing to keep."""


def check_search_method(method: object) -> None:
    """Refuse a method to search that is not known, or for which something has to be installed first."""
    check_choice("search", method, METHODS)
    if method == "ann" and not _installed():
        raise MissingExtraError('search="ann"', "ann")


class Searcher:
    """Answers of one model; holds the index, if there is one, which is never saved and made anew when it is missed."""

    def __init__(self, method: str, threads: int | None) -> None:
        self.method, self.threads = method, threads
        self.index: AnnIndex | None = None
        self._tending = Lock()

    @contextmanager
    def open_search(self) -> Iterator[Callable[[SearchTarget, Query, int], SearchResults]]:
        """How to ask, while writers are kept out; afterwards, with writers let in again, the index catches up a little.

        One thread at a time plans for the index and tends it; the others ask it as it is.
        """
        mine, planned = self._tending.acquire(blocking=False), list[Callable[[], None]]()

        def ask(target: SearchTarget, query: Query, count: int) -> SearchResults:
            index = self._index_of(target.store) if mine else self.index
            if mine and index is not None:
                planned.append(partial(index.apply_update, index.plan_update(target)))
            return self._answer(index, target, query, count)

        try:
            yield ask
            for work in planned:
                work()
        finally:
            if mine:
                self._tending.release()

    def _answer(self, index: AnnIndex | None, target: SearchTarget, query: Query, count: int) -> SearchResults:
        store = target.store
        if index is not None and index.lineage() is store.lineage:
            found = index.nearest(target, query, count)
            if found[0].min() >= 0:  # else there may be more than were proposed
                return found
        rows = slice(store.graph.row_count)
        parts = store.vectors[rows], store.placed[rows], query.internal, target.rule.scaling
        return exact.nearest(*parts, count, np.array([query.exclude]), self.threads)

    def uses_index(self, vertices: int) -> bool:
        """Whether so many vertices are searched through an index; one that exists is kept until half of them go."""
        if self.method == "auto":
            return vertices > (MAX_EXACT_VERTICES if self.index is None else MAX_EXACT_VERTICES // 2) and _installed()
        return self.method == "ann"

    def _index_of(self, store: VectorStore) -> AnnIndex | None:
        if not self.uses_index(len(store.graph)):
            self.index = None
        elif self.index is None or self.index.lineage() is not store.lineage:
            from ripplevec.search.ann import AnnIndex

            self.index = AnnIndex(store, resolve_threads(self.threads))
        return self.index


@cache
def _installed() -> bool:
    return find_spec("usearch") is not None
