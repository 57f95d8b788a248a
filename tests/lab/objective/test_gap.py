from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigvalsh

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.objective import polar
from ripplevec.lab.objective.gap import Gap, gaps

DATA = planted_partition(communities=3, size=40, inside=8, elsewhere=1.5, seed=1)
HALF = DATA.edges[(DATA.edges < 60).all(axis=1)]
REST = DATA.edges[(DATA.edges >= 60).any(axis=1)]


def fitted(**parameters: Any) -> Embedder:
    return Embedder(dim=6, **parameters).fit(HALF)


def laplacian(model: Embedder) -> np.ndarray:
    dense = model._engine.graph.adjacency.to_csr().toarray()
    dense = dense[: len(model), : len(model)]
    return np.diag(dense.sum(axis=1)) - dense


def test_rule_paper_is_judged_by_its_own_vectors() -> None:
    model = fitted(rule="paper")
    before = copy.deepcopy(model)
    model.partial_fit(REST)
    report = model.diagnostics(objective=True, gap=True, since=before)
    vectors, edges = model._engine.store.vectors[: len(model)], len(DATA.edges)
    homophily = float(np.trace(vectors.T @ laplacian(model) @ vectors))
    moved = vectors[: len(before)] - before._engine.store.vectors[: len(before)]
    found = report["objective"]
    assert found["homophily"] == pytest.approx(homophily, rel=1e-6)
    assert found["smoothness"] == pytest.approx(float((moved**2).sum()), rel=1e-6)
    assert found["total"] == pytest.approx(found["smoothness"] / len(model) + homophily / (4 * edges))
    assert found["least_homophily"] == pytest.approx(eigvalsh(laplacian(model))[:6].sum())
    assert found["least_total"] == pytest.approx(found["least_homophily"] / (4 * edges))
    assert found["least_total"] < found["total"]
    assert report["spectrum"] == []


def test_rule_ripple_is_brought_to_orthonormal_columns() -> None:
    model = fitted(anchor_growth=0)
    found = model.diagnostics(objective=True)["objective"]
    vectors = polar(model._engine.store.vectors[: len(model)].astype(np.float64))
    assert set(found) == {"smoothness", "homophily", "total"}
    assert found["smoothness"] == 0.0
    assert found["homophily"] == pytest.approx(float(np.trace(vectors.T @ laplacian(model) @ vectors)), rel=1e-6)


def test_nothing_has_moved_since_a_copy_but_by_arrivals() -> None:
    model = fitted(anchor_growth=0)
    before = copy.deepcopy(model)
    assert model.diagnostics(objective=True, since=before)["objective"]["smoothness"] < 1e-12
    model.remove_vertex(int(REST.min()))
    model.partial_fit(REST[:5])
    assert 0 < model.diagnostics(objective=True, since=before)["objective"]["smoothness"] < 1


def test_an_anchor_closes_the_gap_and_says_so() -> None:
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


def test_a_graph_with_fewer_vertices_than_columns_has_no_losses() -> None:
    model = Embedder(dim=6)
    model.partial_fit([("a", "b"), ("b", "c")])
    report = model.diagnostics(objective=True, gap=True)
    assert set(report["objective"].values()) == {None}
    assert report["spectrum"] == gaps(model._engine) == []


def test_directed_graphs_are_judged_as_their_views_see_them() -> None:
    model = Embedder(dim=4, directed=True).fit(np.concatenate([HALF, HALF[::3, ::-1]]))
    report = model.diagnostics(objective=True, gap=True)
    assert report["objective"]["homophily"] >= report["objective"]["least_homophily"] > 0
    assert all(share == pytest.approx(1, abs=1e-3) for share in report["spectrum"])


def test_an_operator_without_positive_values_leaves_nothing_to_reach() -> None:
    assert Gap(0.0, 0.0).share == 1.0
    assert Gap(1.0, 4.0).share == 0.25
