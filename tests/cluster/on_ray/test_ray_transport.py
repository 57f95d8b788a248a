"""Where shards go."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from ripplevec.cluster.ray_transport import MAX_UNREAD_CALLS, UnreadResults, distribute_shards


@pytest.mark.parametrize(
    ("size", "machines", "found"),
    [
        (4, {"a": 2.0, "b": 2.0}, "aabb"),
        (3, {"a": 8.0, "b": 4.0}, "aab"),
        (2, {"head": 0.0, "b": 4.0}, "bb"),
        (3, {"a": 1.0}, "aaa"),
    ],
)
def test_shards_are_spread_over_machines_by_their_processors(size: int, machines: dict[str, float], found: str) -> None:
    assert "".join(name[0] for name in distribute_shards(size, machines)) == found


@ray.remote
def fail() -> None:
    raise ValueError("for nobody to read")


def held(unread: UnreadResults) -> list[Any]:
    return [answer for _, answers in unread._calls for answer in answers]


def test_unread_answers_before_a_call_that_was_read_are_released() -> None:
    unread, answers = UnreadResults(shards=2), [ray.put(number) for number in range(6)]
    for first in (0, 2, 4):
        unread.add(answers[first : first + 2])
    unread.release(answers[:1])  # of one shard only
    assert held(unread) == answers
    unread.release(answers[2:4])
    assert held(unread) == answers[4:]


def test_unread_answers_of_many_calls_are_bounded() -> None:
    unread, answer = UnreadResults(shards=1), ray.put(1)
    for _ in range(2 * MAX_UNREAD_CALLS):
        unread.add([answer])
    assert len(held(unread)) == MAX_UNREAD_CALLS


def test_unread_answers_that_failed_are_read_without_an_error() -> None:
    unread = UnreadResults(shards=1)
    unread.add([fail.remote(), ray.put(1)])
    unread.drain()
    assert held(unread) == []
