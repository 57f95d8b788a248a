"""Skip-gram that can be trained further: the vectors of earlier trainings are where the next one begins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError
from ripplevec.lab.baselines.random_walks import WalkSentences


def create_skip_gram(dim: int, window: int, seed: int) -> Any:
    """Return an empty model of gensim with five negative samples."""
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError("skip-gram", "eval") from error
    # sample=0: a short training has few words, which gensim would treat as frequent ones and mostly skip
    model = Word2Vec(vector_size=dim, window=window, min_count=1, sg=1, sample=0, seed=seed, workers=1)
    model.lifecycle_events = None  # a log that would grow with every training
    return model


def train_skip_gram(model: Any, walks: NDArray[np.int64], epochs: int) -> None:
    """Train on walks; vertices that the model does not know yet begin with random vectors."""
    sentences = WalkSentences(walks)
    model.build_vocab(sentences, update=len(model.wv) > 0)
    model.train(sentences, total_examples=len(walks), epochs=epochs)


def read_vectors(model: Any, size: int) -> NDArray[np.float32]:
    """Return a vector per vertex; zero for those that no walk has visited."""
    vectors = np.zeros((size, model.vector_size), np.float32)
    if len(model.wv):
        vectors[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    return vectors
