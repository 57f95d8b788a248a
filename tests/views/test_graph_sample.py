from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Op
from ripplevec.graph.adjacency import Adjacency
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.views import graph_sample
from ripplevec.views.graph_sample import (
    LocalReader,
    SampledGraph,
    hash_numbers,
    is_member,
    sample_graph,
    sample_with_numbers,
)

Pairs = NDArray[np.int64]


def make_reader(pairs: Pairs, vertices: int, arrival: Pairs | None = None) -> LocalReader:
    """Return a reader of a graph whose edges have the weights 1, 2, …"""
    adjacency = Adjacency()
    adjacency.ensure_rows(vertices)
    weights = np.arange(1, len(pairs) + 1, dtype=np.float32)
    adjacency.apply(np.full(len(pairs), Op.ADD, np.int8), pairs, weights)
    return LocalReader(adjacency, np.arange(vertices) if arrival is None else arrival)


def weighted_edges(sample: SampledGraph) -> dict[tuple[int, int], float]:
    return {(u, v): w for (u, v), w in zip(sample.pairs.tolist(), sample.weights.tolist(), strict=True)}


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_sample_of_a_small_graph_is_the_graph_in_order_of_arrival(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.unique(np.sort(rng.integers(0, 12, (20, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    arrival = rng.permutation(40)[:12]
    sample = sample_graph(make_reader(pairs, 12, arrival), 0)
    present = np.sort(arrival[np.unique(pairs)])
    expected = {
        tuple(sorted(np.searchsorted(present, arrival[list(pair)]).tolist())): float(weight)
        for weight, pair in enumerate(pairs.tolist(), 1)
    }
    assert sample.vertices == present.size
    assert weighted_edges(sample) == expected


def test_sample_of_a_large_graph_is_bounded_and_keeps_its_density(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_sample, "MAX_VERTICES", 400)
    data = planted_partition(communities=20, size=150, inside=12, elsewhere=1, seed=0)
    reader = make_reader(data.edges, data.vertices)
    sample, again = sample_graph(reader, 3), sample_graph(reader, 3)
    assert np.array_equal(sample.pairs, again.pairs)
    assert 300 < sample.vertices <= 400  # of 3,000
    chance = data.mean_degree * 400 / data.vertices  # mean degree among vertices chosen at random
    assert 2 * len(sample.pairs) / sample.vertices > 1.5 * chance


def test_sample_of_a_large_graph_of_small_components_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_sample, "MAX_VERTICES", 200)
    pairs = np.arange(2_000).reshape(-1, 2)
    sample = sample_graph(make_reader(pairs, 2_000), 0)
    assert sample.vertices == 2 * len(sample.pairs) > 100


def test_sample_does_not_depend_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_sample, "MAX_VERTICES", 50)
    data = planted_partition(communities=4, size=50, inside=8, elsewhere=1, seed=1)
    row = np.random.default_rng(0).permutation(data.vertices)
    first = sample_graph(make_reader(data.edges, data.vertices), 0)
    second = sample_graph(make_reader(row[data.edges], data.vertices, np.argsort(row)), 0)
    assert first.vertices == second.vertices
    assert weighted_edges(first) == weighted_edges(second)


def test_sample_of_a_dense_graph_has_a_bounded_number_of_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_sample, "MAX_EDGES", 500)
    pairs = np.array([(u, v) for v in range(120) for u in range(v)])
    assert 100 < len(sample_graph(make_reader(pairs, 120), 0).pairs) <= 500


def test_sample_reads_long_lists_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_sample, "MAX_LIST", 10)
    reader = make_reader(np.array([(0, leaf) for leaf in range(1, 30)]), 30)
    found = reader.read(np.arange(30))
    assert np.count_nonzero(found.vertex == 0) == 10
    assert np.count_nonzero(found.vertex != 0) == 29
    assert len(reader.read(None).vertex) == 58


def test_is_member_and_hash_numbers() -> None:
    assert is_member(np.array([2, 5, 9]), np.array([[1, 2], [9, 10]])).tolist() == [[False, True], [True, False]]
    assert not is_member(np.empty(0, np.int64), np.array([3])).any()
    hashes = hash_numbers(7, np.arange(10_000))
    assert np.unique(hashes).size == 10_000
    assert abs(float((hashes >> np.uint64(63)).mean()) - 0.5) < 0.03


def test_sample_with_numbers_tells_the_arrival_number_of_every_vertex() -> None:
    pairs, arrival = np.array([[0, 2], [2, 3], [0, 3]]), np.array([7, 1, 4, 9])
    sample, numbers = sample_with_numbers(make_reader(pairs, 4, arrival), 0)
    assert numbers.tolist() == [4, 7, 9]  # row 1 has no edges
    assert numbers[sample.pairs].tolist() == [[4, 7], [4, 9], [7, 9]]
