from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from ripplevec.changes import Changes
from ripplevec.service.change_feed import ChangeFeed, ExpiredChangesError
from ripplevec.service.responses import RejectedRequest


def changes(sequence: int, rows: int = 1) -> Changes:
    ids = np.arange(rows)
    return Changes(ids, np.zeros((rows, 4), np.float32), lambda inside: inside, ids < 0, [], sequence, False)


def feed(newest: int = 0, **options: Any) -> ChangeFeed:
    return ChangeFeed(newest, 4, **{"batches": 10, "size": 1 << 20, "followers": 2} | options)


def numbers(found: list[Changes]) -> list[int]:
    return [batch.sequence for batch in found]


def test_it_begins_where_the_state_stands() -> None:
    kept = feed(newest=7)
    assert kept.after(7, 10) == []
    for since in (6, 8):
        with pytest.raises(RejectedRequest) as refused:
            kept.after(since, 10)
        assert refused.value.status == 410


def test_batches_behind_a_number_in_order_up_to_a_limit() -> None:
    kept = feed()
    for number in range(1, 6):
        kept.append(changes(number))
    assert numbers(kept.after(2, 10)) == [3, 4, 5]
    assert numbers(kept.after(0, 2)) == [1, 2]


def test_the_oldest_go_by_number_and_by_size() -> None:
    by_number, by_size = feed(batches=3), feed(size=10_000)
    for number in range(1, 9):
        by_number.append(changes(number))
        by_size.append(changes(number, rows=20))
    assert (by_number.oldest, by_number.newest) == (5, 8)
    assert numbers(by_number.after(5, 10)) == [6, 7, 8]
    assert 0 < by_size.newest - by_size.oldest < 8


def test_a_batch_larger_than_all_there_is_room_for_is_not_kept() -> None:
    kept = feed(size=10_000)
    kept.append(changes(1))
    kept.append(changes(2, rows=1000))
    assert (kept.oldest, kept.newest) == (2, 2)
    kept.append(changes(3))
    assert numbers(kept.after(2, 10)) == [3]


def test_those_who_wait_are_woken_by_a_batch_from_another_thread() -> None:
    kept = feed()

    async def follow() -> list[int]:
        threading.Timer(0.05, kept.append, [changes(1)]).start()
        await kept.wait(0, 30)
        return numbers(kept.after(0, 10))

    assert asyncio.run(follow()) == [1]


def test_those_who_wait_are_let_go_when_it_closes() -> None:
    kept = feed()

    async def follow() -> bool:
        threading.Timer(0.05, kept.close).start()
        await kept.wait(0, 30)
        await kept.wait(0, 30)
        return kept.closed

    assert asyncio.run(follow())


def test_no_more_followers_than_there_may_be() -> None:
    kept = feed(followers=1)
    with kept.following():
        with pytest.raises(RejectedRequest) as refused, kept.following():
            pass
        assert refused.value.status == 503
        assert refused.value.headers["Retry-After"] == "10"
    with kept.following():
        assert kept.followers == 1
    assert kept.followers == 0


def test_one_batch_by_its_number() -> None:
    kept = feed(batches=2)
    for number in range(1, 5):
        kept.append(changes(number))
    assert kept.get(4).sequence == 4
    with pytest.raises(ExpiredChangesError):
        kept.get(2)
