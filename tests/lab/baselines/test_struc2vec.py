from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix
from ripplevec.lab.baselines.struc2vec import Struc2Vec, _degree_order, compute_transitions
from ripplevec.lab.evaluation.label_metrics import normalize_rows

SMALL = Struc2Vec(dim=16, walks=20, length=30, window=5)


def matrix_of(graph: nx.Graph) -> csr_array:
    return csr_array(nx.to_scipy_sparse_array(graph, format="csr", dtype=float))


def mirrored(vertices: int, seed: int) -> csr_array:
    """Build a random graph and its copy, joined by an edge: v and v + vertices have the same surroundings."""
    graph = nx.gnp_random_graph(vertices, 0.12, seed=seed)
    pair = nx.disjoint_union(graph, graph)
    pair.add_edge(0, vertices)
    return matrix_of(pair)


def cosines(graph: csr_array, model: Struc2Vec = SMALL) -> np.ndarray:
    rows = normalize_rows(model.embed(graph))
    return rows @ rows.T


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_struc2vec_places_copies_nearest(seed: int) -> None:
    near = cosines(mirrored(30, seed))
    copies = (np.arange(60) + 30) % 60
    np.fill_diagonal(near, -1)
    nearer = (near > near[np.arange(60), copies][:, None]).sum(axis=1)
    assert np.median(nearer) == 0
    assert nearer.mean() < 2


def test_struc2vec_distinguishes_roles_in_barbell() -> None:
    near = cosines(matrix_of(nx.barbell_graph(10, 10)), replace(SMALL, walks=40, epochs=3))
    clique, door, first, middle = 0, 9, 10, 14
    for one, copy in ((clique, 29), (door, 20), (first, 19), (middle, 15)):
        others = [other for other in (clique, door, first, middle) if other != one]
        assert near[one, copy] > near[one, others].max() + 0.1


def test_struc2vec_walks_start_everywhere_and_cross_components() -> None:
    ring = matrix_of(nx.cycle_graph(8))
    walks = SMALL.generate_walks(csr_array(block_diag([ring, ring])))
    assert walks.shape == (20 * 16, 30)
    assert (np.bincount(walks[:, 0], minlength=16) == 20).all()
    assert ((walks < 8).any(axis=1) & (walks >= 8).any(axis=1)).mean() > 0.9
    assert (walks[:, 1:] != walks[:, :-1]).all()


def test_struc2vec_walks_depend_on_seed_not_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = mirrored(30, 0)
    walks = SMALL.generate_walks(graph)
    for name in ("WALKS_PER_BLOCK", "VERTICES_PER_BLOCK"):
        monkeypatch.setattr(f"ripplevec.lab.baselines.struc2vec.{name}", 7)
    np.testing.assert_array_equal(walks, replace(SMALL, threads=3).generate_walks(graph))
    assert (walks != replace(SMALL, seed=1).generate_walks(graph)).any()


def test_struc2vec_with_same_seed_gives_same_vectors() -> None:
    graph = mirrored(20, 0)
    np.testing.assert_array_equal(SMALL.embed(graph), SMALL.embed(graph))


def test_struc2vec_ignores_edge_weights() -> None:
    graph = mirrored(20, 0)
    np.testing.assert_array_equal(SMALL.generate_walks(graph), SMALL.generate_walks(5 * graph))


def test_compute_distances_are_symmetric_and_zero_between_copies() -> None:
    graph = as_weight_matrix(mirrored(20, 0))
    order = _degree_order(graph, seed=0)
    distances = SMALL.compute_distances(graph, order)
    layers, vertices, width = distances.shape
    assert (layers, vertices, width) == (6, len(order), 2 * 6)
    whole = np.full((layers, vertices, vertices), np.nan)
    for slot, offset in enumerate([*range(-6, 0), *range(1, 7)]):
        for v in range(max(-offset, 0), min(vertices - offset, vertices)):
            whole[:, v, v + offset] = distances[:, v, slot]
        outside = [v for v in range(vertices) if not 0 <= v + offset < vertices]
        assert np.isinf(distances[:, outside, slot]).all()
    np.testing.assert_array_equal(whole, whole.transpose(0, 2, 1))
    copies = order[:, None] == (order + 20) % 40
    compared = whole[:, copies & ~np.isnan(whole[0])]
    assert compared.shape[1] > 20
    assert np.isin(compared, (0, np.inf)).all()


def test_degree_order_follows_degrees_not_vertex_numbers() -> None:
    graph = as_weight_matrix(matrix_of(nx.disjoint_union(nx.cycle_graph(50), nx.star_graph(5))))
    order = _degree_order(graph, seed=0)
    degrees = np.diff(graph.indptr)[order]
    assert (np.diff(degrees) >= 0).all()
    in_ring = order[degrees == 2]
    assert (np.diff(in_ring) < 0).any()
    assert (in_ring != _degree_order(graph, seed=1)[degrees == 2]).any()


def test_compute_transitions_follow_weights() -> None:
    none = np.inf
    distances = np.array([[[none, 0.0], [0.0, 1.0], [1.0, none]], [[none, 1.0], [1.0, none], [none, none]]])
    cumulative, up = compute_transitions(np.concatenate([distances, np.full((1, 3, 2), none)]))
    half = np.exp(-1.0)
    np.testing.assert_allclose(cumulative, [[[0, 1], [1, 1 + half], [1, 1]], [[0, 1], [1, 1], [0, 0]]])
    np.testing.assert_array_equal(up, [[1, 1, 0], [0, 0, 0]])


def test_compute_transitions_go_up_more_often_with_more_close_partners() -> None:
    layer = np.array([[np.inf, 0.0], [0.0, 9.0], [9.0, np.inf]])
    _, up = compute_transitions(np.stack([layer] * 3))
    some, none = np.log(1 + np.e), 1.0
    np.testing.assert_allclose(up[1], [some / (some + 1), some / (some + 1), none / (none + 1)])


def test_compute_transitions_with_underflowing_weights_stay_finite() -> None:
    layer = np.array([[np.inf, 2000.0], [2000.0, 2001.0], [2001.0, np.inf]])
    cumulative, _ = compute_transitions(layer[None])
    np.testing.assert_allclose(cumulative[0, 1], [1, 1 + np.exp(-1.0)])


def test_struc2vec_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert SMALL.embed(graph).any(axis=1).tolist() == [True, True, False]
    assert not SMALL.embed(csr_array((3, 3))).any()
    assert not SMALL.embed(csr_array(np.array([[1.0]]))).any()


@pytest.mark.parametrize("settings", [{"layers": 0}, {"window": 1.5}, {"seed": -1}])
def test_struc2vec_with_invalid_settings_raises(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"{next(iter(settings))}: expected an integer"):
        Struc2Vec(**settings)
