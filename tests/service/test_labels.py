from __future__ import annotations

from pathlib import Path

import pytest

import ripplet.service.labels as module
from ripplet.service.answers import Refused
from ripplet.service.labels import Labels


def test_labels_are_kept_by_id_of_either_kind(tmp_path: Path) -> None:
    labels = Labels(tmp_path / "labels.sqlite")
    assert labels.put([("1", "text"), (1, "integer"), ("gone", "x"), (2**70, "large")]) == 4
    assert labels.put([("gone", None), ("never", None)]) == 3
    labels.close()
    labels = Labels(tmp_path / "labels.sqlite")
    assert [labels.get(name) for name in ("1", 1, "gone", 2**70)] == ["text", "integer", None, "large"]
    assert len(labels) == 3
    labels.close()


def test_there_is_an_end_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LABELS", 2)
    labels = Labels(tmp_path / "labels.sqlite")
    labels.put([("a", "x"), ("b", "y")])
    with pytest.raises(Refused) as refused:
        labels.put([("c", "z")])
    assert refused.value.status == 413
    assert len(labels) == 2
    labels.close()


def test_those_who_keep_a_copy_see_that_it_changed(tmp_path: Path) -> None:
    labels = Labels(tmp_path / "labels.sqlite")
    before = labels.version
    labels.put([("a", "x")])
    assert labels.version > before
    labels.close()
