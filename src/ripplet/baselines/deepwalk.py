"""DeepWalk (Perozzi et al., 2014): uniform random walks read as sentences, vertices as words, skip-gram on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplet.baselines import _kernels as kernels
from ripplet.baselines.base import checked
from ripplet.errors import InvalidValueError, MissingExtraError
from ripplet.influence._kernels import key_of
from ripplet.parallel import for_blocks

BLOCK = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepWalk:
    """`walks` walks of `length` vertices from every vertex; skip-gram with five negative samples, by gensim.

    With one thread the same seed gives the same vectors; with more, skip-gram's updates race each other.
    """

    dim: int = 128
    walks: int = 10
    length: int = 40
    window: int = 7
    epochs: int = 1
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "seed" else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidValueError.of(f"DeepWalk.{field.name}", f"a whole number ≥ {least}", value)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Walk and train; vertices without edges keep zero vectors."""
        try:
            from gensim.models import Word2Vec
        except ImportError as error:
            raise MissingExtraError("DeepWalk", "eval") from error
        sentences = Sentences(self.corpus(graph))
        vectors = np.zeros((graph.shape[0], self.dim), np.float32)
        if not len(sentences.walks):
            return vectors
        learned = Word2Vec(
            sentences,
            vector_size=self.dim,
            window=self.window,
            min_count=1,
            sg=1,
            epochs=self.epochs,
            seed=self.seed,
            workers=self.threads,
        ).wv
        vectors[[int(name) for name in learned.index_to_key]] = learned.vectors
        return vectors

    def corpus(self, graph: csr_array) -> NDArray[np.int64]:
        """The walks, a row each; round after round, each round from all vertices that have edges, in random order."""
        matrix = checked(graph)
        first, neighbour = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        cumulative = np.concatenate([[0.0], np.cumsum(matrix.data)])
        starts = np.flatnonzero(np.diff(first))
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for turn, rows in enumerate(walks):
            order = np.random.default_rng([self.seed, turn]).permutation(starts)
            key = np.uint64(key_of(self.seed, 0, turn))
            step = partial(_walk, (first, neighbour, cumulative), order, key, rows)
            for_blocks(step, len(order), size=BLOCK, threads=self.threads)
        return walks.reshape(-1, self.length)


def _walk(
    graph: tuple[NDArray[Any], ...],
    order: NDArray[np.int64],
    key: np.uint64,
    rows: NDArray[np.int64],
    begin: int,
    end: int,
) -> None:
    kernels.walk(*graph, order[begin:end], key, rows[begin:end])


@dataclass(frozen=True, slots=True)
class Sentences:
    """Walks as gensim reads them, as often as it likes: lists of words, which are the vertices' numbers."""

    walks: NDArray[np.int64]

    def __iter__(self) -> Iterator[list[str]]:
        words = [str(vertex) for vertex in range(int(self.walks.max(initial=-1)) + 1)]
        for row in self.walks:
            yield [words[vertex] for vertex in row.tolist() if vertex >= 0]
