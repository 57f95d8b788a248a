"""Retries of an operation while a remote system is unavailable: one policy for the clients of the service and Redis.

tenacity runs the policy. It is an optional dependency, so import this module only where an operation is retried.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenacity import RetryCallState, retry_if_exception, stop_after_attempt, stop_after_delay, wait_exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Retries after temporary errors, with exponential delays, up to a number of retries or a time limit."""

    is_temporary: Callable[[BaseException], bool]
    initial_delay: float
    max_delay: float
    jitter: float = 0.0  # largest share by which a delay is shortened at random, so that clients do not retry in step
    retries: int = sys.maxsize
    time_limit: float = math.inf  # seconds
    requested_delay: Callable[[BaseException], float] = lambda error: 0.0  # the delay that the remote system asks for

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `tenacity.Retrying` and `tenacity.AsyncRetrying`; the last error is raised."""
        return {
            "retry": retry_if_exception(self.is_temporary),
            "stop": stop_after_attempt(self.retries + 1) | stop_after_delay(self.time_limit),
            "wait": self._delay,
            "reraise": True,
        }

    def _delay(self, state: RetryCallState) -> float:
        """Return the seconds until the next attempt, which starts at the time limit at the latest."""
        delay = wait_exponential(self.initial_delay, self.max_delay)(state) * random.uniform(1 - self.jitter, 1)
        requested = min(self.requested_delay(last_error(state)), self.max_delay)
        return max(0.0, min(max(delay, requested), self.time_limit - (state.seconds_since_start or 0.0)))


def last_error(state: RetryCallState) -> BaseException:
    """Return the error of a failed attempt."""
    error = state.outcome.exception() if state.outcome else None
    assert error is not None  # tenacity asks after a failure only
    return error
