from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ripplet.views import solvers
from ripplet.views.operators import Operator
from ripplet.views.solvers import leading_eigenpairs


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    vertices=st.integers(1, 30),
    edges=st.integers(0, 60),
    columns=st.integers(1, 8),
    tau=st.sampled_from([0.01, 0.5, 30.0]),
)
def test_pairs_are_those_of_the_dense_matrix(
    randomly: Any, seed: int, vertices: int, edges: int, columns: int, tau: float
) -> None:
    sample = randomly(seed, vertices, edges)
    operator = Operator(sample.adjacency, sample.rows, tau)
    mu, vectors = leading_eigenpairs(operator, columns)
    count = min(columns, max(operator.size - 1, 0))
    assert vectors.shape == (vertices, columns)
    assert not vectors[~sample.active].any()
    assert not vectors[:, count:].any()
    assert not mu[count:].any()
    if count:
        np.testing.assert_allclose(mu[:count], sample.spectrum(tau)[:count], atol=1e-9)
    np.testing.assert_allclose(operator.step(vectors), vectors * mu, atol=1e-7)
    np.testing.assert_allclose(operator.gram(vectors, vectors), np.diag(np.arange(columns) < count), atol=1e-8)


@pytest.mark.parametrize("solver", ["dense", "lanczos", "blocks"])
def test_the_solvers_agree_and_repeat_themselves(planted: Any, monkeypatch: pytest.MonkeyPatch, solver: str) -> None:
    sample = planted()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    exact, expected = leading_eigenpairs(operator, 4)
    assert sample.rows <= solvers.DENSE
    monkeypatch.setattr(solvers, "DENSE", 400 if solver == "dense" else 0)
    monkeypatch.setattr(solvers, "LANCZOS", 0 if solver == "blocks" else 60_000)
    mu, vectors = leading_eigenpairs(operator, 4)
    again = leading_eigenpairs(operator, 4)
    assert mu.tobytes() == again[0].tobytes()
    assert vectors.tobytes() == again[1].tobytes()
    np.testing.assert_allclose(mu, exact, atol=1e-3 if solver == "blocks" else 1e-7)
    root = np.sqrt(operator.measure)[:, None]
    assert subspace_angles(root * vectors, root * expected).max() < (0.05 if solver == "blocks" else 1e-5)


@pytest.mark.parametrize("constant", ["DENSE", "LANCZOS"])
def test_long_solves_say_how_far_they_are(planted: Any, monkeypatch: pytest.MonkeyPatch, constant: str) -> None:
    monkeypatch.setattr(solvers, "DENSE", 0)
    monkeypatch.setattr(solvers, constant, 0)
    sample, said = planted(groups=3, inside=3, across=200), []
    leading_eigenpairs(Operator(sample.adjacency, sample.rows, 0.5), 10, lambda what, share: said.append((what, share)))
    assert said
    assert {what for what, _ in said} == {"start"}
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1


@pytest.mark.parametrize("converged", [0, 2])
def test_what_has_converged_is_kept(planted: Any, monkeypatch: pytest.MonkeyPatch, converged: int) -> None:
    def impatient(*args: Any, **options: Any) -> Any:
        values, vectors = eigsh(*args, **options)
        raise ArpackNoConvergence("no", values[-converged:][:converged], vectors[:, -converged:][:, :converged])

    sample = planted()
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    monkeypatch.setattr(solvers, "DENSE", 0)
    monkeypatch.setattr(solvers, "eigsh", impatient)
    mu, vectors = leading_eigenpairs(operator, 4)
    np.testing.assert_allclose(mu[:converged], sample.spectrum(0.5)[:converged], atol=1e-7)
    assert not mu[converged:].any()
    assert not vectors[:, converged:].any()
