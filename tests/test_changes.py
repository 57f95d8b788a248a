from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, Op
from ripplevec.changes import Changes
from ripplevec.errors import MissingExtraError


def make_changes(calls: list[Any], **changed: Any) -> Changes:
    def to_vectors(rows: Any) -> Any:
        calls.append(len(rows))
        return (2 * rows).astype(np.float32)

    values = {
        "column": np.array([3, 1]),
        "rows": np.ones((2, 4)),
        "to_vectors": to_vectors,
        "arrived": np.array([False, True]),
        "removed": ["x"],
        "sequence": 1234,
        "anchored": False,
    }
    return Changes(**(values | changed))


def test_changes_compute_vectors_once_and_on_first_access() -> None:
    calls: list[Any] = []
    changes = make_changes(calls)
    assert (len(changes), changes.ids, changes.removed, changes.sequence) == (2, [3, 1], ["x"], 1234)
    assert calls == []
    assert changes.vectors.tolist() == [[2] * 4] * 2
    assert changes.vectors is changes.vectors
    assert calls == [2]


def test_changes_repr_counts_vertices() -> None:
    assert repr(make_changes([])) == "Changes(2 vertices, 1 new, 1 removed, sequence 1234)"
    assert repr(make_changes([], anchored=True)).endswith("sequence 1234, anchored)")
    assert type(make_changes([]).ids[0]) is int
    assert make_changes([], column=["a", 1]).ids == ["a", 1]


def test_changes_to_pandas_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    changes = Embedder(dim=2).partial_fit([("a", "b")])
    with pytest.raises(MissingExtraError, match=r"pip install .*\[pandas\]"):
        changes.to_pandas()


def test_changes_to_pandas_has_a_row_per_changed_and_removed_vertex() -> None:
    model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a")])
    changes = model.partial_fit(Batch(["d", "c"], ["b", "c"], op=[Op.ADD, Op.REMOVE_VERTEX]))
    frame = changes.to_pandas()
    assert frame["id"].tolist() == [*changes.ids, "c"]
    assert frame["removed"].tolist() == [False] * len(changes) + [True]
    assert frame.loc[frame["arrived"], "id"].tolist() == ["d"]
    assert np.array_equal(np.stack(frame["vector"][:-1]), changes.vectors)
    assert frame["vector"].iloc[-1] is None
