"""What is searched, what for, and what is found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.rules.base import Rule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import widen_half
from ripplevec.views._kernels import scale_to_unit

SearchResults = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows with their cosines, a line per query, best first; row −1 with cosine 0 where there are no more."""


class SearchTarget(NamedTuple):
    """A model as it is at this moment."""

    store: VectorStore
    rule: Rule
    sequence: int
    anchors: int


class Query(NamedTuple):
    """A direction inside (one line), the same as it is served, and a row to leave out (−1 for none)."""

    internal: NDArray[Any]
    served: NDArray[Any]
    exclude: int


def query_from_vector(rule: Rule, vector: NDArray[np.float64]) -> Query:
    """Who is near a served vector."""
    return Query(rule.to_internal(vector)[None], vector, -1)


def query_from_row(rule: Rule, vector: NDArray[Any], row: int) -> Query:
    """Who is near a row, with this vector as it is kept, beside the row itself."""
    inside = np.empty((1, vector.size))
    scale_to_unit(widen_half(vector[None]), rule.scaling, inside)
    return Query(inside, rule.to_served(vector[None])[0], row)
