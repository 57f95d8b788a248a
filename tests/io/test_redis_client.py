from __future__ import annotations

import sys

import pytest

from ripplevec.errors import MissingExtraError
from ripplevec.io.redis_client import (
    RESPONSE_TIMEOUT,
    access_denied_error,
    connection_errors,
    create_redis_client,
    is_access_denied,
    server_address,
)


def test_create_redis_client_without_library_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"Redis needs an optional dependency: .*pip install .*\[redis\]"):
        create_redis_client("redis://localhost")


def test_create_redis_client_does_not_retry_commands_and_limits_waiting():
    client = create_redis_client("redis://localhost")
    assert client.connection_pool.connection_kwargs["retry"].get_retries() == 0
    assert client.connection_pool.connection_kwargs["socket_timeout"] == RESPONSE_TIMEOUT


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://me:secret@127.0.0.1:7/3", "redis://127.0.0.1:7/3"),
        ("redis://localhost", "redis://localhost:6379/0"),
        ("unix:///tmp/redis.sock?db=2", "redis:///tmp/redis.sock/2"),
    ],
)
def test_server_address_has_no_credentials(url, address):
    assert server_address(create_redis_client(url)) == address


def test_access_denied_error_names_server_without_credentials():
    redis = pytest.importorskip("redis", reason="not installed: pip install '.[redis]'")
    denied = redis.AuthenticationError("wrong password")
    assert is_access_denied(denied)
    assert not is_access_denied(redis.ConnectionError("connection lost"))
    assert isinstance(denied, connection_errors())
    error = access_denied_error(create_redis_client("redis://me:secret@localhost"), denied)
    assert str(error) == "redis://localhost:6379/0 denied access: wrong password. Check the user and the password."
