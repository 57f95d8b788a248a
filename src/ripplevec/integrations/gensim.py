"""A model as gensim's KeyedVectors: what those who come from word2vec or node2vec ask for neighbors and analogies."""

from __future__ import annotations

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.io.vector_files import as_words

try:
    from gensim.models import KeyedVectors
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.gensim", "gensim") from error


def to_keyed_vectors(model: Embedder) -> KeyedVectors:
    """The vectors of a model as they are now, in order of arrival. Keys are text, as gensim has it: 7 becomes "7"."""
    with model.lock.reading():
        rows = model.engine.rows_by_arrival()
        ids, vectors = model.engine.names(rows), model.engine.serve(rows)
    held = KeyedVectors(model.dim)
    held.add_vectors(as_words(ids), vectors)
    return held
