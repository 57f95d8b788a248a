"""A graph with labeled vertices, built from arrays or read from the user's own files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Id, ids_to_list
from ripplevec.errors import FormatError, InvalidValueError, shorten

PathLike = str | os.PathLike[str]

LABEL_HEADERS = ("id", "vertex", "node", "name")
"""First fields that mark the first line of a label file as a header."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """An undirected, unweighted graph without self-loops, with one label per vertex; vertices are 0 … n−1.

    Each edge is stored once, the smaller vertex first, sorted by the larger vertex: the order in which edges arrive
    when vertices arrive by index. `names` holds the original vertex ids, `class_names` the text of labels that were
    text.
    """

    name: str
    edges: NDArray[np.int64]
    labels: NDArray[np.int64]
    names: Sequence[Id]
    class_names: Sequence[str] = ()

    @classmethod
    def from_pairs(
        cls,
        name: str,
        pairs: ArrayLike,
        labels: ArrayLike,
        names: Sequence[Id] | None = None,
        class_names: Sequence[str] = (),
    ) -> Dataset:
        """Build a data set from vertex pairs in any order and direction.

        Parameters
        ----------
        name : str
            Name of the data set.
        pairs : array_like of shape (m, 2)
            Vertex pairs; repeated pairs count once, self-loops are dropped.
        labels : array_like of shape (n,)
            Class of every vertex.
        names : sequence, optional
            Vertex ids; by default the vertex indices.
        class_names : sequence of str, optional
            Text of each class.

        Examples
        --------
        >>> from ripplevec.lab.datasets import Dataset
        >>> Dataset.from_pairs("path", [(1, 0), (1, 2), (2, 1)], [0, 0, 1]).edges.tolist()
        [[0, 1], [1, 2]]
        """
        ends, classes = np.asarray(pairs, np.int64).reshape(-1, 2), np.array(labels, np.int64)
        count = len(classes)
        if len(ends) and (ends.min() < 0 or ends.max() >= count):
            raise InvalidValueError.of("pairs", f"vertices 0 to {count - 1:,}", f"{ends.min()} to {ends.max()}")
        if names is not None and len(names) != count:
            raise InvalidValueError.of("names", f"{count:,} names, as many as labels", f"{len(names):,} names")
        smaller, larger = ends.min(axis=1), ends.max(axis=1)
        keys = np.sort((larger * count + smaller)[smaller < larger])
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique is twenty times slower on millions of pairs
        edges = np.column_stack([keys % max(count, 1), keys // max(count, 1)])
        return cls(name, edges, classes, range(count) if names is None else names, class_names)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of distinct labels."""
        return len(np.unique(self.labels))

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors per vertex."""
        return 2 * len(self.edges) / max(self.vertices, 1)

    def adjacency(self) -> csr_array:
        """Return the symmetric adjacency matrix of zeros and ones, in float64."""
        rows, columns = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.vertices, self.vertices))


def from_files(edges: PathLike, labels: PathLike, *, name: str | None = None, **options: Any) -> Dataset:
    """Read a data set from an edge file and a label file.

    Parameters
    ----------
    edges : path
        Edges in any format that `ripplevec.io.open_edges` reads. Vertices are numbered by first mention; weights are
        ignored.
    labels : path
        Text file with one vertex and its label per line. The labels become indices into `class_names`.
    name : str, optional
        Name of the data set; by default the edge file name up to its first dot.
    **options
        Options of `ripplevec.io.open_edges` for the edge file.

    Returns
    -------
    Dataset
        The graph and its labels.

    Raises
    ------
    FormatError
        If a vertex has no label or two, or if a labeled vertex has no edge.
    """
    pairs, names = _read_edges(edges, options)
    label_of = _read_labels(labels, set(map(str, names)))
    _check_labels(label_of, names, edges, labels)
    class_names, codes = np.unique([label_of[str(vertex)] for vertex in names], return_inverse=True)
    return Dataset.from_pairs(name or PurePath(edges).name.split(".")[0], pairs, codes, names, class_names.tolist())


def _read_edges(edges: PathLike, options: dict[str, Any]) -> tuple[NDArray[np.int64], list[Id]]:
    from ripplevec.graph.id_table import IdTable
    from ripplevec.io.readers.edge_files import open_edges

    ids = IdTable()
    pairs = [np.column_stack(ids.intern(batch.src, batch.dst)[:2]) for batch in open_edges(edges, **options)]
    return np.concatenate(pairs), ids.to_list(np.arange(len(ids)))


def _read_labels(labels: PathLike, vertices: set[str]) -> dict[str, str]:
    """Read the label of every vertex; keys are text because a label file does not distinguish 1 from "1"."""
    from ripplevec.io.readers.edge_files import open_edges

    label_of: dict[str, str] = {}
    for batch in open_edges(labels, format="csv", header=False, ids="str", weight="none", time="none"):
        for vertex, label in zip(map(str, ids_to_list(batch.src)), map(str, ids_to_list(batch.dst)), strict=True):
            if not label_of and vertex.lower() in LABEL_HEADERS and vertex not in vertices:
                continue
            if label_of.setdefault(vertex, label) != label:
                raise FormatError(
                    f"{labels}: expected one label per vertex, got {label_of[vertex]!r} and {label!r} for {vertex!r}"
                )
    return label_of


def _check_labels(label_of: dict[str, str], names: list[Id], edges: PathLike, labels: PathLike) -> None:
    texts = set(map(str, names))
    if len(texts) < len(names):
        raise FormatError(f"{edges}: expected ids of one type, got some both as text and as integers")
    if unknown := [vertex for vertex in label_of if vertex not in texts]:
        raise FormatError(
            f"{labels}: expected labels of vertices of {edges}, got {len(unknown):,} others, {shorten(unknown)}"
        )
    if missing := [vertex for vertex in names if str(vertex) not in label_of]:
        raise FormatError(
            f"{labels}: expected a label for every vertex of {edges}, got none for {len(missing):,}, {shorten(missing)}"
        )
