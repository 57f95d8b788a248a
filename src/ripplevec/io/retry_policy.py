"""Retries while a broker is unreachable: growing delays, and an error after a time limit.

The limit is called `patience` in options and addresses: the seconds after which an unreachable broker is an error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ripplevec.errors import RipplevecError

log = logging.getLogger(__name__)

INITIAL_DELAY, MAX_DELAY = 0.05, 5.0

DEFAULT_PATIENCE = 60.0
"""Seconds after which an unreachable broker is an error for a caller that waits for it."""

T = TypeVar("T")


class UnreachableError(RipplevecError, ConnectionError):
    """A broker does not answer."""


class Backoff:
    """Delays between retries: each is twice as long as the one before, up to a limit."""

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
    backoff, deadline, logged = Backoff(), time.monotonic() + patience, False
    while True:
        try:
            return action()
        except failures as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _unreachable_error(name, patience, error) from error
            if not logged:
                log_unreachable(name, error)
            logged = True
            time.sleep(min(backoff.next_delay(), left))


def log_unreachable(name: str, error: object) -> None:
    """Log that a broker is unreachable and that the operation will be retried."""
    log.warning("broker unreachable, retrying broker=%s error=%s", name, error)


def _unreachable_error(name: str, patience: float, error: Exception) -> UnreachableError:
    return UnreachableError(f"{name} has not answered for {patience:g} s: {error}")
