"""Redis connections without automatic retries, so that the caller knows about every lost command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripplevec.errors import MissingExtraError
from ripplevec.io.retry_policy import UnreachableError

if TYPE_CHECKING:
    from redis import Redis

RESPONSE_TIMEOUT = 30.0
"""Seconds within which Redis must answer, in addition to the time that a command asks it to block."""


def create_redis_client(url: str) -> Redis:
    """Create a client for an address like redis://user:password@host:6379/0; it connects on first use."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise MissingExtraError("Redis", "redis") from error
    return redis.Redis.from_url(url, protocol=2, socket_timeout=RESPONSE_TIMEOUT, retry=Retry(NoBackoff(), 0))


def connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors that mean that Redis is temporarily unavailable."""
    from redis.exceptions import ConnectionError, ReadOnlyError, TimeoutError

    return ConnectionError, TimeoutError, ReadOnlyError  # ReadOnlyError: during a failover to another server


def is_access_denied(error: Exception) -> bool:
    """Return whether Redis answered and denied access, so that retrying is pointless."""
    from redis.exceptions import AuthenticationError, AuthorizationError

    return isinstance(error, AuthenticationError | AuthorizationError)


def access_denied_error(client: Redis, error: Exception) -> UnreachableError:
    """Build the error for denied access."""
    return UnreachableError(f"{server_address(client)} denied access: {error}. Check the user and the password.")


def server_address(client: Redis) -> str:
    """Return the address that a client connects to, without credentials."""
    settings: dict[str, Any] = client.connection_pool.connection_kwargs
    server = settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
    return f"redis://{server}/{settings.get('db') or 0}"
