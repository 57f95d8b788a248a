from __future__ import annotations

import pytest

from ripplevec.durability.journal import JournalEntry, validate_entry
from ripplevec.errors import InvalidValueError
from ripplevec.io.idempotency_key import LONGEST_KEY, check_key
from ripplevec.io.messages import MessageError, checked_key


@pytest.mark.parametrize("key", [None, "k", "x" * LONGEST_KEY, "é" * LONGEST_KEY])
def test_a_key_that_one_takes_all_take(key):
    check_key(key)
    validate_entry(JournalEntry(None, key))
    assert checked_key(key) == key


@pytest.mark.parametrize("key", ["", 1, b"k", "x" * (LONGEST_KEY + 1), "é" * (LONGEST_KEY + 1), "\ud800"])
def test_a_key_that_one_refuses_all_refuse(key):
    said = r"^key: expected text of 1 to 256 characters, got "
    with pytest.raises(InvalidValueError, match=said):
        check_key(key)
    with pytest.raises(InvalidValueError, match=said):
        validate_entry(JournalEntry(None, key))
    with pytest.raises(MessageError, match=said):
        checked_key(key)
