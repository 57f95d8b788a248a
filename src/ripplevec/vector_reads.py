"""Reads that follow from `vectors`: of one vertex or several, with a default, and the similarity of two."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, IdsLike
from ripplevec.errors import UnknownVertexError

ID_TYPES = (int, str, np.integer, UUID)
"""Types of a single id."""


class VectorReads:
    """Methods of everything that has vectors: a model, a session, and a client of a service."""

    def vectors(self, ids: IdsLike) -> NDArray[np.float32]:
        """Return the vectors of vertices."""
        raise NotImplementedError

    def __getitem__(self, vertex: Id | IdsLike) -> NDArray[np.float32]:
        """Return the vector of a vertex, or one row per vertex of a list or column of ids."""
        if isinstance(vertex, (*ID_TYPES, tuple)) or not hasattr(vertex, "__len__"):  # a tuple cannot be an id
            return self.vectors([cast(Id, vertex)])[0]
        return self.vectors(vertex)

    def get(self, vertex: Id, default: Any = None) -> Any:
        """Return the vector of a vertex, or a default if the vertex is unknown.

        Parameters
        ----------
        vertex : int or str
            The vertex.
        default : object, default None
            The value for an unknown vertex.

        Returns
        -------
        float32 array of shape (dim,) or the default
            The vector.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
        >>> model.get("x") is None, model.get("a").shape
        (True, (2,))
        """
        try:
            return self.vectors([vertex])[0]
        except UnknownVertexError:
            return default

    def similarity(self, first: Id, second: Id) -> float:
        """Return the cosine between the vectors of two vertices.

        Parameters
        ----------
        first, second : int or str
            The vertices.

        Returns
        -------
        float
            The cosine, from −1 to 1; 0 if one of the vectors is zero.

        Raises
        ------
        UnknownVertexError
            If a vertex is unknown.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> round(model.similarity("a", "a"), 3)
        1.0
        """
        return cosine(*self.vectors([first, second]))


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the cosine between two vectors; 0 if one of them is zero."""
    length = np.linalg.norm(first.astype(np.float64)) * np.linalg.norm(second.astype(np.float64))
    return float(first.astype(np.float64) @ second / length) if length else 0.0
