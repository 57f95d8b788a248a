from __future__ import annotations

from typing import Any

import numpy as np

from ripplevec.changes import Changes


def made(calls: list[Any], **changed: Any) -> Changes:
    def serve(rows: Any) -> Any:
        calls.append(len(rows))
        return (2 * rows).astype(np.float32)

    values = {
        "column": np.array([3, 1]),
        "rows": np.ones((2, 4)),
        "to_vectors": serve,
        "arrived": np.array([False, True]),
        "removed": ["x"],
        "sequence": 1234,
        "anchored": False,
    }
    return Changes(**(values | changed))


def test_vectors_are_served_once_and_only_if_asked_for() -> None:
    calls: list[Any] = []
    changes = made(calls)
    assert (len(changes), changes.ids, changes.removed, changes.sequence) == (2, [3, 1], ["x"], 1234)
    assert calls == []
    assert changes.vectors.tolist() == [[2] * 4] * 2
    assert changes.vectors is changes.vectors
    assert calls == [2]


def test_the_summary() -> None:
    assert repr(made([])) == "Changes(2 vertices, 1 new, 1 removed, sequence 1234)"
    assert repr(made([], anchored=True)).endswith("sequence 1234, anchored)")
    assert type(made([]).ids[0]) is int
    assert made([], column=["a", 1]).ids == ["a", 1]
