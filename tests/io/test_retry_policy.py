from __future__ import annotations

import pytest

from ripplevec.io import retry_policy
from ripplevec.io.retry_policy import Backoff, OutageTimer, UnreachableError, retry

UNREACHABLE = "broker unreachable, retrying broker=the broker error=no"


def test_backoff_delays_double_up_to_limit_and_reset():
    backoff = Backoff()
    assert [backoff.next_delay() for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    backoff.reset()
    assert backoff.next_delay() == 0.05


def test_retry_of_failing_action_repeats_until_success(monkeypatch, caplog):
    delays = []
    monkeypatch.setattr(retry_policy.time, "sleep", delays.append)
    outcomes = [OSError("no"), OSError("no"), "yes"]

    def action():
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    assert retry(action, (OSError,), 60, "the broker") == "yes"
    assert delays == [0.05, 0.1]
    assert [record.getMessage() for record in caplog.records] == [UNREACHABLE]


def test_retry_after_patience_raises_unreachable_error():
    with pytest.raises(UnreachableError, match="the broker has not answered for 0 s: division"):
        retry(lambda: 1 / 0, (ZeroDivisionError,), 0, "the broker")


def test_retry_with_other_error_raises_it():
    with pytest.raises(TypeError):
        retry(lambda: len(3), (OSError,), 60, "the broker")  # type: ignore[arg-type]


def test_outage_timer_after_success_starts_again(caplog):
    now = [0.0]
    timer = OutageTimer("the broker", 60, clock=lambda: now[0])
    for now[0] in (0.0, 59.0):
        timer.record_failure(OSError("no"))
    timer.record_success()
    for now[0] in (61.0, 120.0):
        timer.record_failure(OSError("no"))
    assert [record.getMessage() for record in caplog.records] == [UNREACHABLE] * 2


def test_outage_timer_after_patience_raises_unreachable_error():
    now = [5.0]
    timer = OutageTimer("the broker", 60, clock=lambda: now[0])
    timer.record_failure(OSError("no"))
    now[0] = 65.0
    with pytest.raises(UnreachableError, match="the broker has not answered for 60 s: no"):
        timer.record_failure(OSError("no"))
