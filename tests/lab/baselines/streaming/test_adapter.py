from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError, UnknownVertexError
from ripplevec.lab.baselines.streaming import NeighborMean, Streamed
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import AnchorWatch, arrival, stream

GRAPH = planted_partition(communities=3, size=30, inside=8, elsewhere=1)
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


class Recorder:
    """Notes what reaches it; a vector is the number of the row."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[int]]] = []
        self.rows = 0

    def start(self, graph: Any) -> None:
        self.graph, self.rows = graph.toarray(), graph.shape[0]

    def place(self, neighbors: list[int]) -> np.ndarray:
        return np.array([sum(neighbors)])

    def arrive(self, v: int, neighbors: list[int]) -> np.ndarray:
        self.seen.append((v, neighbors))
        self.rows = max(self.rows, v + 1)
        return np.array([v])

    def vectors(self) -> np.ndarray:
        return np.arange(self.rows)[:, None]


def test_rows_are_in_order_of_first_mention() -> None:
    method = Recorder()
    model = Streamed(method).fit(SQUARE)
    assert model.vectors(["d", "a", "c"]).tolist() == [[3], [0], [2]]
    assert method.graph.tolist() == [[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]]
    assert model.preview(["b", "c"]).tolist() == [3]


def test_weights_of_the_start_are_kept() -> None:
    method = Recorder()
    Streamed(method).fit([("a", "b", 2.5)])
    assert method.graph.tolist() == [[0, 2.5], [2.5, 0]]


def test_a_batch_is_taken_in_arrival_by_arrival() -> None:
    method = Recorder()
    model = Streamed(method).fit(SQUARE)
    op = [Op.VERTEX, Op.ADD, Op.ADD, Op.VERTEX, Op.ADD, Op.ADD]
    moved = model.partial_fit(Batch.of(["e", "e", "e", "f", "g", "b"], ["e", "a", "b", "f", "h", "d"], op=op))
    assert method.seen == [(4, [0, 1]), (5, []), (6, []), (7, [6]), (1, [3])]
    assert moved.ids == ["e", "f", "h", "g"]
    assert moved.vectors.tolist() == [[4], [5], [6], [7]]
    assert not moved.anchored


def test_what_moved_is_what_differs() -> None:
    model = Streamed(NeighborMean(dim=2)).fit(SQUARE)
    assert model.partial_fit([("e", "a")]).ids == ["e"]
    assert model.partial_fit([("b", "d")]).ids == []


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("edges", ["together", "spread"])
def test_it_can_be_streamed_to_like_an_embedder(batch: int, edges: str) -> None:
    model = Streamed(NeighborMean(dim=6))
    result = stream(model, GRAPH, batch=batch, edges=edges)
    assert arrival(result).micro > 0.6
    watched = stream(Streamed(NeighborMean(dim=6)), GRAPH, batch=batch, edges=edges, watch=AnchorWatch())
    np.testing.assert_array_equal(watched.arrival_vectors, result.arrival_vectors)


def test_what_it_cannot_do_is_refused() -> None:
    model = Streamed(Recorder()).fit(SQUARE)
    with pytest.raises(UnknownVertexError, match="'z'"):
        model.vectors(["z"])
    with pytest.raises(InvalidValueError, match="cannot remove"):
        model.partial_fit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))
    with pytest.raises(InvalidValueError, match="unweighted"):
        model.partial_fit([("a", "b", 2.0)])
