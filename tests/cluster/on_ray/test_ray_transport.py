"""Tests of the Ray transport: placement of shards, calls, and lost shards."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import id_column
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.ray_transport import (
    RayTransport,
    ShardActor,
    ShardActors,
    distribute_shards,
    find_parent,
)
from ripplevec.embedder import Embedder
from ripplevec.parameters import Parameters


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    return Embedder(dim=4, anchor_growth=0, threads=1)._validated_parameters()


@pytest.fixture(scope="module")
def actors() -> Iterator[ShardActors]:
    actors = ShardActors(2)
    yield actors
    actors.close()


@pytest.mark.parametrize(
    ("size", "processors", "expected"),
    [
        (4, {"a": 2.0, "b": 2.0}, "aabb"),
        (3, {"a": 8.0, "b": 4.0}, "aab"),
        (2, {"head": 0.0, "b": 4.0}, "bb"),
        (3, {"a": 1.0}, "aaa"),
    ],
)
def test_distribute_shards_follows_processors(size: int, processors: dict[str, float], expected: str) -> None:
    assert "".join(machine[0] for machine in distribute_shards(size, processors)) == expected


def test_actor_without_shard_raises_shard_lost(parameters: Parameters) -> None:
    actor = ShardActor()
    with pytest.raises(ShardLostError, match="Ray restarted its process"):
        actor.call(1, "sizes", {})
    actor.create_shard(1, 0, 1, parameters)
    assert actor.call(1, "sizes", {})["vertices"] == 0
    actor.drop_shard(1)
    with pytest.raises(ShardLostError):
        actor.call(1, "sizes", {})


def test_actor_drops_a_shard_whose_method_fails_and_reports_the_cause(parameters: Parameters) -> None:
    actor = ShardActor()
    actor.create_shard(1, 0, 1, parameters)
    actor.create_shard(2, 0, 1, parameters)
    with pytest.raises(AttributeError):
        actor.call(1, "no_such_method", {})
    with pytest.raises(ShardLostError, match="no_such_method failed with AttributeError"):
        actor.call(1, "sizes", {})
    assert actor.call(2, "sizes", {})["vertices"] == 0
    actor.drop_shard(2)


def test_call_returns_results_of_every_shard(actors: ShardActors, parameters: Parameters) -> None:
    transport = RayTransport(actors, parameters)
    assert [sizes["vertices"] for sizes in transport.get(transport.call("sizes"))] == [0, 0]
    ids = id_column([1, 2, 3])
    found = transport.get(transport.call("find_rows", [ids, ids]))
    assert [rows.tolist() for rows in found] == [[-1, -1, -1]] * 2
    assert transport.run("find_mismatched_shards") == [[], []]


def test_models_on_the_same_actors_are_independent(actors: ShardActors, parameters: Parameters) -> None:
    first, second = RayTransport(actors, parameters), RayTransport(actors, parameters)
    first.get(first.call("intern", [np.arange(3), np.arange(3)]))
    rows = [transport.get(transport.call("find_rows", [np.arange(3)] * 2)) for transport in (first, second)]
    assert [[part.min() for part in parts] for parts in rows] == [[0, 0], [-1, -1]]


def test_failed_call_loses_the_shards_until_new_ones_replace_them(actors: ShardActors, parameters: Parameters) -> None:
    transport = RayTransport(actors, parameters)
    with pytest.raises(AttributeError, match="no_such_method"):
        transport.get(transport.call("no_such_method"))
    with pytest.raises(ShardLostError, match="no_such_method failed"):
        transport.get(transport.call("sizes"))
    transport.drop()
    transport = RayTransport(actors, parameters)
    assert [sizes["vertices"] for sizes in transport.get(transport.call("sizes"))] == [0, 0]


@pytest.mark.parametrize("size", range(1, 20))
def test_programs_reach_every_shard_once_along_a_tree(size: int) -> None:
    assert find_parent(0, size) == size  # the driver
    depth = [0]
    for index in range(1, size):
        parent = find_parent(index, size)
        assert 0 <= parent < index
        depth.append(depth[parent] + 1)
    assert max(depth) <= int(np.ceil(np.log2(size))) if size > 1 else depth == [0]


def test_failed_program_raises_its_cause_and_loses_the_shards(actors: ShardActors, parameters: Parameters) -> None:
    transport = RayTransport(actors, parameters)
    with pytest.raises(AttributeError, match="no_such_method"):
        transport.run("no_such_method")
    with pytest.raises(ShardLostError):
        transport.run("find_mismatched_shards")
    transport.drop()
    transport = RayTransport(actors, parameters)
    assert transport.run("find_mismatched_shards") == [[], []]


def test_message_that_a_shard_cannot_read_loses_the_shards(actors: ShardActors, parameters: Parameters) -> None:
    """As between a driver and a shard with different versions of the package."""
    transport = RayTransport(actors, parameters)
    transport._mesh.send_all({0: "no program"})
    with pytest.raises(ShardLostError):
        transport._mesh.receive(0)


def test_failure_that_a_shard_reports_late_is_not_raised_again(
    actors: ShardActors, parameters: Parameters, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = RayTransport(actors, parameters)
    with monkeypatch.context() as context:  # the other shard has not failed yet when the driver asks for its error
        context.setattr(RayTransport, "_collect_failures", lambda _: [])
        with pytest.raises(ShardLostError):
            transport.run("no_such_method")
    with pytest.raises(ShardLostError):
        transport.run("find_mismatched_shards")


def test_killed_actor_raises_shard_lost_until_new_shards_replace_it(
    actors: ShardActors, parameters: Parameters, kill_shard: Any
) -> None:
    transport = RayTransport(actors, parameters)
    kill_shard(actors, 1)
    with pytest.raises(ShardLostError):
        transport.get(transport.call("sizes"))
    transport.drop()
    transport = RayTransport(actors, parameters)
    assert [sizes["vertices"] for sizes in transport.get(transport.call("sizes"))] == [0, 0]


COUNT_MAPPED_BLOCKS = """
import ctypes
import numpy as np
from ripplevec.cluster.ray_transport import keep_freed_memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "a b c hblks d e f g h i".split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
arrays = []  # freed memory would change the settings
for set_up in (lambda: None, keep_freed_memory):
    set_up()
    before = mallinfo().hblks
    arrays.append(np.empty(30 << 20, np.uint8))
    print(mallinfo().hblks - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
def test_keep_freed_memory_takes_large_arrays_from_reused_memory() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT_MAPPED_BLOCKS], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["1", "0"], done.stderr
