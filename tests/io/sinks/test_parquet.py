from __future__ import annotations

import numpy as np
import pyarrow.dataset as ds
import pytest

from ripplevec.io.sinks import parquet
from ripplevec.io.sinks.parquet import ParquetSink


def table(folder):
    return ds.dataset(folder, partitioning="hive").to_table().sort_by("sequence")


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_parquet_sink_flush_writes_new_file(tmp_path, changes_of):
    folder = tmp_path / "a" / "changes"
    batches = [
        changes_of([1, 2], sequence=1),
        changes_of([], sequence=2),
        changes_of(["x"], removed=[1], sequence=3),
        changes_of(["1"], sequence=4, anchored=True),
    ]
    sink = ParquetSink(folder)
    for batch in batches[:3]:
        sink.write(batch)
    assert files(folder) == []
    sink.flush()
    sink.flush()
    sink.write(batches[3])
    sink.close()
    assert files(folder) == [
        "changes-000000000001-000000000003.parquet",
        "changes-000000000004-000000000004.parquet",
    ]
    rows = table(folder).to_pylist()
    assert [(row["sequence"], row["id"], row["integer"], row["removed"]) for row in rows] == [
        (1, "1", True, False),
        (1, "2", True, False),
        (3, "x", False, False),
        (3, "1", True, True),
        (4, "1", False, False),
    ]
    assert [row["arrived"] for row in rows] == [True, False, True, False, True]
    assert [row["anchored"] for row in rows] == [False] * 4 + [True]
    assert rows[3]["vector"] is None
    assert np.array_equal(np.array([row["vector"] for row in rows[:2]], np.float32), batches[0].vectors)
    (day,) = folder.iterdir()
    assert day.name.startswith("day=2")


def test_parquet_sink_with_repeated_changes_keeps_both_files(tmp_path, changes_of):
    for _ in range(2):
        sink = ParquetSink(tmp_path)
        sink.write(changes_of(["a"], sequence=5))
        sink.close()
    assert len(files(tmp_path)) == 2
    assert table(tmp_path)["sequence"].to_pylist() == [5, 5]


def test_parquet_sink_with_many_rows_writes_without_flush(tmp_path, changes_of, monkeypatch):
    monkeypatch.setattr(parquet, "MAX_QUEUED_ROWS", 2)
    sink = ParquetSink(tmp_path)
    sink.write(changes_of(["a", "b"]))
    assert len(files(tmp_path)) == 1


def test_parquet_sink_after_failed_write_leaves_no_file_and_retries(tmp_path, changes_of, monkeypatch):
    sink = ParquetSink(tmp_path)
    sink.write(changes_of(["a"]))
    with monkeypatch.context() as broken:
        broken.setattr(parquet.pq, "write_table", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            sink.flush()
    assert files(tmp_path) == []
    sink.close()
    assert len(files(tmp_path)) == 1
