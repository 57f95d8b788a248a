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
def test_apply_arrival_gives_the_same_bits_as_a_batch(
    edges_of: Any, seed: int, duplicates: str, directed: bool, text: bool
) -> None:
    """The kernel for single arrivals gives the same bits as a batch."""
    rng = np.random.default_rng(seed)
    single, batched = (
        Embedder(dim=4, duplicates=duplicates, directed=directed).fit(edges_of(seed % 5)) for _ in range(2)
    )
    for step in range(12):
        name: Any = int(rng.integers(0, 60)) if rng.random() < 0.3 else f"new {step}" if text else 1000 + step
        others = [int(u) for u in rng.integers(0, 60, rng.integers(0, 5)) if u != name]
        weights = None if rng.random() < 0.5 else (2.0 ** rng.integers(-3, 4, len(others))).tolist()
        if rng.random() < 0.2 and len(single) > 5:
            removed = single.ids[int(rng.integers(len(single)))]
            single.remove_vertex(removed)
            batched.remove_vertex(removed)
        vector = single.add_vertex(name, others, weights)
        batched.partial_fit(Batch.arrival(name, others, weights))
        assert single.digest() == batched.digest()
        np.testing.assert_allclose(vector, batched[name], atol=1e-6)
    single.check()
    assert single.diagnostics() == batched.diagnostics()


def test_apply_arrival_is_used_while_arrays_grow(edges_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(dim=4, anchor_growth=0).fit(edges_of(0))
    fallbacks: list[Batch] = []
    apply = model.engine.apply
    monkeypatch.setattr(model.engine, "apply", lambda batch: fallbacks.append(batch) or apply(batch))
    for number in range(1, 1000):
        model.add_vertex(f"name {number}", [0, f"name {number - 1}"])
    assert not fallbacks  # arrays that are full grow first
    model.check()
    assert len(model) == model.diagnostics()["vertices"] == len(set(model.ids))


@pytest.mark.parametrize("full", ["edges", "rows"])
def test_apply_arrival_without_room_changes_nothing(edges_of: Any, full: str) -> None:
    engine = Embedder(dim=4).fit(edges_of(0)).engine
    links = engine.graph.adjacency.links
    column = (
        np.array([1000, *range(5)]) if full == "edges" else np.arange(1000, 1000 + 2 * engine.graph.adjacency.capacity)
    )
    if full == "edges":
        links.allocator[ARENA_TOP] = links.neighbor.size
    before = engine.digest()
    row, edges, moved = engine.rule.apply_arrival(engine.store, column, None, 1)
    assert (row, edges, moved.size) == (-1, 0, 0)
    assert engine.digest() == before
    assert 1000 not in engine.graph.ids


def test_apply_arrival_reuses_rows_of_removed_vertices(edges_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Embedder(dim=4, anchor_growth=0).fit(edges_of(0))
    for number in range(20):  # all arrays have grown enough
        model.add_vertex(f"first {number}", [0, 1])
    removed = [f"first {number}" for number in range(5)]
    model.partial_fit(Batch.vertices(removed, Op.REMOVE_VERTEX))
    rows, fallbacks = model.engine.graph.row_count, []
    apply = model.engine.apply
    monkeypatch.setattr(model.engine, "apply", lambda batch: fallbacks.append(batch) or apply(batch))
    for number in range(5):
        model.add_vertex(f"new {number}", [0, 1])
    assert not fallbacks
    assert model.engine.graph.row_count == rows
    model.check()


def test_apply_arrival_at_a_hub_gives_the_same_bits_as_a_batch() -> None:
    """Thousands of arrivals at one vertex, some repeated, so that its neighbor list is indexed."""
    star = [(0, leaf) for leaf in range(1, 40)]
    single, batched = (Embedder(dim=4, anchor_growth=0).fit(star) for _ in range(2))
    for number in range(1, 2_600):
        name, others = f"name {number}", [0, f"name {number // 2}" if number % 3 else 1]
        single.add_vertex(name, others)
        batched.partial_fit(Batch.arrival(name, others))
    single.add_vertex("name 7", [0, 0, 5])
    batched.partial_fit(Batch.arrival("name 7", [0, 0, 5]))
    assert single.engine.graph.adjacency.links.index_begin[0] >= 0
    assert single.digest() == batched.digest()
    single.check()
