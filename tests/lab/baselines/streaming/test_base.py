from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.lab.baselines.base import build_adjacency
from ripplevec.lab.baselines.streaming import NeighborMean, StreamingBaselineAdapter
from ripplevec.lab.baselines.streaming.base import GrowingVectors, add_arrival_edges, add_unit_edges
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import AnchorObserver, score_on_arrival, stream


@given(st.integers(0, 5), st.lists(st.integers(0, 1000), max_size=60))
def test_growing_vectors_append_rows(before: int, values: list[int]) -> None:
    vectors = GrowingVectors(np.arange(2 * before).reshape(before, 2))
    for value in values:
        vectors.set_row(len(vectors), np.full(2, value))
    expected = [[2 * row, 2 * row + 1] for row in range(before)] + [[value, value] for value in values]
    assert vectors.read_only().tolist() == expected


def test_growing_vectors_mean_row_skips_unplaced_vertices() -> None:
    vectors = GrowingVectors(np.array([[1.0, 3.0], [0.0, 0.0], [3.0, 5.0]]))
    assert vectors.mean_row([0, 1, 2]).tolist() == [2.0, 4.0]
    assert vectors.mean_row([1]).tolist() == vectors.mean_row([]).tolist() == [0.0, 0.0]


def test_growing_vectors_read_only_view_does_not_lock_rows() -> None:
    vectors = GrowingVectors(np.ones((1, 2)))
    vectors.read_only()
    vectors.set_row(0, np.zeros(2))
    vectors.rows[0] = 5
    assert vectors.read_only().tolist() == [[5, 5]]


def test_add_arrival_edges_extends_adjacency() -> None:
    matrix = np.array([[0, 2.0, 0], [2.0, 0, 1], [0, 1, 0]])
    graph = build_adjacency(csr_array(matrix))
    add_arrival_edges(graph, 3, [0, 2])
    add_arrival_edges(graph, 0, [2])
    expected = np.zeros((4, 4))
    expected[:3, :3] = matrix
    for u, v in ((3, 0), (3, 2), (0, 2)):
        expected[u, v] = expected[v, u] = 1
    np.testing.assert_array_equal(graph.to_csr().toarray()[:4, :4], expected)


def test_add_unit_edges_adds_repeated_pairs_to_weights() -> None:
    matrix = csr_array(np.array([[0, 2.0, 0], [2.0, 0, 0], [0, 0, 0]]))
    grown = add_unit_edges(matrix, [(0, 1), (2, 1), (1, 2)])
    np.testing.assert_array_equal(grown.toarray(), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])
    np.testing.assert_array_equal(add_unit_edges(matrix, []).toarray(), matrix.toarray())


GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


class Recorder:
    """Record the calls it receives; a vector is the row number."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []
        self.rows = 0

    def start(self, graph: Any) -> None:
        self.graph, self.rows = graph.toarray(), graph.shape[0]

    def preview(self, neighbors: list[int]) -> np.ndarray:
        return np.array([sum(neighbors)])

    def add_vertex(self, v: int, neighbors: list[int]) -> np.ndarray:
        self.calls.append((v, neighbors))
        self.rows = max(self.rows, v + 1)
        return np.array([v])

    def vectors(self) -> np.ndarray:
        return np.arange(self.rows)[:, None]


def test_adapter_numbers_rows_by_first_mention() -> None:
    method = Recorder()
    model = StreamingBaselineAdapter(method).fit(SQUARE)
    assert model.vectors(["d", "a", "c"]).tolist() == [[3], [0], [2]]
    assert method.graph.tolist() == [[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]]
    assert model.preview(["b", "c"]).tolist() == [3]


def test_adapter_fit_keeps_weights() -> None:
    method = Recorder()
    StreamingBaselineAdapter(method).fit([("a", "b", 2.5)])
    assert method.graph.tolist() == [[0, 2.5], [2.5, 0]]


def test_adapter_partial_fit_applies_arrivals_one_by_one() -> None:
    method = Recorder()
    model = StreamingBaselineAdapter(method).fit(SQUARE)
    op = [Op.VERTEX, Op.ADD, Op.ADD, Op.VERTEX, Op.ADD, Op.ADD]
    changed = model.partial_fit(Batch.of(["e", "e", "e", "f", "g", "b"], ["e", "a", "b", "f", "h", "d"], op=op))
    assert method.calls == [(4, [0, 1]), (5, []), (6, []), (7, [6]), (1, [3])]
    assert changed.ids == ["e", "f", "h", "g"]
    assert changed.vectors.tolist() == [[4], [5], [6], [7]]
    assert not changed.anchored


def test_adapter_partial_fit_reports_changed_vectors_only() -> None:
    model = StreamingBaselineAdapter(NeighborMean(dim=2)).fit(SQUARE)
    assert model.partial_fit([("e", "a")]).ids == ["e"]
    assert model.partial_fit([("b", "d")]).ids == []


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("edges", ["together", "spread"])
def test_adapter_can_be_streamed_to_like_embedder(batch: int, edges: str) -> None:
    model = StreamingBaselineAdapter(NeighborMean(dim=6))
    result = stream(model, GRAPH, batch=batch, edges=edges)
    assert score_on_arrival(result).micro > 0.6
    watched = stream(
        StreamingBaselineAdapter(NeighborMean(dim=6)), GRAPH, batch=batch, edges=edges, observer=AnchorObserver()
    )
    np.testing.assert_array_equal(watched.arrival_vectors, result.arrival_vectors)


def test_adapter_with_unsupported_input_raises() -> None:
    model = StreamingBaselineAdapter(Recorder()).fit(SQUARE)
    with pytest.raises(UnknownVertexError, match="'z'"):
        model.vectors(["z"])
    with pytest.raises(InvalidValueError, match="cannot remove"):
        model.partial_fit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))
    with pytest.raises(InvalidValueError, match="unweighted"):
        model.partial_fit([("a", "b", 2.0)])
