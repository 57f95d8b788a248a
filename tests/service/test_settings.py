"""Settings of a service."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.service.security import Tokens
from ripplevec.service.settings import Settings, is_loopback

STATE = Path("state")
TOKENS = Tokens.of(["a-token-of-some-length"])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_is_loopback_local_addresses_are_allowed_hosts(host: str) -> None:
    assert is_loopback(host)
    assert host in (Settings(state=STATE, host=host).allowed_hosts or ())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org", ""])
def test_is_loopback_other_addresses_are_not(host: str) -> None:
    assert not is_loopback(host)


def test_allowed_hosts_depend_on_the_address() -> None:
    assert Settings(state=STATE).allowed_hosts == {"localhost", "127.0.0.1", "::1"}
    assert Settings(state=STATE, host="0.0.0.0", tokens=TOKENS).allowed_hosts is None
    assert Settings(state=STATE, host="10.0.0.1", tokens=TOKENS, hosts=frozenset({"g"})).allowed_hosts == {
        "g",
        "10.0.0.1",
    }


@pytest.mark.parametrize("option", [{"max_delay_ms": -1}, {"max_delay_ms": float("nan")}, {"max_batch": 0}])
def test_settings_invalid_values_are_rejected(option: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(option))):
        Settings(state=STATE, **option)  # type: ignore[arg-type]
