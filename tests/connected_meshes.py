"""Meshes of shards in this process, connected by sockets."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ripplevec.cluster.mesh import Mesh, MeshListener

TOKEN = b"secret token"


def connect_sockets(size: int, tokens: list[bytes] | None = None, timeout: float = 20) -> list[Mesh]:
    listeners = [MeshListener("127.0.0.1") for _ in range(size)]
    addresses = [listener.address for listener in listeners]
    with ThreadPoolExecutor(size) as threads:
        connected = [
            threads.submit(listener.connect, index, addresses, tokens[index] if tokens else TOKEN, timeout)
            for index, listener in enumerate(listeners)
        ]
    if any(future.exception() for future in connected):
        for future in connected:
            if not future.exception():
                future.result().close()
    return [future.result() for future in connected]


def run(connected: list[Any], program: Callable[[Mesh], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(connected)) as threads:
        return list(threads.map(program, connected))
