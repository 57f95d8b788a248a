from __future__ import annotations

from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.graph import adjacency, id_table

EDGES = [(i, (i * k + 1) % 40) for i in range(40) for k in (1, 3, 7) if i != (i * k + 1) % 40]


def engine(edges: Any = EDGES, **parameters: Any) -> Engine:
    return Embedder(**{"dim": 4, **parameters}).fit(edges).engine


def test_growth_counts_vertices_or_half_of_the_edges() -> None:
    one = engine(anchor_growth=0)
    vertices, edges = len(one.graph), one.graph.adjacency.edge_count
    assert one.growth == 0
    one.apply(Batch.vertices([f"new {i}" for i in range(8)]))
    assert one.growth == pytest.approx(8 / vertices)
    for _ in range(2):
        one.apply(Batch.from_any([(0, i) for i in range(1, 40)]))
    assert one.growth == pytest.approx(78 / (2 * edges))


@pytest.mark.parametrize("growth", [0.1, 0.5])
def test_anchor_runs_when_the_graph_has_grown_enough(growth: float) -> None:
    one, anchored = engine(anchor_growth=growth, anchor_pace="immediate"), []
    for number in range(30):
        outcome = one.apply(Batch.arrival(f"new {number}", [number]))
        anchored.append(outcome.anchored)
    first = anchored.index(True)
    assert first + 1 == np.ceil(40 * growth)
    assert one.anchors == sum(anchored)
    assert len(one.apply(Batch.vertices(["last"])).moved) >= 1


def test_anchor_growth_zero_runs_no_anchor() -> None:
    one = engine(anchor_growth=0)
    for number in range(60):
        assert not one.apply(Batch.arrival(f"new {number}", [number % 40])).anchored
    assert one.anchors == 0


def test_outcome_contains_moved_rows_first_new_number_and_removed_ids() -> None:
    one = engine()
    first = one.graph.next_arrival
    batch = Batch.of(["a", "b", 3, "b"], [0, "a", 3, "b"], op=[Op.ADD, Op.ADD, Op.REMOVE_VERTEX, Op.REMOVE_VERTEX])
    outcome = one.apply(batch)
    assert outcome.first_new == first
    assert set(outcome.removed) >= {3}
    names = one.graph.ids.to_list(outcome.moved)
    assert "a" in names
    assert not {3, "b"} & set(names)
    assert len(set(outcome.moved.tolist())) == len(outcome.moved)


def test_row_that_is_reused_belongs_to_its_new_vertex() -> None:
    one = engine(anchor_growth=0)
    row = one.graph.ids.find_row(3)
    outcome = one.apply(Batch.of([3, "heir"], [3, 0], op=[Op.REMOVE_VERTEX, Op.ADD]))
    assert one.graph.ids.find_row("heir") == row
    assert row in outcome.moved
    assert outcome.removed == [3]
    assert one.get_vectors(np.array([row])).any()
    one.graph.check()


def test_vertex_added_again_in_the_same_batch_is_not_removed() -> None:
    one = engine(anchor_growth=0)
    outcome = one.apply(Batch.of([3, 3], [3, 0], op=[Op.REMOVE_VERTEX, Op.ADD]))
    assert outcome.removed == []
    assert 3 in one.graph.ids.to_list(outcome.moved)
    assert one.graph.arrival[one.graph.ids.find_row(3)] >= outcome.first_new


def test_counters_add_up() -> None:
    one = engine()
    started = one.diagnostics()
    assert (started["events"], started["sequence"], started["changes"], started["anchors"]) == (len(EDGES), 0, 0, 0)
    assert (started["vertices"], started["edges"], started["unplaced"]) == (40, one.graph.adjacency.edge_count, 0)
    one.apply(Batch.arrival("new", [0, 1]))
    one.apply(Batch.vertices(["lonely"]))
    now = one.diagnostics()
    assert (now["events"], now["sequence"], now["unplaced"]) == (len(EDGES) + 3, 2, 1)
    assert now["changes"] >= 2
    assert now["bytes"] > started["bytes"]


def test_state_restored_in_another_engine_continues_equally() -> None:
    one = engine()
    one.apply(Batch.of([3, "a", "b"], [3, 0, "a"], op=[Op.REMOVE_VERTEX, Op.ADD, Op.ADD]))
    other = engine([])
    state = one.state()
    other.restore(state)
    assert other.digest() == one.digest()
    for part in state.values():
        part[...] = np.zeros_like(part)  # shares no memory with either
    for each in (one, other):
        each.apply(Batch.from_any([("c", "b"), ("d", 5)]))
    assert other.digest() == one.digest()


def make_large_batches(text: bool) -> list[Batch]:
    """Create batches of edges that are large enough for several threads, and between them removals."""
    rng = np.random.default_rng(5)
    batches = []
    for number in range(3):
        size = 9_000
        src, dst = rng.integers(0, 2_000 * (number + 1), size), (rng.random(size) ** 2 * 3_000).astype(np.int64)
        ids = [[f"v{x}" for x in column] if text else column.tolist() for column in (src, dst)]
        time, weight = 10.0 * number + np.arange(size) / size, rng.choice([0.3, 1.0, 2.5], size)
        batches.append(Batch.of(*ids, weight, time=time))
        first = [column[:1] for column in ids]
        removed = Batch.of(
            first[0] * 2, [*first[1], *first[0]], op=[Op.ADD, Op.REMOVE_VERTEX], time=time[-1:].repeat(2)
        )
        batches.append(removed)
    return batches


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@pytest.mark.parametrize(
    ("text", "storage", "parameters"),
    [
        (False, "float32", {}),
        (True, "float16", {"directed": True, "duplicates": "replace"}),
        (False, "float16", {"expire_after": 12.0, "duplicates": "ignore"}),
        (True, "float32", {"half_life": 5.0, "expire_after": 15.0, "directed": True}),
    ],
)
def test_digest_large_batches_is_the_same_for_any_number_of_threads(
    text: bool, storage: Literal["float16", "float32"], parameters: dict[str, Any]
) -> None:
    def stream(threads: int) -> str:
        model = Embedder(dim=4, threads=threads, storage=storage, anchor_growth=0, **parameters)
        for batch in make_large_batches(text):
            model.partial_fit(batch)
        model.engine.check()
        return model.digest()

    with patch.object(adjacency, "MIN_BULK_EDGES", 1 << 40), patch.object(id_table, "MIN_BULK_PAIRS", 1 << 40):
        edge_by_edge = stream(1)
    assert {stream(threads) for threads in (1, 2, 4)} == {edge_by_edge}


def test_restore_keeps_the_number_of_threads() -> None:
    one, other = (engine(threads=3) for _ in range(2))
    other.restore(one.state())
    assert other.graph.threads == 3
