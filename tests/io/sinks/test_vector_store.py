"""Contract of all vector stores: one row per vertex with its current vector, exactly as in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import lancedb
import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError, Session
from ripplevec.io import sink_to, stream_from
from ripplevec.io.sinks import vector_store
from ripplevec.lab.datasets.synthetic import planted_partition

Rows = dict[Any, tuple[int, list[float]]]


class LanceStore:
    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder / "store", f"lancedb://{folder}/store"

    def rows(self) -> Rows:
        rows = lancedb.connect(self.folder).open_table("vertices").to_arrow().to_pylist()
        return {int(row["id"]) if row["integer"] else row["id"]: (row["sequence"], row["vector"]) for row in rows}


class PgvectorStore:
    def __init__(self, server: str, table: str) -> None:
        self.server, self.table = server, table
        self.address = f"{server}{'&' if '?' in server else '?'}table={table}"

    def rows(self) -> Rows:
        import psycopg

        with psycopg.connect(self.server) as connection:
            query = f"SELECT id, integer, sequence, vector::text FROM {self.table}"  # type: ignore[arg-type]
            rows = connection.execute(query).fetchall()
        return {
            int(name) if integer else name: (sequence, [float(value) for value in vector[1:-1].split(",")])
            for name, integer, sequence, vector in rows
        }


class QdrantStore:
    def __init__(self, folder: Path) -> None:
        self.folder, self.address = str(folder / "qdrant"), f"qdrant://{folder}/qdrant?distance=euclid"

    def rows(self) -> Rows:
        from qdrant_client import QdrantClient

        client = QdrantClient(path=self.folder)
        points, _ = client.scroll("vertices", limit=10_000, with_vectors=True)
        client.close()
        return {point.payload["id"]: (point.payload["sequence"], point.vector) for point in points}


@pytest.fixture(params=["lancedb", "postgresql", "qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "lancedb":
        return LanceStore(tmp_path)
    if request.param == "qdrant":
        pytest.importorskip("qdrant_client", reason="not installed: pip install qdrant-client")
        return QdrantStore(tmp_path)
    return PgvectorStore(request.getfixturevalue("postgres_server"), f"vertices_{uuid4().hex}")


@pytest.fixture
def open_sink(store: Any) -> Iterator[Callable[[], Any]]:
    """Open the store; it is closed before the next time, and at the end."""
    sinks: list[Any] = []

    def open_one() -> Any:
        for sink in sinks:
            sink.close()
        sinks[:] = [sink_to(store.address)]
        return sinks[0]

    yield open_one
    for sink in sinks:
        sink.close()


def assert_in_step(rows: Rows, model: Any) -> None:
    assert rows.keys() == set(model.ids)
    vectors = np.array([rows[name][1] for name in model.ids], np.float32)
    assert np.array_equal(vectors, model.to_numpy())


def test_vector_store_keeps_one_row_per_vertex_with_last_vector(
    store: Any, open_sink: Callable[[], Any], changes_of: Any
) -> None:
    first, second = changes_of(["a", 1, "1"], sequence=1), changes_of(["a", "b"], removed=[1], sequence=2)
    for changes in (first, second, second):  # repeated as after a crash
        sink = open_sink()
        sink.write(changes)
        sink.close()
    rows = store.rows()
    assert {name: sequence for name, (sequence, _) in rows.items()} == {"a": 2, "1": 1, "b": 2}
    assert np.array_equal(np.array([rows["a"][1], rows["b"][1]], np.float32), second.vectors)
    assert np.array_equal(np.array(rows["1"][1], np.float32), first.vectors[2])


def test_vector_store_flush_applies_last_change_of_each_vertex(
    store: Any, open_sink: Callable[[], Any], changes_of: Any
) -> None:
    sink = open_sink()
    sink.write(changes_of([], removed=["never there"], sequence=1))
    sink.flush()
    sink.write(changes_of(["a", "b"], sequence=2))
    sink.write(changes_of([], removed=["a", "b"], sequence=3))
    sink.write(changes_of(["b"], sequence=4))
    sink.close()
    assert {name: sequence for name, (sequence, _) in store.rows().items()} == {"b": 4}


def test_vector_store_with_unusual_ids_inserts_and_deletes_them(
    store: Any, open_sink: Callable[[], Any], changes_of: Any
) -> None:
    names = ["it's", "''", "a\\'b", "-- x", "%", "a\nb", "日本", "x" * 500, 7, "7", "') OR true --", "\t\\N", "{a,b}"]
    sink = open_sink()
    sink.write(changes_of([*names, "stays"], sequence=1))
    sink.close()
    assert store.rows().keys() == {*names, "stays"}
    sink = open_sink()
    sink.write(changes_of([], removed=names, sequence=2))
    sink.close()
    assert store.rows().keys() == {"stays"}


def test_vector_store_queue_is_bounded(
    store: Any, open_sink: Callable[[], Any], changes_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_store, "MAX_QUEUED_ROWS", 2)
    sink = open_sink()
    sink.write(changes_of(["a"], sequence=1))
    assert sink._queued
    sink.write(changes_of(["b"], sequence=2))
    assert not sink._queued
    sink.close()
    assert store.rows().keys() == {"a", "b"}


def test_vector_store_of_session_has_the_vectors_of_the_model_after_corrections(
    store: Any, open_sink: Callable[[], Any], tmp_path: Path
) -> None:
    edges = planted_partition(communities=3, size=40, seed=1).edges
    lines = [*(f"{a},{b},\n" for a, b in edges.tolist()), *(f"{vertex},,remove_vertex\n" for vertex in range(5))]
    (tmp_path / "edges.csv").write_text("src,dst,op\n" + "".join(lines))
    parameters = {"dim": 4, "change_threshold": 0.0, "anchor_pace": "immediate", "start_size": 20}
    with Session(tmp_path / "state", **parameters) as session:
        source, sink = stream_from(tmp_path / "edges.csv", batch_size=50), open_sink()
        session.run(source, [sink])
        source.close()
        sink.close()
        assert session.model.engine.anchors > 1, "the stream must contain corrections of all vectors"
        assert_in_step(store.rows(), session.model)


def test_vector_store_synchronize_writes_missing_and_deletes_other_rows(
    store: Any, open_sink: Callable[[], Any], changes_of: Any
) -> None:
    edges = planted_partition(communities=3, size=40, seed=1).edges
    model = Embedder(dim=changes_of(["a"]).vectors.shape[1], anchor_pace="immediate", start_size=20)
    model.partial_fit(edges[:100])
    sink = open_sink()
    sink.write(changes_of(["other", 0], sequence=1))
    sink.flush()
    sink.write(changes_of(["queued"], sequence=2))
    assert sink.synchronize(model) == model.sequence
    sink.close()
    assert_in_step(store.rows(), model)
    model.partial_fit(edges[100:])
    sink = open_sink()
    assert sink.synchronize(model) == model.sequence
    sink.close()
    assert_in_step(store.rows(), model)


def test_vector_store_with_another_dimension_is_refused(
    store: Any, open_sink: Callable[[], Any], changes_of: Any
) -> None:
    sink = open_sink()
    sink.write(changes_of(["a"], sequence=1))
    sink.flush()
    model = Embedder(dim=7)
    model.partial_fit([("a", "b")])
    with pytest.raises(InvalidValueError, match=r"expected .*7"):
        sink.synchronize(model)
