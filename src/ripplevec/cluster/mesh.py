"""Mesh: direct connections between all shards, over which they exchange data without the driver.

All shards of a model run the same program at the same time (SPMD). Where one needs data of the others, all of them call
`exchange_rows`, which sends rows of arrays without describing them, or `exchange` for any other data. Messages between
two shards arrive in the order in which they were sent, so they need no tags.

On Ray, a mesh consists of socket connections between the actors: `benchmarks/mesh_latency.py` compares an exchange with
a Ray call between actors, which takes many times as long.
"""

from __future__ import annotations

import hmac
import os
import pickle
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from operator import add
from queue import SimpleQueue
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from ripplevec.cluster.row_exchange import RowExchange
from ripplevec.errors import LostStateError

Value = TypeVar("Value")
INLINE_BYTES = 64 * 1024  # larger messages are sent by a thread, so that two shards can send to each other at once
SOCKET_BUFFER = 4 * INLINE_BYTES  # bytes of messages that a socket accepts before the peer reads them
MAX_PARTS = 64  # per system call
ALIGNMENT = 64  # bytes
MAX_STRANGERS = 1024  # connections that have not introduced themselves
_UINT64 = struct.Struct("<Q")
_ABORTED = object()  # message of a shard that has closed its mesh


class ShardLostError(LostStateError):
    """A shard is gone, or has lost its state."""


class PeerLostError(ShardLostError):
    """A shard stopped because another one is gone: a consequence, not the cause."""


class Mesh(RowExchange):
    """The connections of one shard; `RowExchange` describes its attributes."""

    def exchange(self, parts: Sequence[Any]) -> list[Any]:
        """Send `parts[i]` to shard i; return the part that each shard sent to this one. Its own part is not copied."""
        self.sent += self.send_all({peer: parts[peer] for peer in self.peers})
        received = [parts[peer] if peer == self.index else self.receive(peer) for peer in range(self.size)]
        self.flush()
        return received

    def gather(self, value: Value) -> list[Value]:
        """Send a value to all shards; return the values of all shards."""
        return self.exchange([value] * self.size)

    def sum(self, value: Value) -> Value:
        """Return the sum of a value over all shards, added in the order of the shards."""
        return reduce(add, self.gather(value))

    def send_all(self, messages: dict[int, Any]) -> int:
        """Send a message to each of some shards, without waiting until they read it; return the bytes sent."""
        bodies = {peer: _pack(message) for peer, message in messages.items()}
        heads = {peer: [memoryview(_UINT64.pack(_count_bytes(body)))] for peer, body in bodies.items()}
        return self.send_parts(heads, bodies)

    def receive(self, peer: int) -> Any:
        """Return the next message of a shard; raise `ShardLostError` if its connection is closed."""
        head = bytearray(_UINT64.size)
        self.receive_parts(peer, [memoryview(head)])
        body = np.empty(_UINT64.unpack(head)[0], np.uint8).data  # writable, so arrays in it are, too
        self.receive_parts(peer, [body])
        return _unpack(body)

    def close(self) -> None:
        """Close all connections; the other shards then raise `ShardLostError` when they receive."""
        raise NotImplementedError


class LocalMesh(Mesh):
    """The mesh of shards that are threads of one process."""

    def __init__(self, index: int, queues: dict[tuple[int, int], SimpleQueue[Any]], size: int) -> None:
        super().__init__(index, size)
        self._queues = queues
        self._unread: dict[int, memoryview] = {}  # bytes of each shard that have left the queue

    def send_parts(self, heads: Mapping[int, list[memoryview]], bodies: Mapping[int, list[memoryview]]) -> int:
        """Put bytes into the queues of their receivers."""
        for peer, head in heads.items():
            if contents := b"".join([*head, *bodies[peer]]):
                self._queues[self.index, peer].put(memoryview(contents))
        return sum(map(_count_bytes, bodies.values()))

    def receive_parts(self, peer: int, parts: list[memoryview]) -> None:
        """Wait for the next bytes of a shard."""
        for part in parts:
            filled = 0
            while filled < len(part):
                unread = self._unread.pop(peer, None) or self._queues[peer, self.index].get()
                if unread is _ABORTED:
                    raise PeerLostError(f"Shard {peer} stopped in the middle of an update.")
                count = min(len(unread), len(part) - filled)
                part[filled : filled + count] = unread[:count]
                self._unread[peer], filled = unread[count:], filled + count

    def close(self) -> None:
        """Make all other shards fail when they wait for this one."""
        for peer in self.peers:
            self._queues[self.index, peer].put(_ABORTED)


def connect_locally(size: int) -> list[LocalMesh]:
    """Return the meshes of all shards in this process."""
    pairs = [(source, target) for source in range(size) for target in range(size)]
    queues: dict[tuple[int, int], SimpleQueue[Any]] = {pair: SimpleQueue() for pair in pairs}
    return [LocalMesh(index, queues, size) for index in range(size)]


class MeshListener:
    """A socket at which a shard accepts the connections of peers with higher numbers; the last one is the driver.

    Peers on the same machine connect through a Unix socket, which takes less time than TCP.
    """

    def __init__(self, host: str) -> None:
        self._socket = socket.create_server((host, 0), backlog=1024)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._sockets = [self._socket]
        if local := _open_unix_socket(lambda created: created.bind(_unix_address(self.address))):
            local.listen(1024)
            self._sockets.append(local)

    def close(self) -> None:
        """Close the port."""
        for listening in self._sockets:
            listening.close()

    def connect(
        self,
        index: int,
        addresses: Sequence[tuple[str, int]],
        token: bytes,
        timeout: float,
        *,
        with_driver: bool = False,
    ) -> SocketMesh:
        """Connect to all other shards.

        Parameters
        ----------
        index
            Number of this shard.
        addresses
            The addresses at which the shards listen.
        token
            A secret that all shards of the mesh know; other connections are refused.
        timeout
            Seconds until missing shards raise `ShardLostError`.
        with_driver
            Whether to wait for a connection of the driver, too; see `connect_driver`.
        """
        sockets: dict[int, socket.socket] = {}
        peers = len(addresses) - 1 + with_driver
        try:
            for peer in range(index):
                sockets[peer] = _connect_to(addresses[peer], index, token, timeout)
            self._accept_peers(sockets, peers, token, timeout)
        except OSError as error:
            for connection in sockets.values():
                connection.close()
            raise ShardLostError(f"Shard {index} could not connect to the other shards: {error}") from error
        finally:
            self.close()
        return SocketMesh(index, len(addresses), sockets)

    def _accept_peers(self, sockets: dict[int, socket.socket], peers: int, token: bytes, timeout: float) -> None:
        """Add connections until there is one of every peer. Strangers, silent ones too, delay no peer."""
        deadline, greetings = monotonic() + timeout, dict[socket.socket, bytes]()
        with DefaultSelector() as selector:
            for listening in self._sockets:
                selector.register(listening, EVENT_READ)
            try:
                while len(sockets) < peers:
                    ready = selector.select(max(deadline - monotonic(), 0.0))
                    if not ready:
                        raise TimeoutError("timed out")
                    for key, _ in ready:
                        connection: Any = key.fileobj
                        if connection in self._sockets:
                            self._accept_stranger(connection, selector, greetings)
                        elif (greeting := _read_more(connection, greetings.pop(connection), token)) is None:
                            selector.unregister(connection)
                            connection.close()
                        elif len(greeting) < len(token) + _UINT64.size:
                            greetings[connection] = greeting
                        else:
                            selector.unregister(connection)
                            sockets[int(_UINT64.unpack(greeting[len(token) :])[0])] = connection
            finally:
                for connection in greetings:
                    connection.close()

    @staticmethod
    def _accept_stranger(
        listening: socket.socket, selector: DefaultSelector, greetings: dict[socket.socket, bytes]
    ) -> None:
        """Accept a connection whose greeting is still to be read; the oldest one is closed if there are many."""
        connection = listening.accept()[0]
        connection.setblocking(False)
        if len(greetings) >= MAX_STRANGERS:
            oldest = next(iter(greetings))
            del greetings[oldest]
            selector.unregister(oldest)
            oldest.close()
        greetings[connection] = b""
        selector.register(connection, EVENT_READ)


def _read_more(connection: socket.socket, greeting: bytes, token: bytes) -> bytes | None:
    """Return a greeting with the bytes that have arrived since; None if it is not one of this mesh."""
    try:
        received = connection.recv(len(token) + _UINT64.size - len(greeting))
    except BlockingIOError:
        return greeting
    except OSError:
        return None
    greeting += received
    is_valid = len(greeting) < len(token) or hmac.compare_digest(greeting[: len(token)], token)
    return greeting if received and is_valid else None


def connect_driver(addresses: Sequence[tuple[str, int]], token: bytes, timeout: float) -> SocketMesh:
    """Connect the driver to the first shard; its number is that after the last shard."""
    size = len(addresses)
    try:
        return SocketMesh(size, size, {0: _connect_to(addresses[0], size, token, timeout)})
    except OSError as error:
        raise ShardLostError(f"The driver could not connect to the first shard: {error}") from error


def _connect_to(address: tuple[str, int], index: int, token: bytes, timeout: float) -> socket.socket:
    """Connect to a peer, through a Unix socket if it is on this machine, and introduce this shard."""
    local = _open_unix_socket(lambda created: created.connect(_unix_address(address)))
    if local is not None and not _is_own_process(local):
        local.close()
        local = None
    connection = local or socket.create_connection(address, timeout)
    connection.sendall(token + _UINT64.pack(index))
    return connection


def _open_unix_socket(bind_or_connect: Callable[[socket.socket], None]) -> socket.socket | None:
    """Return a Unix socket that is bound or connected; None if that fails, or if this system has none without files."""
    if sys.platform != "linux":
        return None
    opened = socket.socket(socket.AF_UNIX)
    try:
        bind_or_connect(opened)
    except OSError:
        opened.close()
        return None
    return opened


def _is_own_process(connection: socket.socket) -> bool:
    """Return whether a process of this user listens: any user may take the name of a Unix socket without a file."""
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)  # process, user and group
    return int(struct.unpack("3i", credentials)[1]) == os.geteuid()


def _unix_address(address: tuple[str, int]) -> str:
    """Return the name of the Unix socket beside a TCP address: an abstract one, which has no file."""
    host, port = address
    return f"\0ripplevec {host}:{port}"


class SocketMesh(Mesh):
    """The mesh of shards in different processes, one connection per pair."""

    def __init__(self, index: int, size: int, sockets: dict[int, socket.socket]) -> None:
        super().__init__(index, size)
        self._sockets = sockets
        self._sender = ThreadPoolExecutor(1, thread_name_prefix=f"mesh-{index}")
        self._sending: Future[None] | None = None
        self._closing = Lock()
        for connection in sockets.values():
            connection.settimeout(None)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
            if connection.family != getattr(socket, "AF_UNIX", None):
                _configure_tcp(connection)

    def send_parts(self, heads: Mapping[int, list[memoryview]], bodies: Mapping[int, list[memoryview]]) -> int:
        """Send small bodies immediately; if one is large, send all heads immediately and the bodies from a thread."""
        self.flush()
        lengths = list(map(_count_bytes, bodies.values()))
        if max(lengths, default=0) <= INLINE_BYTES:
            self._send({peer: head + bodies[peer] for peer, head in heads.items()})
        else:
            self._send(heads)
            self._sending = self._sender.submit(self._send, bodies)
        return sum(lengths)

    def _send(self, packed: Mapping[int, list[memoryview]]) -> None:
        for peer, parts in packed.items():
            try:
                _send_parts(self._sockets[peer], parts)
            except OSError as error:
                raise PeerLostError(f"Shard {peer} is unreachable: {error}") from error

    def flush(self) -> None:
        """Wait for the thread that sends large messages."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.result()

    def receive_parts(self, peer: int, parts: list[memoryview]) -> None:
        """Wait for the next bytes of a shard, and store them without another copy."""
        try:
            _receive_parts(self._sockets[peer], parts)
        except OSError as error:
            raise PeerLostError(f"Shard {peer} is unreachable: {error}") from error

    def close(self) -> None:
        """Close all connections."""
        with self._closing:
            for connection in self._sockets.values():
                with suppress(OSError):  # the peer may have closed it
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
        self._sender.shutdown(wait=False)


def _configure_tcp(connection: socket.socket) -> None:
    """Send small messages at once, and check on an idle connection whether the machine of the peer still answers."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}.items():
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _pack(message: Any) -> list[memoryview]:
    """Serialize a message: the number and the lengths of its parts, its pickle, and its arrays, which are not copied.

    Arrays begin at multiples of `ALIGNMENT` bytes, as the kernels expect.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    arrays = [buffer.raw() for buffer in buffers]
    lengths = [1 + len(arrays), len(pickled), *map(len, arrays)]
    parts = [memoryview(struct.pack(f"<{len(lengths)}Q", *lengths) + pickled)]
    for array in arrays:
        parts += [memoryview(bytes(-len(parts[-1]) % ALIGNMENT)), array]
    return [part for part in parts if len(part)]


def _unpack(body: memoryview) -> Any:
    """Restore a message; every part but the last is followed by padding up to the next multiple of `ALIGNMENT`."""
    (count,) = _UINT64.unpack_from(body)
    begin, parts = (1 + count) * _UINT64.size, []
    for length in struct.unpack_from(f"<{count}Q", body, _UINT64.size):
        parts.append(body[begin : begin + length])
        begin += length + -(begin + length) % ALIGNMENT
    return pickle.loads(parts[0], buffers=parts[1:])


def _count_bytes(parts: list[memoryview]) -> int:
    """Return the number of bytes in some parts."""
    return sum(map(len, parts))


def _send_parts(connection: socket.socket, parts: list[memoryview]) -> None:
    """Send all parts, as many as possible per system call."""
    while parts:
        parts = _drop_bytes(parts, connection.sendmsg(parts[:MAX_PARTS]))


def _receive_parts(connection: socket.socket, parts: list[memoryview]) -> None:
    """Fill all parts, as many as possible per system call."""
    while parts:
        count = connection.recvmsg_into(parts[:MAX_PARTS])[0]
        if not count:
            raise ConnectionResetError("connection closed")
        parts = _drop_bytes(parts, count)


def _drop_bytes(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return what is left of some parts after their first bytes have been sent or received."""
    for position, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *parts[position + 1 :]]
        count -= len(part)
    return []
