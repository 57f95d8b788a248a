from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.graph._block_kernels import ARENA_TOP


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    duplicates=st.sampled_from(["add", "ignore", "replace"]),
    directed=st.booleans(),
    text=st.booleans(),
)
def test_one_arrival_is_a_batch_of_one(edges_of: Any, seed: int, duplicates: str, directed: bool, text: bool) -> None:
    """The quick way gives the same bits as the long one."""
    rng = np.random.default_rng(seed)
    quick, long = (Embedder(dim=4, duplicates=duplicates, directed=directed).fit(edges_of(seed % 5)) for _ in range(2))
    for step in range(12):
        name: Any = int(rng.integers(0, 60)) if rng.random() < 0.3 else f"new {step}" if text else 1000 + step
        others = [int(u) for u in rng.integers(0, 60, rng.integers(0, 5)) if u != name]
        weights = None if rng.random() < 0.5 else (2.0 ** rng.integers(-3, 4, len(others))).tolist()
        if rng.random() < 0.2 and len(quick) > 5:
            going = quick.ids[int(rng.integers(len(quick)))]
            quick.remove_vertex(going)
            long.remove_vertex(going)
        vector = quick.add_vertex(name, others, weights)
        long.partial_fit(Batch.arrival(name, others, weights))
        assert quick.digest() == long.digest()
        np.testing.assert_allclose(vector, long[name], atol=1e-6)
    quick.check()
    assert quick.diagnostics() == long.diagnostics()


def test_the_quick_way_is_taken_wherever_there_is_room(edges_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(dim=4, anchor_growth=0).fit(edges_of(0))
    slow: list[Batch] = []
    apply = model._engine.apply
    monkeypatch.setattr(model._engine, "apply", lambda batch: slow.append(batch) or apply(batch))
    for number in range(1, 1000):
        model.add_vertex(f"name {number}", [0, f"name {number - 1}"])
    assert len(slow) < 50  # arrays double, so that they seldom run out
    model.check()
    assert len(model) == model.diagnostics()["vertices"] == len(set(model.ids))


@pytest.mark.parametrize("full", ["edges", "rows"])
def test_without_room_nothing_happens(edges_of: Any, full: str) -> None:
    engine = Embedder(dim=4).fit(edges_of(0))._engine
    links = engine.graph.adjacency.links
    column = (
        np.array([1000, *range(5)]) if full == "edges" else np.arange(1000, 1000 + 2 * engine.graph.adjacency.capacity)
    )
    if full == "edges":
        links.allocator[ARENA_TOP] = links.neighbor.size
    before = engine.digest()
    assert engine.rule.apply_arrival(engine.store, column, None, 1) == (-1, 0, 0)
    assert engine.digest() == before
    assert 1000 not in engine.graph.ids


def test_rows_of_removed_vertices_are_reused_the_quick_way(edges_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(dim=4, anchor_growth=0).fit(edges_of(0))
    for number in range(20):  # whatever must grow has grown
        model.add_vertex(f"first {number}", [0, 1])
    going = [f"first {number}" for number in range(5)]
    model.partial_fit(Batch.vertices(going, Op.REMOVE_VERTEX))
    rows, slow = model._engine.graph.row_count, []
    apply = model._engine.apply
    monkeypatch.setattr(model._engine, "apply", lambda batch: slow.append(batch) or apply(batch))
    for number in range(5):
        model.add_vertex(f"new {number}", [0, 1])
    assert not slow
    assert model._engine.graph.row_count == rows
    model.check()


def test_arrivals_on_a_hub_are_those_of_a_batch() -> None:
    """Thousands of newcomers on one vertex, some of them twice: its list is looked up on either way."""
    star = [(0, leaf) for leaf in range(1, 40)]
    quick, long = (Embedder(dim=4, anchor_growth=0).fit(star) for _ in range(2))
    for number in range(1, 2_600):
        name, others = f"name {number}", [0, f"name {number // 2}" if number % 3 else 1]
        quick.add_vertex(name, others)
        long.partial_fit(Batch.arrival(name, others))
    quick.add_vertex("name 7", [0, 0, 5])
    long.partial_fit(Batch.arrival("name 7", [0, 0, 5]))
    assert quick._engine.graph.adjacency.links.index_begin[0] >= 0
    assert quick.digest() == long.digest()
    quick.check()
