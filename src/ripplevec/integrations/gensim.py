"""Export of a model to gensim `KeyedVectors`, as word2vec and node2vec users know them."""

from __future__ import annotations

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.io.vector_files import ids_to_words

try:
    from gensim.models import KeyedVectors
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.gensim", "gensim") from error


def to_keyed_vectors(model: Embedder) -> KeyedVectors:
    """Return the current vectors of a model as gensim `KeyedVectors`, in order of arrival.

    Parameters
    ----------
    model : Embedder
        The model to export.

    Returns
    -------
    gensim.models.KeyedVectors
        A copy of the vectors. Keys are strings, as gensim requires: 7 becomes "7".

    Raises
    ------
    InvalidValueError
        If two ids become the same string, such as 7 and "7".

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> model = Embedder(dim=4).fit([("ann", "bob"), ("bob", "carol"), ("carol", "ann")])
    >>> to_keyed_vectors(model).most_similar("ann", topn=1)[0][0] in ("bob", "carol")
    True
    """
    with model.lock.reading():
        rows = model.engine.rows_by_arrival()
        ids, vectors = model.engine.ids_of(rows), model.engine.get_vectors(rows)
    keyed = KeyedVectors(model.dim)
    keyed.add_vectors(ids_to_words(ids), vectors)
    return keyed
