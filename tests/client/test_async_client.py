from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import ripplevec
from ripplevec.client.protocol import NotFoundError


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
