from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tenacity import AsyncRetrying, Retrying

from ripplevec.util.retry_policy import RetryPolicy


def policy(**options: Any) -> RetryPolicy:
    return RetryPolicy(
        **{"is_temporary": lambda error: isinstance(error, OSError), "initial_delay": 0.25, "max_delay": 2.0} | options
    )


def failing(times: int, error: Exception) -> Callable[[], str]:
    """Return an operation that fails this many times."""
    outcomes = [error] * times

    def operation() -> str:
        if outcomes:
            raise outcomes.pop()
        return "done"

    return operation


def test_retry_policy_delays_double_up_to_limit() -> None:
    delays: list[float] = []
    retrying = Retrying(**policy().arguments(), sleep=delays.append)
    assert retrying(failing(6, OSError("no"))) == "done"
    assert delays == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_retry_policy_with_jitter_shortens_delays() -> None:
    delays: list[float] = []
    Retrying(**policy(jitter=0.5).arguments(), sleep=delays.append)(failing(100, OSError("no")))
    assert all(1.0 <= delay <= 2.0 for delay in delays[3:])
    assert len(set(delays[3:])) > 10


def test_retry_policy_without_retries_left_raises_last_error() -> None:
    delays: list[float] = []
    with pytest.raises(OSError, match="no"):
        Retrying(**policy(retries=2).arguments(), sleep=delays.append)(failing(3, OSError("no")))
    assert delays == [0.25, 0.5]


def test_retry_policy_with_permanent_error_raises_it_at_once() -> None:
    delays: list[float] = []
    with pytest.raises(ValueError, match="wrong"):
        Retrying(**policy().arguments(), sleep=delays.append)(failing(1, ValueError("wrong")))
    assert delays == []


def test_retry_policy_waits_as_long_as_requested_up_to_limit() -> None:
    for requested, waited in ((0.0, 0.25), (1.5, 1.5), (60.0, 2.0)):
        delays: list[float] = []
        options = policy(requested_delay=lambda error, requested=requested: requested).arguments()
        Retrying(**options, sleep=delays.append)(failing(1, OSError("no")))
        assert delays == [waited]


def test_retry_policy_waits_until_time_limit_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    now, delays = [0.0], []

    def sleep(delay: float) -> None:
        delays.append(delay)
        now[0] += delay

    monkeypatch.setattr("tenacity.time.monotonic", lambda: now[0])
    with pytest.raises(OSError, match="no"):
        Retrying(**policy(time_limit=1.0).arguments(), sleep=sleep)(failing(100, OSError("no")))
    assert delays == [0.25, 0.5, 0.25]


def test_retry_policy_applies_to_asyncio() -> None:
    delays: list[float] = []
    operation = failing(2, OSError("no"))

    async def sleep(delay: float) -> None:
        delays.append(delay)

    async def run() -> str:
        return operation()

    assert asyncio.run(AsyncRetrying(**policy().arguments(), sleep=sleep)(run)) == "done"
    assert delays == [0.25, 0.5]
