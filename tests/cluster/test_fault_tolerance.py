"""Shards that are lost, here and on purpose: nobody is told anything that does not hold."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from ripplevec.cluster import fault_tolerance
from ripplevec.cluster.fault_tolerance import FaultTolerantEngine
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.transport import LocalTransport, ShardLostError
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import FormatError, StateError
from ripplevec.parameters import Parameters

HOW: dict[str, Any] = {"dim": 4, "anchor_growth": 0, "threads": 1}


class FailingTransport(LocalTransport):
    """Shards that are gone when told to be, until they are opened again."""

    down = False
    opening = threading.Event()
    go_on = threading.Event()
    failing: BaseException | None = None

    def reset(self) -> None:
        self.opening.set()
        self.go_on.wait(30)
        if self.failing is not None:
            raise self.failing
        self.down = False
        super().reset()

    def call(self, method: str, *columns: Sequence[Any], parts: int = 0, **constants: Any) -> list[Any]:
        if self.down:
            return [[ShardLostError("gone")] * parts if parts else ShardLostError("gone")] * self.size
        return super().call(method, *columns, parts=parts, **constants)

    def get(self, answers: Sequence[Any]) -> list[Any]:
        for answer in answers:
            if isinstance(answer, ShardLostError):
                raise answer
        return list(answers)


class OnFrailShards(Embedder):
    def _create_engine(self, parameters: Parameters) -> Engine:
        engine = FaultTolerantEngine(FailingTransport(2, lambda number: Shard(number, 2, parameters)), parameters)
        return cast(Engine, engine)

    @property
    def transport(self) -> Any:
        return cast(Any, self.engine).transport


@pytest.fixture(autouse=True)
def nobody_waits() -> None:
    FailingTransport.opening, FailingTransport.go_on = threading.Event(), threading.Event()
    FailingTransport.go_on.set()


def edges(seed: int, count: int = 60) -> list[tuple[int, int]]:
    return np.random.default_rng(seed).integers(0, 40, (count, 2)).tolist()


def both() -> tuple[Embedder, OnFrailShards]:
    return Embedder(**HOW).fit(edges(0)), OnFrailShards(**HOW).fit(edges(0))


def test_a_state_that_was_taken_over_is_what_shards_go_back_to() -> None:
    alone, first = both()
    model = OnFrailShards(**HOW)
    cast(Any, model.engine).restore(first.engine.state())
    for turn in (1, 2):
        model.transport.down = True
        assert model.digest() == alone.digest()
        alone.partial_fit(edges(turn))
        model.transport.down = True
        model.partial_fit(edges(turn))
    assert model.digest() == alone.digest()
    model.check()


def test_a_state_that_cannot_be_taken_over_leaves_an_empty_model() -> None:
    alone, first = both()
    model, state = OnFrailShards(**HOW), first.engine.state()
    with pytest.raises(FormatError):
        cast(Any, model.engine).restore({name: state[name] for name in state if name != "counters"})
    assert len(model) == 0
    model.fit(edges(0))
    assert model.digest() == alone.digest()


def test_without_room_for_a_snapshot_the_batches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, model = both()
    cast(Any, model.engine).snapshot_every = 1

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(fault_tolerance, "write_arrays", full)
    for turn in (1, 2, 3):
        alone.partial_fit(edges(turn))
        model.partial_fit(edges(turn))
    model.transport.down = True
    assert model.digest() == alone.digest()


def test_whoever_reads_while_shards_come_back_waits_and_sees_no_other_state() -> None:
    alone, model = both()
    found: list[Any] = []
    FailingTransport.opening.clear()
    FailingTransport.go_on.clear()
    model.transport.down = True
    readers = [threading.Thread(target=lambda: found.append(model.to_numpy())) for _ in range(4)]
    for reader in readers:
        reader.start()
    FailingTransport.opening.wait(30)
    assert (model.sequence, len(model)) == (alone.sequence, len(alone))
    assert found == []
    FailingTransport.go_on.set()
    for reader in readers:
        reader.join()
    assert all(np.array_equal(vectors, alone.to_numpy()) for vectors in found)
    assert len(found) == 4
    assert cast(Any, model.engine).recoveries == 1


def test_changes_that_were_lost_are_asked_for_again_until_another_batch_comes() -> None:
    alone, model = both()
    mine, theirs = alone.partial_fit(edges(1)), model.partial_fit(edges(1))
    theirs._inside = cast(Any, [ShardLostError("gone")] * 2)
    np.testing.assert_array_equal(mine.vectors, theirs.vectors)
    late = model.partial_fit(edges(2))
    late._inside = cast(Any, [ShardLostError("gone")] * 2)
    model.partial_fit(edges(3))
    with pytest.raises(ShardLostError):
        late.vectors  # noqa: B018


def test_shards_that_do_not_come_back_are_an_error_and_are_tried_again_later() -> None:
    alone, model = both()
    model.transport.down, model.transport.failing = True, StateError("no shards")
    with pytest.raises(StateError, match="no shards"):
        model.partial_fit(edges(1))
    with pytest.raises(StateError, match="no shards"):
        model.to_numpy()
    model.transport.failing = None
    assert model.digest() == alone.digest()
    for one in (alone, model):
        one.partial_fit(edges(1))
    assert model.digest() == alone.digest()


def test_whoever_reads_beside_an_anchor_that_is_interrupted_is_told_to_ask_again() -> None:
    alone, model = both()
    transport, told = model.transport, []
    call = transport.call

    def read() -> None:
        with pytest.raises(ShardLostError, match="ask again"):
            model.to_numpy()
        told.append(True)

    def deadly(method: str, *columns: Any, **constants: Any) -> Any:
        if method == "run_matrix_step" and not model.lock._gate.locked() and not told:  # readers see the copies
            transport.down = True
            reader = threading.Thread(target=read)
            reader.start()
            reader.join()
        return call(method, *columns, **constants)

    transport.call = deadly
    model.anchor()
    alone.anchor()
    assert told
    np.testing.assert_allclose(model.to_numpy(), alone.to_numpy(), atol=1e-4)
