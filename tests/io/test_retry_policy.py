from __future__ import annotations

import pytest

from ripplevec.io import retry_policy
from ripplevec.io.retry_policy import Backoff, OutageTimer, UnreachableError, retry


def test_pauses_grow_and_begin_anew():
    pauses = Backoff()
    assert [pauses.next() for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    pauses.reset()
    assert pauses.next() == 0.05


def test_trying_until_it_works(monkeypatch, caplog):
    slept = []
    monkeypatch.setattr(retry_policy.time, "sleep", slept.append)
    answers = [OSError("no"), OSError("no"), "yes"]

    def action():
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert retry(action, (OSError,), 60, "the broker") == "yes"
    assert slept == [0.05, 0.1]
    assert [record.getMessage() for record in caplog.records] == ["the broker is away, trying again: no"]


def test_patience_ends():
    with pytest.raises(UnreachableError, match="the broker has not answered for 0 s: division"):
        retry(lambda: 1 / 0, (ZeroDivisionError,), 0, "the broker")
    with pytest.raises(TypeError):
        retry(lambda: len(3), (OSError,), 60, "the broker")  # type: ignore[arg-type]


def test_absence_of_a_broker_that_answers_in_between_begins_anew(caplog):
    now = [0.0]
    absence = OutageTimer("the broker", 60, clock=lambda: now[0])
    for now[0] in (0.0, 59.0):
        absence.record_failure(OSError("no"))
    absence.record_success()
    for now[0] in (61.0, 120.0):
        absence.record_failure(OSError("no"))
    assert [record.getMessage() for record in caplog.records] == ["the broker is away, trying again: no"] * 2


def test_absence_of_a_broker_that_outlasts_patience_raises_unreachable_error():
    now = [5.0]
    absence = OutageTimer("the broker", 60, clock=lambda: now[0])
    absence.record_failure(OSError("no"))
    now[0] = 65.0
    with pytest.raises(UnreachableError, match="the broker has not answered for 60 s: no"):
        absence.record_failure(OSError("no"))
