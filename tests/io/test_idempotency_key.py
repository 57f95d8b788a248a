from __future__ import annotations

import pytest

from ripplevec.durability.journal import JournalEntry, validate_entry
from ripplevec.errors import InvalidValueError
from ripplevec.io.messages import MAX_KEY_LENGTH, MessageError, check_idempotency_key, check_message_key


@pytest.mark.parametrize("key", [None, "k", "x" * MAX_KEY_LENGTH, "é" * MAX_KEY_LENGTH])
def test_a_key_that_one_takes_all_take(key):
    check_idempotency_key(key)
    validate_entry(JournalEntry(None, key))
    assert check_message_key(key) == key


@pytest.mark.parametrize("key", ["", 1, b"k", "x" * (MAX_KEY_LENGTH + 1), "é" * (MAX_KEY_LENGTH + 1), "\ud800"])
def test_a_key_that_one_refuses_all_refuse(key):
    said = r"^key: expected text of 1 to 256 characters, got "
    with pytest.raises(InvalidValueError, match=said):
        check_idempotency_key(key)
    with pytest.raises(InvalidValueError, match=said):
        validate_entry(JournalEntry(None, key))
    with pytest.raises(MessageError, match=said):
        check_message_key(key)
