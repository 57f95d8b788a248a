"""Synchronization of a vector store with the model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pytest

from ripplevec import Session
from ripplevec.errors import InvalidValueError
from ripplevec.io.sinks.lance import LanceSink
from ripplevec.service import vector_store_sync
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings
from ripplevec.service.vector_store_sync import VectorStoreSync


def stored_vectors(directory: Path) -> dict[Any, list[float]]:
    database = lancedb.connect(directory)
    if "vertices" not in database.list_tables().tables:
        return {}
    try:
        table = database.open_table("vertices")
    except ValueError as error:  # its folder is listed before its first version is written
        if "was not found" not in str(error):
            raise
        return {}
    rows = table.to_arrow().to_pylist()
    return {int(row["id"]) if row["integer"] else row["id"]: row["vector"] for row in rows}


def is_in_sync(directory: Path, model: Any) -> bool:
    found = stored_vectors(directory)
    if found.keys() != set(model.ids):
        return False
    return np.array_equal(np.array([found[name] for name in model.ids], np.float32), model.to_numpy())


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_store_sync_follows_the_model_across_restarts(start: Any, tmp_path: Path) -> None:
    directory = tmp_path / "store"
    service = start(sink=f"lancedb://{directory}")
    assert service.edges(["a", "b"], ["b", "c"], ["c", 1]).status_code == 200
    wait_until(lambda: is_in_sync(directory, service.runtime.model))
    assert service.http.delete("/v1/vertices/b").status_code == 200
    assert service.edges(["d", "c"]).status_code == 200
    service.stop()
    assert stored_vectors(directory).keys() == {"a", "c", 1, "d"}
    service = start()  # without the store
    assert service.edges(["e", "a"], ["e", "d"]).status_code == 200
    service.stop()
    service = start(sink=f"lancedb://{directory}")
    wait_until(lambda: is_in_sync(directory, service.runtime.model))
    assert "e" in stored_vectors(directory)
    assert "ripplevec_sink_batches 0.0" in service.http.get("/metrics").text


def test_store_sync_follows_the_model_in_qdrant(start: Any, tmp_path: Path) -> None:
    qdrant_client = pytest.importorskip("qdrant_client", reason="not installed: pip install qdrant-client")
    address = f"qdrant://{tmp_path}/qdrant?distance=euclid"
    ring = [[f"r{vertex}", f"r{(vertex + step) % 40}"] for vertex in range(40) for step in (1, 2, 5)]
    for edges in (ring, [["new", "r1"], ["new", "r2"], [7, "new"]]):  # with a restart between the two
        service = start(sink=address, parameters={"dim": 8, "threads": 1, "change_threshold": 0.0})
        assert service.edges(*edges).status_code == 200
        assert service.http.delete(f"/v1/vertices/{edges[-1][1]}").status_code == 200
        ids, vectors = service.runtime.model.ids, service.runtime.model.to_numpy()
        service.stop()  # writes what is pending, and closes the store
        client = qdrant_client.QdrantClient(path=str(tmp_path / "qdrant"))
        points, _ = client.scroll("vertices", limit=1000, with_vectors=True)
        client.close()
        found = {point.payload["id"]: point.vector for point in points}
        assert found.keys() == set(ids)
        assert np.array_equal(np.array([found[name] for name in ids], np.float32), vectors)


def test_store_sync_invalid_address_stops_the_service(tmp_path: Path) -> None:
    server = Server(Settings(state=tmp_path / "state", port=0, sink="changes.jsonl"))
    server.run()
    assert isinstance(server.failure, InvalidValueError)
    assert "lancedb://DIRECTORY" in str(server.failure)


def test_store_sync_after_failure_fills_the_store_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[str] = []
    monkeypatch.setattr(vector_store_sync, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(vector_store_sync, "log_event", lambda message, level, reason, **more: failures.append(reason))
    directory = tmp_path / "store"
    with Session(tmp_path / "state", dim=4) as session:
        session.apply([("a", "b"), ("b", "c")])
        sync = VectorStoreSync(session, LanceSink(directory))
        wait_until(lambda: is_in_sync(directory, session.model))
        (directory / "vertices.lance").rename(tmp_path / "aside")
        (directory / "vertices.lance").write_text("no table")
        session.apply([("d", "a"), ("d", "c")])
        wait_until(lambda: failures)
        (directory / "vertices.lance").unlink()
        (tmp_path / "aside").rename(directory / "vertices.lance")
        wait_until(lambda: is_in_sync(directory, session.model))
        sync.close()


def test_store_sync_with_too_many_pending_rows_fills_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_store_sync, "MAX_PENDING_ROWS", 3)
    filled = []
    synchronize = LanceSink.synchronize
    monkeypatch.setattr(
        LanceSink, "synchronize", lambda sink, model: filled.append(model.sequence) or synchronize(sink, model)
    )
    with Session(tmp_path / "state", dim=4) as session:
        sync = VectorStoreSync(session, LanceSink(tmp_path / "store"))
        for number in range(5):
            session.apply([(number, number + 1), (number, "hub"), (number, "other")])
        sync.close()
        assert is_in_sync(tmp_path / "store", session.model)
        assert len(filled) >= 2
