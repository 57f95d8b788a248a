"""Tests of meshes: shards exchange data, in threads and over sockets, and notice when one of them is gone."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from connected_meshes import TOKEN, connect_sockets, run

from ripplevec.cluster import mesh as meshes
from ripplevec.cluster.mesh import Mesh, MeshListener, ShardLostError, connect_driver


@pytest.mark.parametrize("size", [1, 2, 5])
def test_exchange_delivers_each_part_to_its_shard(connect: Any, size: int) -> None:
    received = run(connect(size), lambda mesh: mesh.exchange([(mesh.index, peer) for peer in range(size)]))
    assert received == [[(peer, index) for peer in range(size)] for index in range(size)]


def test_exchange_of_arrays_larger_than_all_buffers_does_not_block(connect: Any) -> None:
    def program(mesh: Mesh) -> list[float]:
        sums = []
        for step in range(3):
            parts = [np.full(3_000_000, 10 * mesh.index + peer + step, np.int16) for peer in range(3)]
            sums += [float(part.mean()) for part in mesh.exchange(parts)]
        return sums

    assert run(connect(3), program) == [
        [10 * peer + index + step for step in range(3) for peer in range(3)] for index in range(3)
    ]


@pytest.mark.parametrize("array", [np.empty((0, 4), np.float32), np.arange(6.0).reshape(2, 3)[:, ::2], np.array(7)])
def test_exchanged_arrays_are_equal_and_writable(connect: Any, array: Any) -> None:
    expected = array.copy()
    for received in run(connect(2), lambda mesh: mesh.exchange([array.copy(), array.copy()]))[0]:
        np.testing.assert_array_equal(received, expected)
        assert received.dtype == array.dtype
        received[...] = 0


def test_exchange_of_id_columns_and_nothing(connect: Any) -> None:
    parts = [pa.array(["a", "ö"]), None]
    assert run(connect(2), lambda mesh: mesh.exchange(parts)) == [[parts[0], parts[0]], [None, None]]


def test_exchange_of_nested_values_restores_types_and_alignment(connect: Any) -> None:
    matrix, flags = np.arange(6.0).reshape(3, 2), np.array([True, False])
    message = (1, [None, (matrix, np.empty((0, 4), np.float16))], {"name": flags}, matrix.T, 2**70)
    received = run(connect(2), lambda mesh: mesh.exchange([message, message]))[0][1]
    assert list(map(type, received)) == list(map(type, message))
    (number, (nothing, (rows, empty)), names, columns, large) = received
    assert (number, nothing, large) == (1, None, 2**70)
    assert (empty.shape, empty.dtype) == ((0, 4), np.float16)
    assert np.array_equal(rows, matrix)
    assert np.array_equal(columns, matrix.T)
    assert np.array_equal(names["name"], flags)


def test_packed_arrays_begin_at_aligned_addresses() -> None:
    message = [np.arange(3, dtype=np.int8), np.arange(5.0), np.arange(2, dtype=np.float32)]
    body = np.frombuffer(b"".join(meshes._pack(message)), np.uint8).copy()
    start = body.ctypes.data
    for sent, received in zip(message, meshes._unpack(body.data), strict=True):
        assert np.array_equal(sent, received)
        assert (received.ctypes.data - start) % meshes.ALIGNMENT == 0


def test_sum_adds_in_the_order_of_shards(connect: Any) -> None:
    values = [1e16, 1.0, -1e16]
    sums = run(connect(3), lambda mesh: (mesh.sum(values[mesh.index]), mesh.sum(np.array([mesh.index, 1])).tolist()))
    assert sums == [((1e16 + 1.0) - 1e16, [3, 3])] * 3


@pytest.mark.parametrize("size", [2, 4, 9])
@pytest.mark.parametrize("wait", [lambda mesh: mesh.sum(1), lambda mesh: mesh.exchange_rows(numbers=[1])])
def test_closed_shard_is_noticed_by_all_that_wait_for_it(connect: Any, size: int, wait: Callable[[Mesh], Any]) -> None:
    def program(mesh: Mesh) -> str:
        mesh.sum(1)
        if mesh.index == 1:
            mesh.close()
            return "closed"
        try:
            wait(mesh)
        except ShardLostError:
            mesh.close()
            return "lost"
        return "nothing noticed"

    assert run(connect(size), program) == ["lost", "closed", *["lost"] * (size - 2)]


def test_connection_with_wrong_token_is_refused() -> None:
    with pytest.raises(ShardLostError, match="could not connect"):
        connect_sockets(2, [TOKEN, b"another token"[: len(TOKEN)]], timeout=0.5)


def test_stranger_does_not_disturb_connecting_shards() -> None:
    listeners = [MeshListener("127.0.0.1") for _ in range(2)]
    addresses = [listener.address for listener in listeners]
    with socket.create_connection(addresses[0]) as stranger, ThreadPoolExecutor(2) as threads:
        stranger.sendall(b"x" * 100)
        with socket.create_connection(addresses[0]) as silent:
            silent.sendall(b"x")
        connected = [
            threads.submit(listener.connect, index, addresses, TOKEN, 20.0) for index, listener in enumerate(listeners)
        ]
        opened = [future.result() for future in connected]
    assert run(opened, lambda mesh: mesh.sum(1)) == [2, 2]
    for mesh in opened:
        mesh.close()


def test_many_silent_strangers_delay_no_shard() -> None:
    listeners = [MeshListener("127.0.0.1") for _ in range(2)]
    addresses = [listener.address for listener in listeners]
    strangers = [socket.create_connection(addresses[0]) for _ in range(20)]
    for stranger in strangers[::2]:
        stranger.sendall(TOKEN[:1])
    with ThreadPoolExecutor(2) as threads:
        connected = [
            threads.submit(listener.connect, index, addresses, TOKEN, 10.0) for index, listener in enumerate(listeners)
        ]
        opened = [future.result() for future in connected]
    assert run(opened, lambda mesh: mesh.sum(1)) == [2, 2]
    for connection in (*opened, *strangers):
        connection.close()


def test_strangers_that_return_do_not_postpone_the_deadline() -> None:
    listener, done = MeshListener("127.0.0.1"), Event()

    def knock() -> None:
        while not done.wait(0.05):
            with suppress(OSError):
                socket.create_connection(listener.address).close()

    knocking = Thread(target=knock)
    knocking.start()
    began = monotonic()
    with pytest.raises(ShardLostError, match="timed out"):
        listener.connect(0, [listener.address] * 2, TOKEN, 1.0)
    assert monotonic() - began < 8.0
    done.set()
    knocking.join()


@pytest.mark.skipif(sys.platform != "linux", reason="Unix sockets without a file exist on Linux only")
def test_unix_socket_of_another_user_does_not_get_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as other:
        address = listening.getsockname()
        other.bind(meshes._unix_address(address))
        other.listen()
        monkeypatch.setattr(meshes.os, "geteuid", lambda: 54_321)  # the other socket is of another user
        with meshes._connect_to(address, 1, TOKEN, 5.0) as connection:
            assert connection.family == socket.AF_INET


@pytest.mark.parametrize("unix", [True, False])
def test_driver_exchanges_messages_with_the_first_shard_only(unix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unix:
        monkeypatch.setattr(meshes, "_unix_address", lambda address: "/no/such/directory/socket")
    listener = MeshListener("127.0.0.1")
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(listener.connect, 0, [listener.address], TOKEN, 20.0, with_driver=True)
        driver = connect_driver([listener.address], TOKEN, 20.0)
    shard = first.result()
    assert (shard.size, shard.peers, driver.index) == (1, [], 1)
    driver.send_all({0: "program"})
    assert shard.receive(1) == "program"
    shard.send_all({1: np.arange(3)})
    assert driver.receive(0).tolist() == [0, 1, 2]
    shard.close()
    with pytest.raises(ShardLostError):
        driver.receive(0)
    driver.close()


def test_driver_without_first_shard_raises_shard_lost() -> None:
    listener = MeshListener("127.0.0.1")
    listener.close()
    with pytest.raises(ShardLostError, match="driver could not connect"):
        connect_driver([listener.address], TOKEN, 1.0)


def test_message_in_many_parts_is_sent_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshes, "INLINE_BYTES", 0)
    opened = connect_sockets(2)
    arrays = [np.arange(number) for number in range(200)]
    received = run(opened, lambda mesh: mesh.exchange([arrays, arrays]))
    for each in received[0]:
        assert all(map(np.array_equal, each, arrays))
    for mesh in opened:
        mesh.close()
