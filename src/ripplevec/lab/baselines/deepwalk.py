"""DeepWalk (Perozzi et al., 2014): uniform random walks read as sentences, vertices as words, skip-gram on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import MissingExtraError
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _kernels as kernels
from ripplevec.lab.baselines.base import check_settings, checked
from ripplevec.util.parallel import for_each_block

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
        check_settings(self)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Walk and train; vertices without edges keep zero vectors."""
        try:
            from gensim.models import Word2Vec
        except ImportError as error:
            raise MissingExtraError(type(self).__name__, "eval") from error
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
        slots = kernels.slots_of(checked(graph))
        starts = np.flatnonzero(np.diff(slots.first))
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for turn in range(self.walks):
            order = np.random.default_rng([self.seed, turn]).permutation(starts)
            self._round(slots, order, draw_key(self.seed, 0, turn), walks[turn])
        return walks.reshape(-1, self.length)

    def _round(self, slots: kernels.Slots, order: NDArray[np.int64], key: np.uint64, rows: NDArray[np.int64]) -> None:
        def work(begin: int, end: int) -> None:
            self._walk(slots, order[begin:end], key, rows[begin:end])

        for_each_block(work, len(order), size=BLOCK, threads=self.threads)

    def _walk(self, slots: kernels.Slots, starts: NDArray[np.int64], key: np.uint64, rows: NDArray[np.int64]) -> None:
        """Fill a row with the walk from each start: what makes another method of this one."""
        kernels.walk(*slots, starts, key, rows)


@dataclass(frozen=True, slots=True)
class Sentences:
    """Walks as gensim reads them, as often as it likes: lists of words, which are the vertices' numbers."""

    walks: NDArray[np.int64]

    def __iter__(self) -> Iterator[list[str]]:
        words = [str(vertex) for vertex in range(int(self.walks.max(initial=-1)) + 1)]
        for row in self.walks:
            yield [words[vertex] for vertex in row.tolist() if vertex >= 0]
