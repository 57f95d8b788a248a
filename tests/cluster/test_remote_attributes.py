"""Tests of attributes that the driver updates: only the rows that may change are copied to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch
from ripplevec.cluster.attributed_engine import AttributedClusterEngine
from ripplevec.cluster.shard import Shard

TAGS = {vertex: {f"t{vertex % 5}": 1.0, f"u{vertex % 7}": 1.0} for vertex in range(60)}


@pytest.fixture
def model(new_models: Any) -> Any:
    """A ring of 60 vertices with attributes on three shards; the basis is not learned at once any more."""
    _, sharded = new_models(3, dim=8)
    return sharded.fit(Batch.of(np.arange(60), np.arange(1, 61) % 60), attributes=TAGS)


def count_written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every shard will append the number of rows that the driver writes to it."""
    written: list[int] = []
    original = Shard.write_attributes

    def write(self: Shard, rows: Any, *columns: Any) -> None:
        written.append(len(rows))
        original(self, rows, *columns)

    monkeypatch.setattr(Shard, "write_attributes", write)
    return written


def test_update_writes_the_changed_rows_only(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written = count_written(monkeypatch)
    model.partial_fit([(0, 30), (1, 20)])
    assert sum(written) == 0
    model.add_vertex("new", [0, 5], attributes={"t1": 1.0})
    assert sum(written) == 1
    model.add_vertex("without", [0, 5])
    assert sum(written) == 2


def test_driver_holds_no_rows_after_an_update(model: Any) -> None:
    engine = model.engine
    assert isinstance(engine, AttributedClusterEngine)
    model.add_vertex("new", [0, 5], attributes={"t1": 1.0, "unseen": 2.0})
    store = engine.attributes
    assert (store.graph.row_count, store.kept.gather(np.arange(9))["values"].size, store.rows) == (0, 0, 61)
    assert store.projection.size == 13
    copied = store.for_reads(engine)
    assert copied.rows == 61
    assert copied.projection is not store.projection


def test_graph_too_large_for_the_driver_is_not_learned_again(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.cluster.remote_attributes.MAX_GATHERED_EDGES", 3)
    written = count_written(monkeypatch)
    model.engine.attributes.relearn()
    assert not written
