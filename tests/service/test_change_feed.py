"""Change feed: retention limits, waiting followers, and messages that are encoded once for all followers."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from ripplevec.changes import Changes
from ripplevec.service import change_feed as change_feed_module
from ripplevec.service.change_feed import PART_BYTES, ChangeFeed, EncodedChangeFeed, ExpiredChangesError
from ripplevec.service.responses import NotFiniteError, RejectedRequest

DIM = 64


class WeaklyReferencedChanges(Changes):
    """Changes that support weak references, which show whether they are still in memory."""


def make_changes(sequence: int, rows: int = 1, dim: int = 4, value: float = 0.0) -> Changes:
    ids = np.arange(rows)
    vectors = np.full((rows, dim), value, np.float32)
    return WeaklyReferencedChanges(ids, vectors, lambda internal: internal, ids < 0, [], sequence, False)


def make_feed(newest: int = 0, **options: Any) -> ChangeFeed:
    return ChangeFeed(newest, 4, **{"max_batches": 10, "max_bytes": 1 << 20, "max_followers": 2} | options)


def sequences(batches: list[Changes]) -> list[int]:
    return [batch.sequence for batch in batches]


def test_feed_new_starts_at_the_current_sequence() -> None:
    feed = make_feed(newest=7)
    assert feed.read_after(7, 10) == []
    for since in (6, 8):
        with pytest.raises(RejectedRequest) as rejected:
            feed.read_after(since, 10)
        assert rejected.value.status == 410


def test_read_after_returns_later_batches_in_order_up_to_the_limit() -> None:
    feed = make_feed()
    for sequence in range(1, 6):
        feed.append(make_changes(sequence))
    assert sequences(feed.read_after(2, 10)) == [3, 4, 5]
    assert sequences(feed.read_after(0, 2)) == [1, 2]


def test_append_beyond_the_limits_drops_the_oldest_batches() -> None:
    by_number, by_size = make_feed(max_batches=3), make_feed(max_bytes=10_000)
    for sequence in range(1, 9):
        by_number.append(make_changes(sequence))
        by_size.append(make_changes(sequence, rows=20))
    assert (by_number.oldest, by_number.newest) == (5, 8)
    assert sequences(by_number.read_after(5, 10)) == [6, 7, 8]
    assert 0 < by_size.newest - by_size.oldest < 8


def test_append_of_batch_larger_than_the_limit_retains_nothing() -> None:
    feed = make_feed(max_bytes=10_000)
    feed.append(make_changes(1))
    feed.append(make_changes(2, rows=1000))
    assert (feed.oldest, feed.newest) == (2, 2)
    feed.append(make_changes(3))
    assert sequences(feed.read_after(2, 10)) == [3]


def test_wait_returns_when_another_thread_appends_a_batch() -> None:
    feed = make_feed()

    async def follow() -> list[int]:
        threading.Timer(0.05, feed.append, [make_changes(1)]).start()
        await feed.wait(0, 30)
        return sequences(feed.read_after(0, 10))

    assert asyncio.run(follow()) == [1]


def test_wait_returns_when_the_feed_closes() -> None:
    feed = make_feed()

    async def follow() -> bool:
        threading.Timer(0.05, feed.close).start()
        await feed.wait(0, 30)
        await feed.wait(0, 30)
        return feed.closed

    assert asyncio.run(follow())


def test_register_follower_beyond_the_limit_is_rejected() -> None:
    feed = make_feed(max_followers=1)
    with feed.register_follower():
        with pytest.raises(RejectedRequest) as rejected, feed.register_follower():
            pass
        assert rejected.value.status == 503
        assert rejected.value.headers["Retry-After"] == "10"
    with feed.register_follower():
        assert feed.followers == 1
    assert feed.followers == 0


def test_read_batch_returns_one_batch_or_rejects_an_expired_one() -> None:
    feed = make_feed(max_batches=2)
    for sequence in range(1, 5):
        feed.append(make_changes(sequence))
    assert feed.read_batch(4).sequence == 4
    with pytest.raises(ExpiredChangesError):
        feed.read_batch(2)


def encodable_changes(sequence: int, rows: int = 1, value: float = 0.5) -> Changes:
    return make_changes(sequence, rows, DIM, value)


def run_with_feed(test: Callable[[ChangeFeed, EncodedChangeFeed], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def run() -> None:
        feed = ChangeFeed(0, DIM, **{"max_batches": 10, "max_bytes": 1 << 30, "max_followers": 300} | options)
        encoded = EncodedChangeFeed(feed, max_waiting=300, timeout=30)
        try:
            await asyncio.wait_for(test(feed, encoded), 60)
        finally:
            encoded.close()

    asyncio.run(run())


def test_encoded_parts_of_a_batch_contain_all_changes_and_are_small() -> None:
    async def run(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(encodable_changes(1, rows=500))
        parts = [await encoded.get_part(1, 0)]
        while not parts[-1].last:
            parts.append(await encoded.get_part(1, len(parts)))
        assert len(parts) > 5
        assert all(len(part.message) <= PART_BYTES for part in parts)
        messages = [json.loads(part.message) for part in parts]
        assert [row["id"] for message in messages for row in message["changes"]] == list(range(500))
        numbers = [(message["part"], message["parts"]) for message in messages]
        assert numbers == [(number, len(parts)) for number in range(len(parts))]

    run_with_feed(run)


def test_encoded_part_is_encoded_once_for_all_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded_parts: list[int] = []
    encode = change_feed_module.encode_message_part

    def count_and_encode(changes: Changes, bounds: list[int], part: int) -> bytes:
        encoded_parts.append(part)
        return encode(changes, bounds, part)

    monkeypatch.setattr(change_feed_module, "encode_message_part", count_and_encode)

    async def run(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(encodable_changes(1))
        parts = await asyncio.gather(*(encoded.get_part(1, 0) for _ in range(200)))
        parts += [await encoded.get_part(1, 0)]
        assert len({id(part.message) for part in parts}) == 1
        assert encoded_parts == [0]

    run_with_feed(run)


def test_encoded_feed_keeps_no_batch_that_the_feed_has_dropped() -> None:
    async def run(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        batch = encodable_changes(1, rows=500)
        reference = weakref.ref(batch)
        feed.append(batch)
        del batch
        first = await encoded.get_part(1, 0)
        assert not first.last
        feed.append(encodable_changes(2))
        await asyncio.sleep(0)
        gc.collect()
        assert reference() is None
        with pytest.raises(ExpiredChangesError):
            await encoded.get_part(1, 1)

    run_with_feed(run, max_batches=1)


def test_encoded_cache_stays_below_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_feed_module, "CACHE_BYTES", 200_000)

    async def run(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(encodable_changes(1, rows=1_000))
        parts = [await encoded.get_part(1, 0)]
        while not parts[-1].last:
            parts.append(await encoded.get_part(1, len(parts)))
        sizes = list[int]()
        for number in reversed(range(len(parts))):  # the oldest parts are dropped first
            if await encoded.get_part(1, number) is not parts[number]:  # encoded again
                break
            sizes.append(len(parts[number].message))
        else:
            raise AssertionError("no part was dropped")
        assert sum(sizes) <= 200_000 < sum(sizes) + len(parts[number].message)
        assert len(sizes) >= 2

    run_with_feed(run)


def test_encoded_part_with_infinite_numbers_is_an_error() -> None:
    async def run(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(encodable_changes(1, value=np.inf))
        with pytest.raises(NotFiniteError):
            await encoded.get_part(1, 0)
        feed.append(encodable_changes(2))
        assert (await encoded.get_part(2, 0)).last

    run_with_feed(run)
