"""What is special about the Qdrant sink; test_vector_store.py tests what all vector stores have in common."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError
from ripplevec.errors import MissingExtraError
from ripplevec.install_hint import install_command
from ripplevec.io.sinks import qdrant
from ripplevec.io.sinks.qdrant import QdrantSink, point_id

qdrant_client = pytest.importorskip("qdrant_client", reason="not installed: pip install qdrant-client")


def test_qdrant_sink_finds_the_same_neighbors_as_the_model(tmp_path: Path) -> None:
    ring = [(vertex, (vertex + step) % 60) for vertex in range(60) for step in (1, 2, 5)]
    model = Embedder(dim=8, threads=1).fit(ring)
    sink = QdrantSink(str(tmp_path / "store"))
    sink.synchronize(model)
    sink.close()
    client = qdrant_client.QdrantClient(path=str(tmp_path / "store"))
    found = client.query_points("vertices", query=point_id(7), limit=5).points  # a point is not its own neighbor
    client.close()
    assert np.allclose([point.score for point in found], [cosine for _, cosine in model.nearest(7, 5)], atol=1e-5)


def test_qdrant_sink_sends_large_changes_in_parts(
    tmp_path: Path, changes_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant, "_POINTS_PER_REQUEST", 7)
    names = [f"v{number}" for number in range(30)]
    sink = QdrantSink(str(tmp_path / "store"))
    sink.write(changes_of(names, sequence=1))
    sink.flush()
    sink.write(changes_of([], removed=names[:20], sequence=2))
    sink.flush()
    assert set(sink._read_point_ids()) == {point_id(name) for name in names[20:]}
    sink.close()


def test_qdrant_sink_collection_with_another_distance_is_refused(tmp_path: Path, changes_of: Any) -> None:
    for distance, refused in (("cosine", False), ("euclid", True)):
        sink = QdrantSink(str(tmp_path / "store"), distance=distance)
        sink.write(changes_of(["a"], sequence=1))
        if refused:
            with pytest.raises(InvalidValueError, match="distance euclid, got '3 dimensions, distance cosine'"):
                sink.flush()
            sink._queued = {}
        sink.close()


def test_qdrant_point_id_distinguishes_integers_from_text() -> None:
    assert point_id(7) != point_id("7")
    assert point_id(7) == point_id(7)


@pytest.mark.parametrize(("option", "value"), [("distance", "manhattan"), ("https", "perhaps")])
def test_qdrant_sink_with_invalid_option_is_refused(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(InvalidValueError, match=option):
        QdrantSink(str(tmp_path / "store"), **{option: value})


def test_qdrant_sink_without_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError) as error:
        QdrantSink("localhost:6333")
    assert install_command("qdrant") in str(error.value)
