"""Tests of the latency benchmark: the two actors, without Ray."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np


def test_peers_exchange_messages(benchmark: Callable[[str], ModuleType]) -> None:
    module = benchmark("mesh_latency")
    peers = [module.Peer(), module.Peer()]
    addresses = [peer.address() for peer in peers]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda index: peers[index].connect(index, addresses), range(2)))
        assert all(seconds > 0 for seconds in threads.map(lambda peer: peer.time_exchanges(10), peers))
    for peer in peers:
        peer._mesh.close()
    assert np.array_equal(peers[0].echo(module.MESSAGE), module.MESSAGE)
