from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from ripplevec.changes import Changes
from ripplevec.service import encoded_change_feed
from ripplevec.service.change_feed import ChangeFeed, ExpiredChangesError
from ripplevec.service.encoded_change_feed import PART_BYTES, EncodedChangeFeed
from ripplevec.service.responses import NotFiniteError

DIM = 64


class Weak(Changes):
    """Changes of which it can be seen whether they are still held."""


def changes(sequence: int, rows: int = 1, value: float = 0.5) -> Changes:
    ids = np.arange(rows)
    return Weak(ids, np.full((rows, DIM), value, np.float32), lambda inside: inside, ids < 0, [], sequence, False)


def with_feed(work: Callable[[ChangeFeed, EncodedChangeFeed], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def all_of_it() -> None:
        feed = ChangeFeed(0, DIM, **{"batches": 10, "size": 1 << 30, "followers": 300} | options)
        encoded = EncodedChangeFeed(feed, waiting=300, seconds=30)
        try:
            await asyncio.wait_for(work(feed, encoded), 60)
        finally:
            encoded.close()

    asyncio.run(all_of_it())


def test_encoded_parts_of_a_batch_hold_all_of_it_and_are_small() -> None:
    async def work(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(changes(1, rows=500))
        found = [await encoded.part(1, 0)]
        while not found[-1].last:
            found.append(await encoded.part(1, len(found)))
        assert len(found) > 5
        assert all(len(part.message) <= PART_BYTES for part in found)
        messages = [json.loads(part.message) for part in found]
        assert [row["id"] for message in messages for row in message["changes"]] == list(range(500))
        assert [(message["part"], message["parts"]) for message in messages] == [
            (part, len(found)) for part in range(len(found))
        ]

    with_feed(work)


def test_encoded_part_is_made_once_for_all_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    encode = encoded_change_feed.encode_message_part
    monkeypatch.setattr(
        encoded_change_feed, "encode_part", lambda *arguments: calls.append(arguments[2]) or encode(*arguments)
    )

    async def work(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(changes(1))
        found = await asyncio.gather(*(encoded.part(1, 0) for _ in range(200)))
        found += [await encoded.part(1, 0)]
        assert len({id(part.message) for part in found}) == 1
        assert calls == [0]

    with_feed(work)


def test_encoded_feed_holds_no_batch_that_the_feed_has_let_go() -> None:
    async def work(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        batch = changes(1, rows=500)
        held = weakref.ref(batch)
        feed.append(batch)
        del batch
        first = await encoded.part(1, 0)
        assert not first.last
        feed.append(changes(2))
        await asyncio.sleep(0)
        gc.collect()
        assert held() is None
        with pytest.raises(ExpiredChangesError):
            await encoded.part(1, 1)

    with_feed(work, batches=1)


def test_encoded_messages_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_change_feed, "KEPT_BYTES", 200_000)

    async def work(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(changes(1, rows=500))
        part = 0
        while not (await encoded.part(1, part)).last:
            part += 1
        held = [len(kept.message) for kept in encoded._parts.values()]
        assert sum(held) == encoded._held <= 200_000
        assert len(held) >= 2

    with_feed(work)


def test_encoded_part_with_numbers_that_are_not_finite_is_refused() -> None:
    async def work(feed: ChangeFeed, encoded: EncodedChangeFeed) -> None:
        feed.append(changes(1, value=np.inf))
        with pytest.raises(NotFiniteError):
            await encoded.part(1, 0)
        feed.append(changes(2))
        assert (await encoded.part(2, 0)).last

    with_feed(work)
