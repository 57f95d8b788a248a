from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import checked
from ripplevec.lab.baselines.struc2vec import Struc2Vec, _order, transitions
from ripplevec.lab.evaluation.rows import unit_rows

SMALL = Struc2Vec(dim=16, walks=20, length=30, window=5)


def matrix_of(graph: nx.Graph) -> csr_array:
    return csr_array(nx.to_scipy_sparse_array(graph, format="csr", dtype=float))


def mirrored(vertices: int, seed: int) -> csr_array:
    """A random graph and its image, joined by an edge between two images: v and v + vertices look the same."""
    graph = nx.gnp_random_graph(vertices, 0.12, seed=seed)
    pair = nx.disjoint_union(graph, graph)
    pair.add_edge(0, vertices)
    return matrix_of(pair)


def cosines(graph: csr_array, model: Struc2Vec = SMALL) -> np.ndarray:
    rows = unit_rows(model.embed(graph))
    return rows @ rows.T


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_images_of_each_other_are_nearest(seed: int) -> None:
    near = cosines(mirrored(30, seed))
    images = (np.arange(60) + 30) % 60
    np.fill_diagonal(near, -1)
    nearer = (near > near[np.arange(60), images][:, None]).sum(axis=1)
    assert np.median(nearer) == 0
    assert nearer.mean() < 2


def test_places_in_a_barbell_are_told_apart_however_far_they_are() -> None:
    near = cosines(matrix_of(nx.barbell_graph(10, 10)), replace(SMALL, walks=40, epochs=3))
    clique, door, first, middle = 0, 9, 10, 14
    for one, image in ((clique, 29), (door, 20), (first, 19), (middle, 15)):
        others = [other for other in (clique, door, first, middle) if other != one]
        assert near[one, image] > near[one, others].max() + 0.1


def test_walks_begin_everywhere_equally_often_and_cross_components() -> None:
    ring = matrix_of(nx.cycle_graph(8))
    walks = SMALL.corpus(csr_array(block_diag([ring, ring])))
    assert walks.shape == (20 * 16, 30)
    assert (np.bincount(walks[:, 0], minlength=16) == 20).all()
    assert ((walks < 8).any(axis=1) & (walks >= 8).any(axis=1)).mean() > 0.9
    assert (walks[:, 1:] != walks[:, :-1]).all()


def test_walks_depend_on_the_seed_not_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = mirrored(30, 0)
    walks = SMALL.corpus(graph)
    for name in ("BLOCK", "RINGS"):
        monkeypatch.setattr(f"ripplevec.lab.baselines.struc2vec.{name}", 7)
    np.testing.assert_array_equal(walks, replace(SMALL, threads=3).corpus(graph))
    assert (walks != replace(SMALL, seed=1).corpus(graph)).any()


def test_the_same_seed_gives_the_same_vectors() -> None:
    graph = mirrored(20, 0)
    np.testing.assert_array_equal(SMALL.embed(graph), SMALL.embed(graph))


def test_weights_of_edges_do_not_count() -> None:
    graph = mirrored(20, 0)
    np.testing.assert_array_equal(SMALL.corpus(graph), SMALL.corpus(5 * graph))


def test_distances_are_symmetric_and_zero_between_images() -> None:
    graph = checked(mirrored(20, 0))
    order = _order(graph, seed=0)
    distances = SMALL.distances(graph, order)
    layers, vertices, width = distances.shape
    assert (layers, vertices, width) == (6, len(order), 2 * 6)
    whole = np.full((layers, vertices, vertices), np.nan)
    for slot, offset in enumerate([*range(-6, 0), *range(1, 7)]):
        for v in range(max(-offset, 0), min(vertices - offset, vertices)):
            whole[:, v, v + offset] = distances[:, v, slot]
        outside = [v for v in range(vertices) if not 0 <= v + offset < vertices]
        assert np.isinf(distances[:, outside, slot]).all()
    np.testing.assert_array_equal(whole, whole.transpose(0, 2, 1))
    images = order[:, None] == (order + 20) % 40
    compared = whole[:, images & ~np.isnan(whole[0])]
    assert compared.shape[1] > 20
    assert np.isin(compared, (0, np.inf)).all()


def test_order_follows_degrees_and_not_the_numbers_of_vertices() -> None:
    graph = checked(matrix_of(nx.disjoint_union(nx.cycle_graph(50), nx.star_graph(5))))
    order = _order(graph, seed=0)
    degrees = np.diff(graph.indptr)[order]
    assert (np.diff(degrees) >= 0).all()
    in_ring = order[degrees == 2]
    assert (np.diff(in_ring) < 0).any()
    assert (in_ring != _order(graph, seed=1)[degrees == 2]).any()


def test_transitions_follow_the_weights() -> None:
    none = np.inf
    distances = np.array([[[none, 0.0], [0.0, 1.0], [1.0, none]], [[none, 1.0], [1.0, none], [none, none]]])
    cumulative, up = transitions(np.concatenate([distances, np.full((1, 3, 2), none)]))
    half = np.exp(-1.0)
    np.testing.assert_allclose(cumulative, [[[0, 1], [1, 1 + half], [1, 1]], [[0, 1], [1, 1], [0, 0]]])
    np.testing.assert_array_equal(up, [[1, 1, 0], [0, 0, 0]])


def test_the_chance_to_go_up_grows_with_the_partners_above_the_average() -> None:
    layer = np.array([[np.inf, 0.0], [0.0, 9.0], [9.0, np.inf]])
    _, up = transitions(np.stack([layer] * 3))
    some, none = np.log(1 + np.e), 1.0
    np.testing.assert_allclose(up[1], [some / (some + 1), some / (some + 1), none / (none + 1)])


def test_weights_too_small_for_any_number_still_lead_on() -> None:
    layer = np.array([[np.inf, 2000.0], [2000.0, 2001.0], [2001.0, np.inf]])
    cumulative, _ = transitions(layer[None])
    np.testing.assert_allclose(cumulative[0, 1], [1, 1 + np.exp(-1.0)])


def test_vertices_without_edges_have_zero_vectors() -> None:
    graph = csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert SMALL.embed(graph).any(axis=1).tolist() == [True, True, False]
    assert not SMALL.embed(csr_array((3, 3))).any()
    assert not SMALL.embed(csr_array(np.array([[1.0]]))).any()


@pytest.mark.parametrize("settings", [{"layers": 0}, {"window": 1.5}, {"seed": -1}])
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=f"{next(iter(settings))}: expected a whole number"):
        Struc2Vec(**settings)
