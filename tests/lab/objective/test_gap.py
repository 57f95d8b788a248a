from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse import block_diag, csr_array

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition, preferential_attachment
from ripplevec.lab.objective import gap, homophily_loss, polar_factor
from ripplevec.lab.objective.gap import SpectrumShare, measure_spectrum_shares, min_homophily_loss, smallest_eigenvalues

DATA = planted_partition(communities=3, size=40, inside=8, elsewhere=1.5, seed=1)
HALF = DATA.edges[(DATA.edges < 60).all(axis=1)]
REST = DATA.edges[(DATA.edges >= 60).any(axis=1)]


def fitted(**parameters: Any) -> Embedder:
    return Embedder(dim=6, **parameters).fit(HALF)


def model_laplacian(model: Embedder) -> np.ndarray:
    places = {vertex: place for place, vertex in enumerate(model.ids)}
    dense = np.zeros((len(model), len(model)))
    for vertex, place in places.items():
        for neighbor, weight in model.neighbors(vertex):
            dense[place, places[neighbor]] = weight
    return np.diag(dense.sum(axis=1)) - dense


def test_evaluate_losses_of_rule_paper_uses_its_vectors() -> None:
    model = fitted(rule="paper")
    before = copy.deepcopy(model)
    model.partial_fit(REST)
    report = model.diagnostics(objective=True, gap=True, since=before)
    vectors, edges = model.to_numpy().astype(np.float64), len(DATA.edges)
    homophily = float(np.trace(vectors.T @ model_laplacian(model) @ vectors))
    moved = vectors[: len(before)] - before.to_numpy()
    losses = report["objective"]
    assert losses["homophily"] == pytest.approx(homophily, rel=1e-6)
    assert losses["smoothness"] == pytest.approx(float((moved**2).sum()), rel=1e-6)
    assert losses["total"] == pytest.approx(losses["smoothness"] / len(model) + homophily / (4 * edges))
    assert losses["least_homophily"] == pytest.approx(eigvalsh(model_laplacian(model))[:6].sum())
    assert losses["least_total"] == pytest.approx(losses["least_homophily"] / (4 * edges))
    assert losses["least_total"] < losses["total"]
    assert report["spectrum"] == []


def test_evaluate_losses_of_rule_ripple_orthonormalizes_vectors() -> None:
    model = fitted(anchor_growth=0, normalize=False)
    losses = model.diagnostics(objective=True)["objective"]
    vectors = polar_factor(model.to_numpy().astype(np.float64))
    assert set(losses) == {"smoothness", "homophily", "total"}
    assert losses["smoothness"] == 0.0
    assert losses["homophily"] == pytest.approx(float(np.trace(vectors.T @ model_laplacian(model) @ vectors)), rel=1e-6)


def test_evaluate_losses_smoothness_since_copy_counts_arrivals_only() -> None:
    model = fitted(anchor_growth=0)
    before = copy.deepcopy(model)
    assert model.diagnostics(objective=True, since=before)["objective"]["smoothness"] < 1e-12
    model.remove_vertex(int(REST.min()))
    model.partial_fit(REST[:5])
    assert 0 < model.diagnostics(objective=True, since=before)["objective"]["smoothness"] < 1


def test_anchor_raises_spectrum_shares_and_reports_them() -> None:
    model = fitted(anchor_growth=0)
    model.partial_fit(REST)
    drifted = model.diagnostics(gap=True)["spectrum"]
    changes = model.anchor(gap=True)
    assert changes.spectrum is not None
    before, after = changes.spectrum
    assert before == drifted
    assert [share > earlier for share, earlier in zip(after, before, strict=True)] == [True]
    assert 1 - after[0] < (1 - before[0]) / 3
    assert model.anchor().spectrum is None


def test_evaluate_losses_with_fewer_vertices_than_columns_is_none() -> None:
    model = Embedder(dim=6)
    model.partial_fit([("a", "b"), ("b", "c")])
    report = model.diagnostics(objective=True, gap=True)
    assert set(report["objective"].values()) == {None}
    assert report["spectrum"] == measure_spectrum_shares(model.engine) == []


def test_diagnostics_of_directed_graph_use_symmetrized_operator() -> None:
    model = Embedder(dim=4, directed=True).fit(np.concatenate([HALF, HALF[::3, ::-1]]))
    report = model.diagnostics(objective=True, gap=True)
    assert report["objective"]["homophily"] >= report["objective"]["least_homophily"] > 0
    assert all(share == pytest.approx(1, abs=1e-3) for share in report["spectrum"])


def test_spectrum_share_without_attainable_spectrum_is_one() -> None:
    assert SpectrumShare(0.0, 0.0).share == 1.0
    assert SpectrumShare(1.0, 4.0).share == 0.25


Matrix = NDArray[np.float64]


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), edges=st.integers(0, 40), count=st.integers(1, 15))
def test_smallest_eigenvalues_equal_dense_ones(
    make_random_graph: Callable[..., csr_array],
    laplacian: Callable[[csr_array], Matrix],
    seed: int,
    edges: int,
    count: int,
) -> None:
    graph = make_random_graph(seed, edges=edges)
    expected = np.linalg.eigvalsh(laplacian(graph))[:count]
    np.testing.assert_allclose(smallest_eigenvalues(graph, count), expected, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 12))
def test_min_homophily_loss_is_lower_bound(
    make_random_graph: Callable[..., csr_array], seed: int, columns: int
) -> None:
    graph = make_random_graph(seed)
    vectors = polar_factor(np.random.default_rng(seed).standard_normal((12, columns)))
    assert homophily_loss(vectors, graph) >= min_homophily_loss(graph, columns) - 1e-9


def test_smallest_eigenvalues_keep_multiplicities_of_components(laplacian: Callable[[csr_array], Matrix]) -> None:
    path = csr_array(np.diag(np.ones(2), 1) + np.diag(np.ones(2), -1))
    graph = csr_array(block_diag([path] * 30))
    np.testing.assert_allclose(smallest_eigenvalues(graph, 70), np.repeat([0.0, 1.0, 3.0], [30, 30, 10]), atol=1e-9)


def test_smallest_eigenvalues_of_large_component_match_dense_ones(
    laplacian: Callable[[csr_array], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = preferential_attachment(vertices=600, edges_per_vertex=4, seed=0).adjacency()
    exact = np.linalg.eigvalsh(laplacian(graph))[:10]
    monkeypatch.setattr(gap, "MAX_DENSE_VERTICES", 50)
    np.testing.assert_allclose(smallest_eigenvalues(graph, 10), exact, rtol=1e-4, atol=1e-6)
    assert smallest_eigenvalues(graph, 1) == pytest.approx(0.0, abs=1e-9)
