"""Online DANE with attributes: exact at the start, and close to the exact eigenvectors after updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.attributed_dane import AttributedDANE, scale_rows, solve_cosines
from ripplevec.lab.baselines.streaming.attributed_dane import CosineEigenvectors, OnlineAttributedDANE
from ripplevec.lab.baselines.streaming.dane import DANE
from ripplevec.lab.evaluation.label_metrics import Classifier


def make_attributes(stream: Any) -> csr_array:
    """Return 24 words per vertex, of which the vertices of each community have six more often than others."""
    own = stream.labels[:, None] == np.arange(24) % 4
    words = np.random.default_rng(0).random(own.shape) < np.where(own, 0.6, 0.1)
    words[:, 0] = True  # every vertex has a word
    return csr_array(words.astype(float))


def run(method: OnlineAttributedDANE, stream: Any, attributes: csr_array) -> np.ndarray:
    method.start(stream.graph, attributes[: stream.graph.shape[0]])
    for v, neighbors in stream.arrivals:
        method.add_vertex(v, neighbors, attributes[[v]])
    return method.vectors()


def test_online_dane_start_is_the_offline_model(small_stream: Any) -> None:
    attributes = make_attributes(small_stream)[:80]
    method = OnlineAttributedDANE(dim=6)
    method.start(small_stream.graph, attributes)
    offline = AttributedDANE(dim=6).embed(small_stream.graph, attributes)
    signs = np.sign(np.einsum("ij,ij->j", offline, method.vectors()))
    np.testing.assert_allclose(method.vectors(), offline * signs, atol=1e-4 * np.abs(offline).max())


def test_online_dane_preview_of_twin_is_the_vector_of_the_original(small_stream: Any) -> None:
    attributes = make_attributes(small_stream)[:80]
    method = OnlineAttributedDANE(dim=6)
    method.start(small_stream.graph, attributes)
    neighbors = small_stream.graph[[5]].indices.tolist()
    twin, scale = method.preview(neighbors, attributes[[5]]), np.abs(method.vectors()).max()
    np.testing.assert_allclose(twin, method.vectors()[5], atol=1e-3 * scale)
    np.testing.assert_array_equal(method.add_vertex(80, neighbors, attributes[[5]]), twin)


def test_cosine_eigenvectors_follow_the_exact_ones() -> None:
    """Updates bring the eigenvalues nearer to those of all rows, and columns keep the norm 1."""
    random = np.random.default_rng(0)
    share = np.full((4, 60), 0.05)
    for topic, inside in enumerate((0.9, 0.7, 0.5, 0.35)):
        share[topic, 15 * topic : 15 * topic + 15] = inside
    units = scale_rows(csr_array((random.random((160, 60)) < share[random.integers(0, 4, 160)]).astype(float)))
    exact = solve_cosines(units, 3, 0)[0]
    followed = CosineEigenvectors(units[:80], 3, 0)
    before = np.abs(followed._values - exact).sum()
    for v in range(80, 160):
        followed.add(units[[v]])
        if v % 4 == 3:
            followed.update(DANE(dim=3).mix)
    assert np.abs(followed._values - exact).sum() < 0.8 * before
    np.testing.assert_allclose(followed._forms().q.diagonal(), 1, atol=1e-4)


def test_cosine_eigenvectors_rows_do_not_depend_on_arrivals_before_an_update(small_stream: Any) -> None:
    """Rows of small 1 − λ are noisy. If later rows were computed from them, the noise would grow along a stream."""
    units = scale_rows(make_attributes(small_stream))
    followed = CosineEigenvectors(units[:80], 6, 0)
    expected = followed.preview(units[[100]])
    for v in range(80, 100):
        followed.add(units[[v]])
    np.testing.assert_array_equal(followed.add(units[[100]]), expected)


def test_online_dane_arrivals_and_final_vectors_predict_communities(small_stream: Any) -> None:
    attributes, method = make_attributes(small_stream), OnlineAttributedDANE(dim=6, chunk=16)
    method.start(small_stream.graph, attributes[:80])
    classifier = Classifier.train(method.vectors(), small_stream.labels[:80])
    no_edges = np.array([method.preview([], attributes[[v]]) for v in range(80, 160)])
    assert classifier.score(no_edges, small_stream.labels[80:]).micro > 0.8
    final = run(method, small_stream, attributes)
    assert final.shape == (160, 6)
    assert small_stream.score(final) > 0.9
    np.testing.assert_array_equal(final, run(OnlineAttributedDANE(dim=6, chunk=16), small_stream, attributes))


def test_online_dane_arrival_without_edges_has_a_vector_from_its_attributes(small_stream: Any) -> None:
    attributes = make_attributes(small_stream)
    method = OnlineAttributedDANE(dim=6)
    method.start(small_stream.graph, attributes[:80])
    assert method.add_vertex(80, [], attributes[[80]]).any()
    assert not method.add_vertex(81, [], csr_array((1, 24))).any()


def test_online_dane_with_invalid_arguments_raises(small_stream: Any) -> None:
    attributes, method = make_attributes(small_stream), OnlineAttributedDANE(dim=6)
    with pytest.raises(InvalidValueError, match="attributes: expected 80 rows"):
        method.start(small_stream.graph, attributes)
    method.start(small_stream.graph, attributes[:80])
    with pytest.raises(InvalidValueError, match="v: expected the next vertex, 80, got 79"):
        method.add_vertex(79, [], attributes[[79]])
