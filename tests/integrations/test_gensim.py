from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError
from ripplevec.integrations.gensim import to_keyed_vectors
from ripplevec.lab.datasets.synthetic import planted_partition


def test_keyed_vectors_give_the_neighbors_of_the_model():
    model = Embedder(dim=8).fit(planted_partition(communities=3, size=40, seed=1).edges)
    held = to_keyed_vectors(model)
    for vertex in (0, 50, 100):
        ours = dict(model.nearest(vertex, 5))
        theirs = dict(held.most_similar(str(vertex), topn=5))
        assert {int(name) for name in theirs} == ours.keys()
        np.testing.assert_allclose(sorted(theirs.values()), sorted(ours.values()), atol=1e-5)


def test_keyed_vectors_are_copies_in_order_of_arrival(model):
    held = to_keyed_vectors(model)
    assert held.index_to_key == ["a", "c", "d", "7", "e", "f", "alone"]
    before = held.vectors.copy()
    assert np.array_equal(before, model.to_numpy())
    model.partial_fit([("g", "a"), ("g", "e")])
    assert np.array_equal(held.vectors, before)


def test_keyed_vectors_with_two_ids_of_one_text_are_refused(model):
    model.add_vertex("7", ["a"])
    with pytest.raises(InvalidValueError, match="both 7 and '7'"):
        to_keyed_vectors(model)
