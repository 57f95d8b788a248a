"""Tests of DANE with attributes: its eigenvectors, its consensus, and its use of both kinds of input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.attributed_dane import (
    AttributedDANE,
    scale_rows,
    solve_consensus,
    solve_cosines,
)
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation.label_metrics import classify


def test_vectors_of_attributes_are_eigenvectors_of_their_cosines() -> None:
    attributes = np.random.default_rng(0).random((12, 8)) * (np.random.default_rng(1).random((12, 8)) < 0.6) + 0.01
    units = attributes / np.linalg.norm(attributes, axis=1, keepdims=True)
    cosines = units @ units.T
    strength = np.diag(cosines.sum(axis=1))
    values, expected = eigh(strength - cosines, strength)
    found_values, found = solve_cosines(scale_rows(csr_array(attributes)), 3, 0)
    np.testing.assert_allclose(found_values, values[1:4], atol=1e-9)
    for column in range(3):
        cosine = found[:, column] @ expected[:, column + 1] / np.linalg.norm(expected[:, column + 1])
        assert abs(cosine) / np.linalg.norm(found[:, column]) == pytest.approx(1, abs=1e-6)


def test_consensus_begins_with_what_both_embeddings_share() -> None:
    random = np.random.default_rng(0)
    shared = random.normal(size=(200, 1))
    first = np.hstack([random.normal(size=(200, 2)), shared])
    second = np.hstack([shared + 0.01 * random.normal(size=(200, 1)), random.normal(size=(200, 2))])
    consensus = np.hstack([first, second]) @ solve_consensus(first, second, 4)
    assert abs(np.corrcoef(consensus[:, 0], shared[:, 0])[0, 1]) > 0.99


def test_embedding_uses_edges_and_attributes() -> None:
    """Edges tell halves of eight communities apart in pairs, attributes the two of each pair."""
    dataset = planted_partition(4, 60, 8, 2, 0)
    random, labels = np.random.default_rng(0), 2 * dataset.labels.astype(int)
    labels += random.integers(0, 2, labels.size)
    words = np.where(
        random.random((labels.size, 12)) < 0.7, labels[:, None] % 2, random.integers(0, 2, (labels.size, 12))
    )
    attributes = np.zeros((labels.size, 24))
    np.put_along_axis(attributes, words * 12 + np.arange(12), 1.0, axis=1)
    vectors = AttributedDANE(dim=8).embed(dataset.adjacency(), csr_array(attributes))
    assert vectors.shape == (240, 8)
    assert classify(vectors, labels, np.arange(0, 240, 2), np.arange(1, 240, 2)).micro > 0.6
    np.testing.assert_array_equal(vectors, AttributedDANE(dim=8).embed(dataset.adjacency(), csr_array(attributes)))


def test_wrong_number_of_attribute_rows_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="rows"):
        AttributedDANE(dim=2).embed(planted_partition(2, 10, 4, 1, 0).adjacency(), csr_array((3, 4)))
