"""Labels of vertices on disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import ripplevec.service.vertex_labels as module
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.vertex_labels import VertexLabels


def test_labels_persist_for_text_and_integer_ids(tmp_path: Path) -> None:
    labels = VertexLabels(tmp_path / "labels.sqlite")
    assert labels.put([("1", "text"), (1, "integer"), ("gone", "x"), (2**70, "large")]) == 4
    assert labels.put([("gone", None), ("never", None)]) == 3
    labels.close()
    labels = VertexLabels(tmp_path / "labels.sqlite")
    assert [labels.get(name) for name in ("1", 1, "gone", 2**70)] == ["text", "integer", None, "large"]
    assert len(labels) == 3
    labels.close()


def test_labels_beyond_the_limit_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LABELS", 2)
    labels = VertexLabels(tmp_path / "labels.sqlite")
    labels.put([("a", "x"), ("b", "y")])
    with pytest.raises(RejectedRequest) as rejected:
        labels.put([("c", "z")])
    assert rejected.value.status == 413
    assert len(labels) == 2
    labels.close()


def test_labels_version_increases_with_changes(tmp_path: Path) -> None:
    labels = VertexLabels(tmp_path / "labels.sqlite")
    before = labels.version
    labels.put([("a", "x")])
    assert labels.version > before
    labels.close()


@pytest.mark.parametrize("damage", ["text", "page", "json", "link", "column"])
def test_labels_damaged_file_is_moved_aside(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "labels.sqlite"
    labels = VertexLabels(path)
    labels.put((f"v{number}", "x" * 50) for number in range(200))
    labels.close()
    data = bytearray(path.read_bytes())
    if damage == "text":
        path.write_text("no database at all, but long enough to look like one " * 20)
    elif damage == "page":
        data[4096:8192] = bytes(range(256)) * 16
        path.write_bytes(data)
    elif damage == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        with closing(sqlite3.connect(path)) as db:
            statement = (
                "UPDATE labels SET id = 'no json'" if damage == "json" else "ALTER TABLE labels RENAME COLUMN id TO x"
            )
            db.execute(f"{statement} WHERE id = '\"v7\"'" if damage == "json" else statement)
            db.commit()
    labels = VertexLabels(path)
    assert len(labels) == 0
    assert labels.put([("a", "b")]) == 1
    labels.close()
    assert (tmp_path / "labels.sqlite.damaged").exists()
    assert "labels damaged" in caplog.text
    labels = VertexLabels(path)
    assert labels.get("a") == "b"
    labels.close()
