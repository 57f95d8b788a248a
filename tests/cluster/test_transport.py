"""Tests of the in-process transport, and of the method names that the driver sends to shards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ripplevec.cluster
from ripplevec.batch import Batch
from ripplevec.cluster.mesh import Mesh
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport

PACKAGE = Path(ripplevec.cluster.__file__).parent
CALLERS = ("run", "call", "query", "query_rows", "submit")
"""Functions whose first argument is the name of a `Shard` method."""


class Recorder:
    """Stands in for a shard and returns the arguments of a call."""

    mesh: Mesh

    def __init__(self, index: int) -> None:
        self.index = index

    def pass_on(self, value: int, *, steps: int) -> int:
        """Pass a value to the next shard some times."""
        for _ in range(steps):
            parts = [value if shard == (self.index + 1) % self.mesh.size else None for shard in range(self.mesh.size)]
            value = self.mesh.exchange(parts)[self.index - 1]
        return value

    def fail_on(self, shard: int) -> int:
        """Fail on one shard; the others wait for it."""
        if self.index == shard:
            raise MemoryError("no room")
        return self.mesh.sum(1)

    def echo(self, *arguments: Any, **constants: Any) -> Any:
        return self.index, arguments, constants


def named_methods() -> Iterator[tuple[str, str]]:
    """Yield the file and the method name of all calls by name in the package."""
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                method = node.args[0]
                if node.func.attr in CALLERS and isinstance(method, ast.Constant) and isinstance(method.value, str):
                    yield path.name, method.value


def new_transport(size: int) -> Any:
    return LocalTransport(size, Recorder)  # type: ignore[arg-type]


def test_call_gives_each_shard_its_entry_and_all_constants() -> None:
    results = new_transport(3).call("echo", ["a", "b", "c"], [1, 2, 3], flag=True)
    assert results == [(0, ("a", 1), {"flag": True}), (1, ("b", 2), {"flag": True}), (2, ("c", 3), {"flag": True})]


def test_call_accepts_results_of_an_earlier_call() -> None:
    transport = new_transport(2)
    first = transport.call("echo", ["a", "b"])
    assert [arguments for _, arguments, _ in transport.call("echo", first)] == [(first[0],), (first[1],)]


def test_get_returns_results_in_order() -> None:
    transport = new_transport(3)
    assert [index for index, _, _ in transport.get(transport.call("echo"))] == [0, 1, 2]
    assert transport.get(()) == []


def test_run_lets_shards_exchange_data() -> None:
    assert new_transport(3).run("pass_on", [10, 11, 12], steps=4) == [12, 10, 11]


def test_run_that_fails_on_one_shard_raises_its_error_and_can_be_repeated() -> None:
    transport = new_transport(3)
    with pytest.raises(MemoryError, match="no room"):
        transport.run("fail_on", shard=1)
    assert transport.run("fail_on", shard=5) == [3, 3, 3]


def test_call_of_unknown_method_raises() -> None:
    with pytest.raises(AttributeError, match="no_such_method"):
        new_transport(1).call("no_such_method")


def test_drop_releases_all_shards(new_cluster: Any) -> None:
    cluster = new_cluster(3)
    cluster.apply(Batch.from_any(np.array([[0, 1], [1, 2], [2, 3]])))
    assert sum(len(shard.graph) for shard in cluster.transport.shards) == 4
    cluster.transport.drop()
    assert cluster.transport.shards == []


def test_methods_called_by_name_exist() -> None:
    calls = list(named_methods())
    assert len(calls) > 20
    assert [call for call in calls if not callable(getattr(Shard, call[1], None))] == []
