from __future__ import annotations

import sys

import lancedb
import numpy as np
import pytest

from ripplevec import Batch, Embedder, InvalidValueError, Op, Session
from ripplevec.errors import MissingExtraError
from ripplevec.io import sink_to, stream_from
from ripplevec.io.sinks import lance, vector_store
from ripplevec.io.sinks.lance import LanceSink
from ripplevec.lab.datasets.synthetic import planted_partition


def table(directory, name="vertices"):
    return lancedb.connect(directory).open_table(name)


def rows_by_id(directory):
    """Return every row by its original id."""
    rows = table(directory).to_arrow().to_pylist()
    by_id = {int(row["id"]) if row["integer"] else row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def assert_in_sync(directory, model):
    rows = rows_by_id(directory)
    assert rows.keys() == set(model.ids)
    vectors = np.array([rows[name]["vector"] for name in model.ids], np.float32)
    # On some processors BLAS rounds a row differently if others are served with it.
    np.testing.assert_allclose(vectors, model.to_numpy(), atol=1e-6)


def test_lance_sink_keeps_one_row_per_vertex_with_last_vector(tmp_path, changes_of):
    first = changes_of(["a", 1, "1"], sequence=1)
    second = changes_of(["a", "b"], removed=[1], sequence=2)
    sink = LanceSink(tmp_path)
    sink.write(first)
    sink.flush()
    assert {name: row["sequence"] for name, row in rows_by_id(tmp_path).items()} == {"a": 1, 1: 1, "1": 1}
    for _ in range(2):  # repeated as after a crash
        sink.write(second)
        sink.flush()
        rows = rows_by_id(tmp_path)
        assert {name: row["sequence"] for name, row in rows.items()} == {"a": 2, "1": 1, "b": 2}
        assert np.array_equal(np.array([rows["a"]["vector"], rows["b"]["vector"]], np.float32), second.vectors)
        assert np.array_equal(np.array(rows["1"]["vector"], np.float32), first.vectors[2])
    sink.close()


def test_lance_sink_flush_applies_last_change_of_each_vertex(tmp_path, changes_of):
    sink = LanceSink(tmp_path, table="mine")
    sink.write(changes_of([], removed=["never there"], sequence=1))
    sink.flush()
    sink.write(changes_of(["a", "b"], sequence=2))
    sink.write(changes_of([], removed=["a", "b"], sequence=3))
    sink.write(changes_of(["b"], sequence=4))
    sink.close()
    assert [(row["id"], row["sequence"]) for row in table(tmp_path, "mine").to_arrow().to_pylist()] == [("b", 4)]


def test_lance_sink_with_unusual_ids_inserts_and_deletes_them(tmp_path, changes_of, monkeypatch):
    monkeypatch.setattr(lance, "_IDS_PER_CONDITION", 3)
    names = ["it's", "''", "a\\'b", "-- x", "%", "a\nb", "日本", "", "x" * 500, 7, -(2**80), "7", "') OR true --"]
    sink = LanceSink(tmp_path)
    sink.write(changes_of([*names, "stays"], sequence=1))
    sink.flush()
    assert rows_by_id(tmp_path).keys() == {*names, "stays"}
    sink.write(changes_of([], removed=names[:-1], sequence=2))
    sink.flush()
    assert rows_by_id(tmp_path).keys() == {names[-1], "stays"}
    sink.write(changes_of([], removed=names[-1:], sequence=3))
    sink.close()
    assert rows_by_id(tmp_path).keys() == {"stays"}


def test_lance_sink_of_session_has_same_vertices_and_neighbors_as_model(tmp_path):
    edges = planted_partition(communities=3, size=40, seed=1).edges
    path, address = tmp_path / "edges.csv", f"lancedb://{tmp_path}/a%20store?table=vertices"
    path.write_text("".join(f"{a},{b}\n" for a, b in edges.tolist()))
    with Session(tmp_path / "state", dim=8, change_threshold=0.0) as session:
        source, sink = stream_from(path, batch_size=50), sink_to(address)
        session.run(source, [sink])
        source.close()
        assert_in_sync(tmp_path / "a store", session.model)
        for name in (0, 50, 100):
            vector = session.model[name]
            store = table(tmp_path / "a store").search(vector).distance_type("cosine").limit(11).to_list()
            store_cosines = {int(row["id"]): 1 - row["_distance"] for row in store}
            model_cosines = dict(session.model.nearest(name, 10))
            assert store_cosines.keys() == model_cosines.keys() | {name}
            assert store_cosines == pytest.approx(model_cosines | {name: 1.0}, abs=1e-5)
        removal = Batch.vertices([0, 1, 2], Op.REMOVE_VERTEX)
        sink.write(session.apply(removal))
        sink.close()
        assert_in_sync(tmp_path / "a store", session.model)


def test_lance_sink_synchronize_writes_missing_changes_once(tmp_path):
    model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", 1), ("c", "d")])
    sink = LanceSink(tmp_path)
    assert sink.synchronize(model) == model.sequence
    assert_in_sync(tmp_path, model)
    model.partial_fit([("e", "a"), ("e", "d")])
    model.remove_vertex(1)
    assert sink.synchronize(model) == model.sequence == 2
    assert_in_sync(tmp_path, model)
    version = table(tmp_path).version
    assert LanceSink(tmp_path).synchronize(model) == 2
    assert table(tmp_path).version == version  # nothing was written


def test_lance_search_never_returns_vertex_without_vector(tmp_path):
    model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "d")])
    model.add_vertex("alone")
    LanceSink(tmp_path).synchronize(model)
    rows = table(tmp_path).search(model["a"]).distance_type("cosine").limit(10).to_list()
    assert {row["id"] for row in rows} == {"a", "b", "c", "d"}
    assert "alone" in rows_by_id(tmp_path)


def test_lance_sink_with_many_rows_writes_without_flush(tmp_path, changes_of, monkeypatch):
    monkeypatch.setattr(vector_store, "MAX_QUEUED_ROWS", 2)
    LanceSink(tmp_path).write(changes_of(["a", "b"]))
    assert rows_by_id(tmp_path).keys() == {"a", "b"}


def test_lance_sink_after_many_flushes_compacts_fragments(tmp_path, changes_of, monkeypatch):
    monkeypatch.setattr(lance, "FLUSHES_PER_COMPACTION", 8)
    sink = LanceSink(tmp_path)
    fragments = []
    for number in range(8):
        sink.write(changes_of([number], sequence=number + 1))
        sink.flush()
        fragments.append(table(tmp_path).stats()["fragment_stats"]["num_fragments"])
    assert fragments[6] == 7
    assert fragments[7] == 1
    assert rows_by_id(tmp_path).keys() == set(range(8))


def test_lance_sink_with_foreign_table_raises(tmp_path, changes_of):
    lancedb.connect(tmp_path).create_table("vertices", [{"id": "a", "vector": [1.0, 2.0]}])
    sink = LanceSink(tmp_path)
    sink.write(changes_of(["a"]))
    with pytest.raises(InvalidValueError, match="table vertices, integer: expected bool, got 'a table without it'"):
        sink.flush()
    other = LanceSink(tmp_path, table="other")
    other.write(changes_of(["a"]))
    other.flush()
    with pytest.raises(InvalidValueError, match=r"table other, vector: expected fixed_size_list<.*>\[2\], got .*\[3\]"):
        LanceSink(tmp_path, table="other").synchronize(Embedder(dim=2).fit([(1, 2)]))


def test_lance_sink_without_library_names_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[lancedb\]"):
        LanceSink(tmp_path)
