from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from ripplevec.errors import InvalidValueError
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.snapshots.dynnode2vec import DynNode2Vec, GloDyNE, grow_parts

SMALL = {"dim": 8, "length": 10, "window": 5}


def test_dynnode2vec_without_changes_keeps_vectors(snapshots: Any) -> None:
    method, graph = DynNode2Vec(**SMALL), next(iter(snapshots))
    np.testing.assert_array_equal(method.update(graph), method.update(graph))


def test_dynnode2vec_with_biases_of_one_has_walks_by_weight(snapshots: Any) -> None:
    method, graph = DynNode2Vec(**SMALL), snapshots.matrix
    starts = np.arange(160)
    expected = np.empty((method.walks, len(starts), method.length), np.int64)
    for number, rows in enumerate(expected):
        order = np.random.default_rng([0, 0, number]).permutation(starts)
        kernels.walk_by_weight(*kernels.build_walk_graph(graph), order, draw_key(0, 0, number), rows)
    np.testing.assert_array_equal(method._generate_walks(graph, starts), expected.reshape(-1, method.length))


def test_dynnode2vec_with_large_p_returns_less_often(snapshots: Any) -> None:
    def share_of_returns(p: float) -> float:
        walks = DynNode2Vec(**SMALL, p=p)._generate_walks(snapshots.matrix, np.arange(160))
        return float((walks[:, 2:] == walks[:, :-2]).mean())

    assert share_of_returns(4.0) < share_of_returns(1.0) < share_of_returns(0.25)


def test_grow_parts_are_connected_and_cover_all_linked_vertices_once(snapshots: Any) -> None:
    parts = grow_parts(snapshots.matrix, 10)
    assert sorted(v for part in parts for v in part) == list(range(160))
    for part in parts:
        assert len(part) <= 10
        assert connected_components(snapshots.matrix[part][:, part])[0] == 1


def test_glodyne_selects_new_vertices_and_one_of_every_part(snapshots: Any) -> None:
    method = GloDyNE(**SMALL, share=0.1)
    first, second = list(snapshots)[:2]
    known, linked = (set(np.flatnonzero(np.diff(graph.indptr)).tolist()) for graph in (first, second))
    assert set(method.select(first).tolist()) == known
    method.update(first)
    chosen = set(method.select(second).tolist())
    assert linked - known <= chosen
    assert len(chosen) == len(linked - known) + sum(bool(known & set(part)) for part in grow_parts(second, 10))


def test_glodyne_with_share_above_one_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"GloDyNE\.share: expected a number above 0, at most 1"):
        GloDyNE(share=2.0)
