"""Types of a nearest-neighbor search (target, query and results), and functions that create queries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.rules.base import Rule
from ripplevec.rules.vector_store import VectorStore
from ripplevec.util.growable_array import widen_half
from ripplevec.views._kernels import scale_to_unit

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
