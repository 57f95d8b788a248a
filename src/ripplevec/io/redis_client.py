"""Connections to Redis that never repeat a command by themselves: what was lost must be known to be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripplevec.errors import MissingExtraError
from ripplevec.io.retry_policy import UnreachableError

if TYPE_CHECKING:
    from redis import Redis

RESPONSE_TIMEOUT = 30.0
"""Seconds within which Redis must answer, beyond those that it was asked to wait."""


def create_redis_client(url: str) -> Redis:
    """A client for an address like redis://user:password@host:6379/0; it connects when first used."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise MissingExtraError("Redis", "redis") from error
    return redis.Redis.from_url(url, protocol=2, socket_timeout=RESPONSE_TIMEOUT, retry=Retry(NoBackoff(), 0))


def connection_errors() -> tuple[type[Exception], ...]:
    """The errors that say that Redis is not there now, and may be later."""
    from redis.exceptions import ConnectionError, ReadOnlyError, TimeoutError

    return ConnectionError, TimeoutError, ReadOnlyError  # the last: while another server takes over


def is_access_denied(error: Exception) -> bool:
    """Whether Redis is there and does not let us in: waiting will not help."""
    from redis.exceptions import AuthenticationError, AuthorizationError

    return isinstance(error, AuthenticationError | AuthorizationError)


def server_address(client: Redis) -> str:
    """Where a client connects to, without passwords."""
    settings: dict[str, Any] = client.connection_pool.connection_kwargs
    place = settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
    return f"redis://{place}/{settings.get('db') or 0}"


def access_denied_error(client: Redis, error: Exception) -> UnreachableError:
    """The error for a client that is not let in."""
    return UnreachableError(f"{server_address(client)} does not let us in: {error}")
