"""StreamWalk: its kernels against NumPy, and how its walks choose edges."""

from __future__ import annotations

import numpy as np

from ripplevec.lab.temporal.streamwalk import REMEMBERED, StreamWalkPredictor, draw, step_back, train_pair


def test_train_pair_equals_a_gradient_step_in_numpy() -> None:
    rng = np.random.default_rng(0)
    vectors, contexts = rng.normal(size=(2, 5, 4)).astype(np.float32)
    expected_vectors, expected_contexts = vectors.astype(float), contexts.astype(float)
    present, seed = np.array([2, 3, 4]), np.array([7], np.uint64)
    generator = seed.copy()
    change = np.zeros(4)
    for label, other in [(1.0, 1)] + [(0.0, present[int(draw(generator) * 3)]) for _ in range(3)]:
        error = 0.1 * (label - 1 / (1 + np.exp(-expected_vectors[0] @ expected_contexts[other])))
        change += error * expected_contexts[other]
        expected_contexts[other] += error * expected_vectors[0]
    expected_vectors[0] += change
    train_pair(vectors, contexts, 0, 1, present, 3, 0.1, seed)
    np.testing.assert_allclose(vectors, expected_vectors, atol=1e-5)
    np.testing.assert_allclose(contexts, expected_contexts, atol=1e-5)


def remember(*edges: tuple[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the memory of vertex 0, which has these edges: the other end and the time of each."""
    neighbors, times = np.full((1, REMEMBERED), -1), np.full((1, REMEMBERED), -np.inf)
    for position, (other, time) in enumerate(edges):
        neighbors[0, position], times[0, position] = other, time
    return neighbors, times


def test_step_back_follows_edges_in_proportion_to_their_age() -> None:
    memory, random = remember((1, 0.0), (2, 10.0), (3, 20.0), (4, 30.0)), np.array([3], np.uint64)
    chosen = np.array([step_back(*memory, 0, 20.0, 10.0, random)[0] for _ in range(8_000)])
    shares = np.bincount(chosen, minlength=5) / len(chosen)
    assert shares[4] == 0  # later than the walk
    np.testing.assert_allclose(shares[1:4], np.array([1, 2, 4]) / 7, atol=0.02)


def test_step_back_without_an_earlier_edge_ends_the_walk() -> None:
    random = np.array([3], np.uint64)
    assert step_back(*remember(), 0, 5.0, 10.0, random)[0] == -1
    assert step_back(*remember((1, 6.0)), 0, 5.0, 10.0, random)[0] == -1


def test_predictor_keeps_the_latest_edges_of_a_vertex() -> None:
    predictor = StreamWalkPredictor(dim=4)
    others = np.arange(1, REMEMBERED + 4)
    predictor.record(np.zeros_like(others), others, others)
    assert sorted(predictor.neighbors[0]) == list(range(4, REMEMBERED + 4))


def test_predictor_is_deterministic_and_keeps_vectors_when_vertices_are_added() -> None:
    first, second = StreamWalkPredictor(dim=4, seed=1), StreamWalkPredictor(dim=4, seed=1)
    for predictor in (first, second):
        predictor.record(np.array([0, 1]), np.array([2, 3]), np.array([0, 1]))
    before = first.vectors.copy()
    first.score(np.array([0]), np.array([[9]]))
    np.testing.assert_array_equal(first.vectors[:4], before)
    np.testing.assert_array_equal(second.vectors, before)
