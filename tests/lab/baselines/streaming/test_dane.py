"""DANE: the first-order formula against exact eigenvectors of a slightly changed graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from ripplevec.lab.baselines.streaming import DANE
from ripplevec.lab.baselines.streaming.eigen_perturbation import QuadraticForms
from ripplevec.lab.evaluation.label_metrics import Classifier


def test_mix_is_the_derivative_of_the_eigenvectors() -> None:
    """A basis of all eigenvectors has no part outside it, so the error is of second order in the change."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(2, 6, 6))
    p, change = raw + raw.transpose(0, 2, 1)
    q = np.diag(rng.uniform(1, 2, 6))
    values, basis = eigh(p, q)
    errors = []
    for size in (1e-3, 1e-4):
        dq = size * np.diag(rng.uniform(1, 2, 6))
        before = QuadraticForms(basis.T @ p @ basis, basis.T @ q @ basis)
        changed = QuadraticForms(size * basis.T @ change @ basis, basis.T @ dq @ basis)
        found = basis @ DANE(dim=6).mix(before, changed, values)
        exact = eigh(p + size * change, q + dq)[1]
        errors.append(np.abs(found - exact * np.sign(np.einsum("ij,ij->j", found, exact))).max())
    assert errors[0] < 1e-3
    assert errors[1] < errors[0] / 30


def test_mix_leaves_equal_eigenvalues_apart() -> None:
    values, zero = np.array([0.5, 0.5, 0.9]), np.zeros((3, 3))
    change = np.array([[0.0, 0.1, 0.1], [0.1, 0.0, 0.1], [0.1, 0.1, 0.0]])
    mixture = DANE(dim=3, limit=1).mix(QuadraticForms(zero, zero), QuadraticForms(change, zero), values)
    assert mixture[0, 1] == mixture[1, 0] == 0
    assert mixture[0, 2] != 0


def test_mix_leaves_close_eigenvalues_apart() -> None:
    """A coefficient above the limit is no small change, so the first-order formula does not hold."""
    values, zero = np.array([0.5, 0.51, 0.9]), np.zeros((3, 3))
    change = QuadraticForms(np.full((3, 3), 0.01), zero)
    mixture = DANE(dim=3).mix(QuadraticForms(zero, zero), change, values)
    assert mixture[0, 1] == mixture[1, 0] == 0
    np.testing.assert_allclose(mixture[0, 2], 0.01 / 0.4)
    np.testing.assert_allclose(DANE(dim=3, limit=2).mix(QuadraticForms(zero, zero), change, values)[0, 1], 1.0)


def test_updates_keep_the_coordinates_of_a_classifier(small_stream: Any) -> None:
    method = DANE(dim=8, chunk=16)
    method.start(small_stream.graph)
    classifier = Classifier.train(method.vectors(), small_stream.labels[:80])
    arrived = np.array([method.add_vertex(v, neighbors) for v, neighbors in small_stream.arrivals])
    assert classifier.score(arrived, small_stream.labels[80:]).micro > 0.95


def test_eigenvectors_of_components_are_not_trivial(small_stream: Any) -> None:
    method = DANE(dim=6)
    method.start(small_stream.graph)
    assert method._values.min() > 1e-6
