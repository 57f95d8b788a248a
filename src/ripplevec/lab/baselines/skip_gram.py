"""Skip-gram of gensim on walks; its training can be continued from earlier or other vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError

GENSIM_DOWNSAMPLING = 1e-3
"""Share of all words above which gensim skips a part of a word's occurrences, by default."""


@dataclass(frozen=True, slots=True)
class WalkSentences:
    """Walks as an iterable that gensim can read repeatedly: lists of words, which are vertex numbers."""

    walks: NDArray[np.int64]

    def __iter__(self) -> Iterator[list[str]]:
        words = [str(vertex) for vertex in range(int(self.walks.max(initial=-1)) + 1)]
        for row in self.walks:
            yield [words[vertex] for vertex in row.tolist() if vertex >= 0]


def create_skip_gram(
    dim: int, window: int, seed: int, downsampling: float = GENSIM_DOWNSAMPLING, threads: int = 1
) -> Any:
    """Return an empty model of gensim with five negative samples.

    A model that is trained on few walks at a time needs `downsampling=0`: a short training has few different words,
    which gensim would treat as frequent ones and mostly skip.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError("skip-gram", "eval") from error
    settings = {"vector_size": dim, "window": window, "sample": downsampling, "seed": seed, "workers": threads}
    model = Word2Vec(min_count=1, sg=1, **settings)
    model.lifecycle_events = None  # a log that would grow with every training
    return model


def train_skip_gram(
    model: Any, walks: NDArray[np.int64], epochs: int, initial_rows: NDArray[np.float32] | None = None
) -> None:
    """Train on walks; vertices that the model does not know yet begin with random vectors.

    With `initial_rows`, a row per vertex, vertices begin with their row unless it is zero.
    """
    sentences = WalkSentences(walks)
    model.build_vocab(sentences, update=len(model.wv) > 0)
    if initial_rows is not None:
        vertices = known_vertices(model)
        placed = initial_rows[vertices].any(axis=1)
        model.wv.vectors[placed] = initial_rows[vertices[placed]]
    model.train(sentences, total_examples=len(walks), epochs=epochs)


def known_vertices(model: Any) -> NDArray[np.int64]:
    """Return the vertices that walks have visited, in the order of the model's rows."""
    return np.array([int(word) for word in model.wv.index_to_key], np.int64)


def read_vectors(model: Any, size: int) -> NDArray[np.float32]:
    """Return a vector per vertex; zero for those that no walk has visited."""
    vectors = np.zeros((size, model.vector_size), np.float32)
    if len(model.wv):
        vectors[known_vertices(model)] = model.wv.vectors
    return vectors
