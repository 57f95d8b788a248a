"""Warm-started node2vec (after dynnode2vec, Mahdavi et al., 2018): skip-gram goes on, on walks around the arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import MissingExtraError
from ripplevec.influence.draws import draw_key
from ripplevec.lab.baselines import _kernels as kernels
from ripplevec.lab.baselines.base import check_settings, growing
from ripplevec.lab.baselines.deepwalk import Sentences
from ripplevec.lab.baselines.streaming.base import Rows, check_arrival, link


@dataclass(kw_only=True)
class WarmNode2Vec:
    """node2vec trained on the start; then, per `chunk` of arrivals, on walks from all they touch.

    A newcomer has the mean of its neighbors until its chunk is complete; training sets out from there.
    """

    dim: int = 128
    walks: int = 10
    length: int = 40
    window: int = 7
    epochs: int = 1
    p: float = 1.0
    q: float = 1.0
    chunk: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def start(self, graph: csr_array) -> None:
        """Walk from every vertex and train."""
        self._graph, self._rows = growing(graph), Rows(np.zeros((graph.shape[0], self.dim)))
        self._model, self._learned = self._skip_gram(), 0
        self._waiting, self._touched = 0, set(range(graph.shape[0]))
        self._learn()

    def place(self, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """The mean of the neighbors' vectors."""
        return self._rows.mean(neighbors)

    def arrive(self, v: int, neighbors: Sequence[int]) -> NDArray[np.float32]:
        """Place a newcomer; with the last of a chunk, train."""
        check_arrival(v, neighbors, len(self._rows))
        if v == len(self._rows) or not self._rows.view[v].any():
            self._rows.put(v, self.place(neighbors))
        link(self._graph, v, neighbors)
        self._touched.update([v, *neighbors])
        self._waiting += 1
        if self._waiting == self.chunk:
            self._learn()
        return self._rows.view[v].copy()

    def vectors(self) -> NDArray[np.float32]:
        """The vectors as the last training left them, and those of newcomers."""
        return self._rows.reading()

    def _skip_gram(self) -> Any:
        try:
            from gensim.models import Word2Vec
        except ImportError as error:
            raise MissingExtraError("warm-started node2vec", "eval") from error
        # sample=0: gensim would take a chunk's words for frequent ones, there being few, and leave most of them out
        model = Word2Vec(
            vector_size=self.dim, window=self.window, min_count=1, sg=1, sample=0, seed=self.seed, workers=1
        )
        model.lifecycle_events = None  # a log that would grow with every chunk
        return model

    def _learn(self) -> None:
        """Train on walks from what was touched, from the vectors as they are."""
        corpus = self._corpus()
        self._learned += 1
        self._waiting, self._touched = 0, set()
        if not len(corpus):
            return
        sentences, words = Sentences(corpus), self._model.wv
        self._model.build_vocab(sentences, update=len(words) > 0)
        named = np.array([int(word) for word in words.index_to_key])
        placed = self._rows.view[named].any(axis=1)
        words.vectors[placed] = self._rows.view[named[placed]]
        self._model.train(sentences, total_examples=len(corpus), epochs=self.epochs)
        self._rows.view[named] = words.vectors

    def _corpus(self) -> NDArray[np.int64]:
        """Walks from the touched vertices that have edges, round after round, each in random order."""
        graph = self._graph.to_csr()
        graph.sort_indices()
        slots, touched = kernels.slots_of(graph), np.array(sorted(self._touched), np.int64)
        starts = touched[slots.first[touched + 1] > slots.first[touched]]
        walks = np.empty((self.walks, len(starts), self.length), np.int64)
        for turn, rows in enumerate(walks):
            order = np.random.default_rng([self.seed, self._learned, turn]).permutation(starts)
            key = draw_key(self.seed, self._learned, turn)
            kernels.biased_walk(slots, (1 / self.p, 1.0, 1 / self.q), order, key, rows)
        return walks.reshape(-1, self.length)
