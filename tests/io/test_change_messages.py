from __future__ import annotations

import json

import numpy as np
import pytest

from ripplet.changes import Changes
from ripplet.events import id_column
from ripplet.io.change_messages import MESSAGE_BYTES, change_message, change_messages


@pytest.fixture
def changes(changes_of):
    return changes_of(["a", 2], removed=["c"], sequence=7, anchored=True)


def test_the_form_of_a_message(changes):
    (text,) = change_messages(changes)
    message = json.loads(text)
    assert message == change_message(changes)
    assert list(message) == ["sequence", "anchored", "changes", "removed"]
    assert (message["sequence"], message["anchored"], message["removed"]) == (7, True, ["c"])
    assert [list(row) for row in message["changes"]] == [["id", "vector", "arrived"]] * 2
    assert [row["id"] for row in message["changes"]] == ["a", 2]
    assert np.array_equal(np.array([row["vector"] for row in message["changes"]], np.float32), changes.vectors)
    assert [row["arrived"] for row in message["changes"]] == [True, False]


def test_nothing_changed_is_a_message_too(changes_of):
    (text,) = change_messages(changes_of([], sequence=3))
    assert json.loads(text) == {"sequence": 3, "anchored": False, "changes": [], "removed": []}


def test_many_changes_come_in_parts_of_bounded_size():
    names = [f"{number:01024}" for number in range(600)]
    vectors = np.random.default_rng(0).normal(size=(600, 128)).astype(np.float32) * 1e-20
    changes = Changes(id_column(names), np.arange(600), lambda rows: vectors, np.zeros(600, bool), ["gone"], 1, False)
    texts = list(change_messages(changes))
    messages = [json.loads(text) for text in texts]
    assert len(messages) > 1
    assert max(map(len, texts)) <= MESSAGE_BYTES
    assert [row["id"] for message in messages for row in message["changes"]] == names
    assert [(message["part"], message["parts"]) for message in messages] == [(i, len(texts)) for i in range(len(texts))]
    assert [message["removed"] for message in messages] == [[]] * (len(texts) - 1) + [["gone"]]
