"""A graph with labeled vertices, and what is known about a published one before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """An undirected, unweighted graph without self-loops, and one label per vertex; vertices are 0 … n−1.

    Each edge stands once, the smaller vertex first, in the order of the larger: the order in which edges come when
    vertices arrive by index. `names` says what the vertices are called where they come from, `class_names` what the
    labels stand for where those were text.
    """

    name: str
    edges: NDArray[np.int64]
    labels: NDArray[np.int64]
    names: Sequence[Id]
    class_names: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        name: str,
        pairs: ArrayLike,
        labels: ArrayLike,
        names: Sequence[Id] | None = None,
        class_names: Sequence[str] = (),
    ) -> Dataset:
        """A data set from pairs in any order and direction; repeated pairs count once, self-loops are left out.

        Without names the vertices are called by their index.
        """
        ends, marks = np.asarray(pairs, np.int64).reshape(-1, 2), np.array(labels, np.int64)
        count = len(marks)
        if len(ends) and (ends.min() < 0 or ends.max() >= count):
            raise InvalidValueError.of("pairs", f"vertices 0 to {count - 1:,}", f"{ends.min()} to {ends.max()}")
        if names is not None and len(names) != count:
            raise InvalidValueError.of("names", f"{count:,} names, as many as labels", f"{len(names):,} names")
        older, newer = ends.min(axis=1), ends.max(axis=1)
        keys = np.sort((newer * count + older)[older < newer])
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique takes twenty times as long on millions of pairs
        edges = np.column_stack([keys % max(count, 1), keys // max(count, 1)])
        return cls(name, edges, marks, range(count) if names is None else names, class_names)

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """How many different labels there are."""
        return len(np.unique(self.labels))

    @property
    def mean_degree(self) -> float:
        """The mean number of neighbors of a vertex."""
        return 2 * len(self.edges) / max(self.vertices, 1)

    def adjacency(self) -> csr_array:
        """The symmetric matrix of zeros and ones, float64."""
        rows, columns = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        return csr_array((np.ones(len(rows)), (rows, columns)), shape=(self.vertices, self.vertices))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as its authors published it: its name, its checksum, the address of the folder it comes from."""

    name: str
    sha256: str
    origin: str

    @property
    def address(self) -> str:
        """Where the file can be downloaded."""
        return f"{self.origin}/{self.name}"


@dataclass(frozen=True, slots=True)
class Info:
    """What is known of a published data set without reading it.

    `edges` are distinct pairs without self-loops, `self_loops` the vertices with one, `paper_edges` what Table 2 of the
    paper says: the rows of the file. Vertices and classes are the same in both.
    """

    name: str
    about: str
    vertices: int
    edges: int
    self_loops: int
    paper_edges: int
    classes: int
    files: tuple[SourceFile, ...]
