"""The key of a batch: a name under which it can be sent again and is applied once."""

from __future__ import annotations

from typing import Any

from ripplevec.errors import InvalidValueError

LONGEST_KEY = 256
"""In characters, wherever a key comes in."""


def check_key(key: Any) -> None:
    """Refuse what cannot be a key; None is no key, which is fine."""
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and _is_text(key)):
        raise InvalidValueError.of("key", f"text of 1 to {LONGEST_KEY} characters", key)


def _is_text(key: str) -> bool:
    """Whether it can be written as UTF-8; half of a character cannot."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
