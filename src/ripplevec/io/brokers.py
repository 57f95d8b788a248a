"""Connections to Kafka and Redis: clients with our settings, and retries while a broker is unreachable.

Options and addresses call the limit `patience`: the seconds after which an unreachable broker is an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ripplevec.errors import InvalidValueError, MissingExtraError, RipplevecError

if TYPE_CHECKING:
    from redis import Redis

log = logging.getLogger(__name__)

INITIAL_DELAY, MAX_DELAY = 0.05, 5.0

DEFAULT_PATIENCE = 60.0
"""Seconds after which an unreachable broker is an error for a caller that waits for it."""

T = TypeVar("T")


class UnreachableError(RipplevecError, ConnectionError):
    """A broker does not answer."""


class Backoff:
    """Delays between polls: each is twice as long as the one before, up to a limit.

    The poll loop of a source returns between two attempts, so a retried call, as `retry` makes it, cannot replace it.
    """

    def __init__(self) -> None:
        self._delay = INITIAL_DELAY

    def next_delay(self) -> float:
        """Return the seconds to wait now."""
        delay, self._delay = self._delay, min(2 * self._delay, MAX_DELAY)
        return delay

    def reset(self) -> None:
        """Start again with a short delay after a success."""
        self._delay = INITIAL_DELAY


class OutageTimer:
    """Measures how long a broker has been unreachable; raises once `patience` seconds have passed."""

    def __init__(self, name: str, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._patience, self._clock = name, patience, clock
        self._since: float | None = None

    def record_success(self) -> None:
        """Record that the broker answered."""
        self._since = None

    def record_failure(self, error: Exception) -> None:
        """Record that the broker did not answer; raise `UnreachableError` if the outage has lasted too long."""
        now = self._clock()
        if self._since is None:
            self._since = now
            log_unreachable(self._name, error)
        if now - self._since >= self._patience:
            raise _unreachable_error(self._name, self._patience, error) from error


def retry(action: Callable[[], T], failures: tuple[type[Exception], ...], patience: float, name: str) -> T:
    """Call the action until it succeeds; raise `UnreachableError` once `patience` seconds have passed."""
    try:
        from tenacity import RetryCallState, Retrying

        from ripplevec.util.retry_policy import RetryPolicy, last_error
    except ImportError as error:
        raise MissingExtraError("Redis", "redis") from error

    def log_first_failure(state: RetryCallState) -> None:
        if state.attempt_number == 1:
            log_unreachable(name, last_error(state))

    policy = RetryPolicy(
        is_temporary=lambda error: isinstance(error, failures),
        initial_delay=INITIAL_DELAY,
        max_delay=MAX_DELAY,
        time_limit=patience,
    )
    try:
        return Retrying(**policy.arguments(), before_sleep=log_first_failure)(action)
    except failures as error:
        raise _unreachable_error(name, patience, error) from error


def log_unreachable(name: str, error: object) -> None:
    """Log that a broker is unreachable and that the operation will be retried."""
    log.warning("broker unreachable, retrying broker=%s error=%s", name, error)


def _unreachable_error(name: str, patience: float, error: Exception) -> UnreachableError:
    return UnreachableError(f"{name} has not answered for {patience:g} s: {error}")


def import_confluent_kafka() -> Any:
    """Return the module `confluent_kafka`; raise `MissingExtraError` if it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise MissingExtraError("Kafka", "kafka") from error
    return confluent_kafka


def create_kafka_client(class_name: str, servers: str, config: dict[str, Any] | None, **defaults: Any) -> Any:
    """Create a Consumer or a Producer; the settings in `config` override the defaults."""
    kafka = import_confluent_kafka()
    settings = {
        "bootstrap.servers": servers,
        "error_cb": log_client_error,
        "logger": log,
        **defaults,
        **(config or {}),
    }
    try:
        return getattr(kafka, class_name)(settings)
    except kafka.KafkaException as error:
        raise InvalidValueError(f"Kafka: expected settings that librdkafka knows: {error.args[0].str()}") from error


def log_client_error(error: Any) -> None:
    """Log an error that librdkafka reports; it reconnects by itself."""
    log.warning("Kafka client error, reconnecting error=%s", error)


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
