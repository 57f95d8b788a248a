from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import ripplevec
from ripplevec.client.protocol import NotFoundError
from ripplevec.errors import StateError


def test_async_client_runs_concurrent_requests(start: Any) -> None:
    service = start()

    async def work() -> None:
        async with ripplevec.AsyncClient(service.url) as client:
            receipts = await asyncio.gather(*(client.add_edges([(n, n + 1)]) for n in range(30)))
            assert sorted(receipt["sequence"] for receipt in receipts) == list(range(1, 31))
            assert (await client.add_vertex("v", [0, 1])).shape == (8,)
            assert np.array_equal(await client.vectors([3]), [await client.vector(3)])
            assert (await client.vertex("v"))["degree"] == 2
            assert len(await client.nearest(3, 2)) == 2
            assert await client.neighbors("v") == await client.neighbours("v") == [(1, 1.0), (0, 1.0)]
            assert (await client.age(["v"])).tolist() == [0]
            assert (await client.transform([3])).shape == (1, 8)
            assert (await client.preview([1])).shape == (8,)
            assert (await client.remove_edges([("v", 0)]))["sequence"] == 32
            assert (await client.remove_vertex("v"))["removed"] == 1
            assert await client.put_labels({3: "x"}) == 1
            assert (await client.stats(digest=True))["digest"]
            with pytest.raises(NotFoundError):
                await client.vertex("v")

    asyncio.run(work())


def test_async_changes_yields_batches_as_they_are_applied(start: Any) -> None:
    service = start()

    async def work() -> list[int]:
        async with ripplevec.AsyncClient(service.url) as client:
            await client.add_edges([("a", "b")])

            async def follow() -> list[int]:
                found = []
                async for changes in client.changes(since=0):
                    found.append(changes.sequence)
                    if len(found) == 3:
                        break
                return found

            following = asyncio.create_task(follow())
            await client.add_edges([("b", "c")])
            await client.add_edges([("c", "d")])
            return await following

    assert asyncio.run(work()) == [1, 2, 3]


def test_async_client_sets_and_searches_attributes(start: Any, papers: Any) -> None:
    service = start(parameters=papers.parameters)

    async def work() -> None:
        async with ripplevec.AsyncClient(service.url) as client:
            for arrival in papers.document["arrivals"]:
                attributes = arrival["attributes"]
                vector = await client.add_vertex(arrival["id"], arrival["neighbors"], attributes=attributes)
            assert np.any(vector)
            await client.partial_fit([("p1", "p9")], attributes={"p30": {"graph": 1}})
            assert (await client.set_attributes(["p30"], [{"protein": 3}]))["events"] == 1
            assert (await client.nearest_by_attributes({"protein": 3}, 1))[0][0] == "p30"
            assert "p30" not in dict(await client.nearest_by_attributes("p30", 20))
            expected = service.runtime.model.preview(["p1"], attributes={"graph": 1})
            assert np.array_equal(await client.preview(["p1"], attributes={"graph": 1}), expected)
            with pytest.raises(NotFoundError):
                await client.set_attributes(["unknown"], [{"graph": 1}])

    asyncio.run(work())


def test_async_client_after_close_raises_state_error(start: Any) -> None:
    url = start().url

    async def use_closed_client() -> None:
        async with ripplevec.AsyncClient(url) as client:
            assert (await client.stats())["sequence"] == 0
        await client.stats()

    with pytest.raises(StateError, match=r"the client is closed\. Create another client\."):
        asyncio.run(use_closed_client())


def test_async_client_in_another_event_loop_raises_state_error(start: Any) -> None:
    client = ripplevec.AsyncClient(start().url)
    with asyncio.Runner() as first, asyncio.Runner() as second:
        assert first.run(client.stats())["sequence"] == 0
        with pytest.raises(StateError, match=r"the client belongs to another event loop .*\. Create another client\."):
            second.run(client.stats())
        first.run(client.aclose())
