from __future__ import annotations

import json

import numpy as np
import pytest

from ripplevec.batch import id_column
from ripplevec.changes import Changes
from ripplevec.io.change_messages import MAX_MESSAGE_BYTES, changes_to_dict, encode_change_messages


@pytest.fixture
def changes(changes_of):
    return changes_of(["a", 2], removed=["c"], sequence=7, anchored=True)


def test_change_message_has_documented_keys(changes):
    (text,) = encode_change_messages(changes)
    message = json.loads(text)
    assert message == changes_to_dict(changes)
    assert list(message) == ["sequence", "anchored", "changes", "removed"]
    assert (message["sequence"], message["anchored"], message["removed"]) == (7, True, ["c"])
    assert [list(row) for row in message["changes"]] == [["id", "vector", "arrived"]] * 2
    assert [row["id"] for row in message["changes"]] == ["a", 2]
    assert np.array_equal(np.array([row["vector"] for row in message["changes"]], np.float32), changes.vectors)
    assert [row["arrived"] for row in message["changes"]] == [True, False]


def test_change_message_without_changes_is_sent(changes_of):
    (text,) = encode_change_messages(changes_of([], sequence=3))
    assert json.loads(text) == {"sequence": 3, "anchored": False, "changes": [], "removed": []}


def in_parts(changes):
    """The messages of a batch that is too large for one."""
    texts = list(encode_change_messages(changes))
    assert len(texts) > 1
    assert max(map(len, texts)) <= MAX_MESSAGE_BYTES
    messages = [json.loads(text) for text in texts]
    assert [(message["part"], message["parts"]) for message in messages] == [(i, len(texts)) for i in range(len(texts))]
    return messages


def many_changes(names, dim, removed):
    vectors = np.random.default_rng(0).normal(size=(len(names), dim)).astype(np.float32) * 1e-20
    rows, arrived = np.arange(len(names)), np.zeros(len(names), bool)
    return Changes(id_column(names), rows, lambda rows: vectors, arrived, removed, 1, False)


def test_change_messages_with_many_changes_are_split():
    names = [f"{number:01024}" for number in range(600)]
    messages = in_parts(many_changes(names, 128, ["gone"]))
    assert [row["id"] for message in messages for row in message["changes"]] == names
    assert [message["removed"] for message in messages] == [[]] * (len(messages) - 1) + [["gone"]]


def test_change_messages_with_many_removals_are_split():
    gone = [f"{number:01024}" for number in range(2000)]
    messages = in_parts(many_changes(["a", "b"], 3, gone))
    assert [row["id"] for message in messages for row in message["changes"]] == ["a", "b"]
    assert [name for message in messages for name in message["removed"]] == gone


@pytest.mark.parametrize("letter", ["\x01", '"', "é", "😀"])
def test_change_messages_with_escaped_ids_stay_within_limit(letter):
    names = [f"{number}{letter * (1000 // len(letter.encode()))}" for number in range(600)]
    messages = in_parts(many_changes(names, 3, names))
    assert [row["id"] for message in messages for row in message["changes"]] == names
    assert [name for message in messages for name in message["removed"]] == names


def test_change_messages_with_oversized_id_give_it_its_own_part(changes_of):
    names = ["a", "x" * 3000, "b"]
    sizes = [len(json.loads(text)["changes"]) for text in encode_change_messages(changes_of(names), size=1000)]
    assert sizes == [1, 1, 1]
