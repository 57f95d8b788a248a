"""Which answers are held, until when, and that reading them raises nothing."""

from __future__ import annotations

from typing import Any

import ray

from ripplevec.cluster.abandoned_results import MOST, UnreadAnswers


@ray.remote
def fail() -> None:
    raise ValueError("for nobody to read")


def held(unread: UnreadAnswers) -> list[Any]:
    return [answer for _, answers in unread._calls for answer in answers]


def test_unread_answers_before_a_call_that_was_read_are_released() -> None:
    unread, answers = UnreadAnswers(shards=2), [ray.put(number) for number in range(6)]
    for first in (0, 2, 4):
        unread.add(answers[first : first + 2])
    unread.release(answers[:1])  # of one shard only
    assert held(unread) == answers
    unread.release(answers[2:4])
    assert held(unread) == answers[4:]


def test_unread_answers_of_many_calls_are_bounded() -> None:
    unread, answer = UnreadAnswers(shards=1), ray.put(1)
    for _ in range(2 * MOST):
        unread.add([answer])
    assert len(held(unread)) == MOST


def test_unread_answers_that_failed_are_read_without_an_error() -> None:
    unread = UnreadAnswers(shards=1)
    unread.add([fail.remote(), ray.put(1)])
    unread.read_all()
    assert held(unread) == []
