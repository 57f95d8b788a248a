"""What to do while a broker is away: ask again, after longer and longer pauses, and give up only if told to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ripplevec.errors import RipplevecError

log = logging.getLogger(__name__)

INITIAL_DELAY, MAX_DELAY = 0.05, 5.0
DEFAULT_PATIENCE = 60.0
"""Seconds after which a broker that does not answer is an error, where somebody waits for it."""

T = TypeVar("T")


class UnreachableError(RipplevecError, ConnectionError):
    """A broker does not answer."""


class Backoff:
    """How long to pause before the next try: twice as long each time, up to a limit."""

    def __init__(self) -> None:
        self._pause = INITIAL_DELAY

    def next(self) -> float:
        """Seconds to pause now."""
        pause, self._pause = self._pause, min(2 * self._pause, MAX_DELAY)
        return pause

    def reset(self) -> None:
        """It worked: begin with short pauses again."""
        self._pause = INITIAL_DELAY


class OutageTimer:
    """How long a broker has not answered between deliveries; an error once `patience` seconds have passed."""

    def __init__(self, what: str, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._patience, self._clock = what, patience, clock
        self._since: float | None = None

    def record_success(self) -> None:
        """Record an answer."""
        self._since = None

    def record_failure(self, error: Exception) -> None:
        """Record a question without an answer; `UnreachableError` if the first of them was asked too long ago."""
        now = self._clock()
        if self._since is None:
            self._since = now
            log.warning("%s is away, trying again: %s", self._what, error)
        if now - self._since >= self._patience:
            raise UnreachableError(f"{self._what} has not answered for {self._patience:g} s: {error}") from error


def retry(action: Callable[[], T], failures: tuple[type[Exception], ...], patience: float, what: str) -> T:
    """Try until it works; `UnreachableError` once `patience` seconds have passed."""
    backoff, deadline, told = Backoff(), time.monotonic() + patience, False
    while True:
        try:
            return action()
        except failures as error:
            left = deadline - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"{what} has not answered for {patience:g} s: {error}") from error
            if not told:
                log.warning("%s is away, trying again: %s", what, error)
            told = True
            time.sleep(min(backoff.next(), left))
