"""Tests of lost shards, in this process: a session recovers them, a model without a session becomes unusable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from ripplevec import Embedder, Session
from ripplevec.batch import Batch, Op
from ripplevec.changes import Changes
from ripplevec.cluster import sharded_embedder
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded, ShardedEmbedder
from ripplevec.cluster.transport import LocalTransport
from ripplevec.durability import session as sessions
from ripplevec.engine import correction_schedule
from ripplevec.errors import LostStateError, StateError
from ripplevec.io.protocols import ReadResult
from ripplevec.service import vector_store_sync

PARAMETERS: dict[str, Any] = {"dim": 4, "anchor_growth": 0, "anchor_pace": "immediate", "threads": 1}
WAIT = 60.0


class FailingTransport(LocalTransport):
    """Shards that are lost when `fail` returns True for the name of a method; new shards replace them."""

    fail: Callable[[str], bool] = staticmethod(lambda method: False)
    created = 0
    may_continue = threading.Event()

    def __init__(self, *arguments: Any) -> None:
        type(self).created += 1
        self.may_continue.wait(WAIT)
        self.lost = False
        super().__init__(*arguments)

    def _lose(self, method: str) -> None:
        self.lost = self.lost or FailingTransport.fail(method)
        if self.lost:
            raise ShardLostError("gone")

    def run(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        self._lose(method)
        return super().run(method, *columns, **constants)

    def call(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        if method != "drop_read_snapshot":
            self._lose(method)
        return super().call(method, *columns, **constants)


def lose_once(wanted: str) -> None:
    """Lose all shards at the next call of a method."""
    lost: list[str] = []

    def fail(method: str) -> bool:
        if method != wanted or lost:
            return False
        lost.append(method)
        return True

    FailingTransport.fail = staticmethod(fail)


@pytest.fixture(autouse=True)
def failing_transport(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sharded_embedder, "LocalTransport", FailingTransport)
    FailingTransport.fail, FailingTransport.created = staticmethod(lambda method: False), 0
    FailingTransport.may_continue = threading.Event()
    FailingTransport.may_continue.set()
    yield
    FailingTransport.may_continue.set()


def edges(seed: int, count: int = 60) -> list[tuple[int, int]]:
    drawn = np.random.default_rng(seed).integers(0, 40, (count, 2)).tolist()
    return [(u, v) for u, v in drawn if u != v]


def open_session(directory: Path, **options: Any) -> Session:
    return Session(directory, model=Sharded(2, IN_PROCESS), **PARAMETERS | options)


def single_after(*seeds: int, **options: Any) -> Embedder:
    single = Embedder(**PARAMETERS | options)
    for seed in seeds:
        single.partial_fit(edges(seed))
    return single


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("method", ["apply_batch", "create_read_snapshot", "anchor"])
def test_session_applies_interrupted_batch_once(tmp_path: Path, method: str, snapshot: bool) -> None:
    options = {} if method == "apply_batch" else {"anchor_growth": 0.01}
    with open_session(tmp_path, **options) as session:
        for seed in (0, 1):
            session.apply(edges(seed))
        if snapshot:
            session.snapshot()
        lose_once(method)
        changes = session.apply(edges(2), key="third")
        assert (changes.sequence, session.recoveries) == (3, 1)
        assert session.apply(edges(2), key="third").ids == []
        single = single_after(0, 1, 2, **options)
        assert session.model.ids == single.ids
        assert np.allclose(session.model.to_numpy(), single.to_numpy(), atol=1e-4)
        assert options or session.model.digest() == single.digest()
        session.model.check()
    assert FailingTransport.created > 1


@pytest.mark.parametrize("method", ["apply_batch", "read_kept", "write_attributes"])
@pytest.mark.parametrize("snapshot", [False, True])
def test_session_applies_interrupted_batch_with_attributes_once(tmp_path: Path, method: str, snapshot: bool) -> None:
    options, single = {"attribute_dim": 2}, Embedder(**PARAMETERS | {"attribute_dim": 2})
    with open_session(tmp_path, **options) as session:
        for seed in range(4):
            tags = {vertex: {f"t{(vertex + seed) % 4}": 1.0, "of": 2.0} for vertex in range(seed, 40, 3)}
            if seed == 2 and snapshot:
                session.snapshot()
            if seed == 3:
                lose_once(method)
            for model in (session, single):
                model.partial_fit(edges(seed), attributes=tags)
        assert session.recoveries == 1
        assert session.model.digest() == single.digest()
        np.testing.assert_array_equal(session.model.to_numpy(), single.to_numpy())


def test_session_with_loss_in_group_applies_each_batch_once(tmp_path: Path) -> None:
    heard: list[int] = []
    with open_session(tmp_path) as session:
        session.add_listener(lambda entry, changes: heard.append(changes.sequence))
        session.apply(edges(0))
        lose_once("apply_batch")
        results = session.apply_many([edges(1), edges(2), [("a", "b", -1.0)], edges(3)])
        assert [getattr(result, "sequence", None) for result in results] == [2, 3, None, 4]
        assert session.model.digest() == single_after(0, 1, 2, 3).digest()
        assert (heard, session.recoveries) == ([1, 2, 3, 4], 1)


def test_session_with_loss_during_admission_recovers(tmp_path: Path) -> None:
    removal = Batch.of([1, 2], [1, 2], op=[Op.REMOVE_VERTEX] * 2)
    with open_session(tmp_path) as session:
        session.apply(edges(0))
        lose_once("find_rows")
        assert session.apply(removal).removed == [1, 2]
        single = single_after(0)
        single.partial_fit(removal)
        assert session.model.digest() == single.digest()


def test_reads_of_lost_shards_are_told_to_retry_and_wait_for_recovery(
    tmp_path: Path, read_until_recovered: Callable[[Callable[[], Any]], Any]
) -> None:
    with open_session(tmp_path) as session:
        session.apply(edges(0))
        expected, vectors = session.model.to_numpy(), list[Any]()
        FailingTransport.may_continue.clear()
        lose_once("read_rows")
        with pytest.raises(LostStateError, match=r"gone\). The session recovers it; retry\."):
            session.model.to_numpy()
        readers = [
            threading.Thread(target=lambda: vectors.append(read_until_recovered(session.model.to_numpy)))
            for _ in range(4)
        ]
        for reader in readers:
            reader.start()
        FailingTransport.may_continue.set()
        for reader in readers:
            reader.join(WAIT)
        assert len(vectors) == 4
        assert all(np.array_equal(read, expected) for read in vectors)
        assert session.recoveries == 1
        assert session.apply(edges(1)).sequence == 2
        assert session.model.digest() == single_after(0, 1).digest()


def test_session_whose_shards_are_lost_again_and_again_fails_and_can_be_reopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_RECOVERIES", 2)
    with open_session(tmp_path) as session:
        session.apply(edges(0))
        FailingTransport.fail = staticmethod(lambda method: method == "apply_batch")
        with pytest.raises(LostStateError, match="gone"):
            session.apply(edges(1))
        with pytest.raises(StateError, match="Open the directory again"):
            session.apply(edges(2))
        with pytest.raises(StateError, match="Open the directory again"):
            session.model.to_numpy()
    FailingTransport.fail = staticmethod(lambda method: False)
    with open_session(tmp_path) as session:
        assert session.model.digest() == single_after(0, 1).digest()


def test_shard_lost_while_a_snapshot_is_loaded_does_not_discard_the_snapshot(tmp_path: Path) -> None:
    with open_session(tmp_path) as session:
        session.apply(edges(0))
        session.snapshot()
    lose_once("restore")
    with pytest.raises(LostStateError):
        open_session(tmp_path)
    with open_session(tmp_path) as session:
        assert (session.recovery.snapshot, session.recovery.notes) == (1, [])


class ListSource:
    """A source of batches that are all available at once."""

    name = "list"

    def __init__(self, batches: list[Batch]) -> None:
        self._batches, self._next = batches, 0

    def open(self, position: Any) -> None:
        self._next = position or 0

    def read(self, timeout: float) -> ReadResult | None:
        if self._next == len(self._batches):
            raise EOFError
        self._next += 1
        return ReadResult(self._batches[self._next - 1], self._next)

    def acknowledge(self, position: Any) -> None:
        pass

    def close(self) -> None:
        pass


class VectorSink:
    """A sink that reads all vectors, and loses the shards before the second batch."""

    def __init__(self) -> None:
        self.sequences: list[int] = []

    def write(self, changes: Changes) -> None:
        if changes.sequence == 2 and not self.sequences[1:]:
            lose_once("read_changed_vectors")
        assert changes.vectors.shape[0] == len(changes.ids)
        self.sequences.append(changes.sequence)

    def flush(self) -> None:
        pass


def test_sinks_receive_changes_whose_vectors_were_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ripplevec.cluster.shard.MAX_SUMMARY_BYTES", 0)
    sink = VectorSink()
    with open_session(tmp_path) as session:
        source = ListSource([Batch.from_any(edges(seed)) for seed in range(3)])
        assert session.run(cast(Any, source), [cast(Any, sink)]) == 3
        assert session.recoveries == 1
        assert session.model.digest() == single_after(0, 1, 2).digest()
    assert sorted(set(sink.sequences)) == [1, 2, 3]


@pytest.mark.parametrize("method", ["apply_batch", "read_rows"])
def test_model_without_session_is_unusable_after_a_loss(tmp_path: Path, method: str) -> None:
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, **PARAMETERS).fit(edges(0))
    model.save(tmp_path / "saved")
    lose_once(method)
    with pytest.raises(LostStateError, match="Load the last saved model; a session recovers lost shards automatically"):
        model.partial_fit(edges(1)) if method == "apply_batch" else model.to_numpy()
    for use in (model.to_numpy, lambda: model.partial_fit(edges(1)), model.digest):
        with pytest.raises(StateError, match="Load the last saved model"):
            use()
    loaded = ShardedEmbedder.load(tmp_path / "saved", address=IN_PROCESS)
    single = Embedder(**PARAMETERS).fit(edges(0))
    for embedder in (loaded, single):
        embedder.partial_fit(edges(1))
    assert loaded.digest() == single.digest()


class DictSink:
    """A vector store that is a dictionary."""

    def __init__(self) -> None:
        self.vectors: dict[Any, list[float]] = {}
        self.last = 0  # sequence number of the last batch in it

    def synchronize(self, model: Embedder) -> int:
        self.vectors = dict(zip(model.ids, model.to_numpy().tolist(), strict=True))
        self.last = model.sequence
        return self.last

    def write(self, changes: Changes) -> None:
        self.vectors |= dict(zip(changes.ids, changes.vectors.tolist(), strict=True))
        self.last = changes.sequence

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("method", ["read_rows", "read_changed_vectors", "apply_batch"])
def test_vector_store_is_complete_after_loss_of_shards(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = DictSink()
    monkeypatch.setattr("ripplevec.cluster.shard.MAX_SUMMARY_BYTES", 0)  # changed vectors stay on the shards
    monkeypatch.setattr(vector_store_sync, "_RETRY_SECONDS", 0.01)
    with open_session(tmp_path) as session:
        session.apply(edges(0))
        if method == "read_rows":  # while the store is filled
            lose_once(method)
        sync = vector_store_sync.VectorStoreSync(session, sink)
        wait_until(lambda: sink.last == 1)
        if method != "read_rows":
            lose_once(method)
        for sequence in (2, 3, 4):
            session.apply(edges(sequence))
            wait_until(lambda sequence=sequence: sink.last == sequence)  # type: ignore[misc]
        sync.close()
        expected = single_after(0, 2, 3, 4)
        assert sink.vectors == dict(zip(expected.ids, expected.to_numpy().tolist(), strict=True))
        assert session.recoveries == 1


def test_session_with_loss_during_gradual_correction_continues_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)  # corrections take several batches
    monkeypatch.setattr(correction_schedule, "MAX_SPREAD", 0.5)
    monkeypatch.setattr("ripplevec.cluster.shard_correction.MIN_SHARD_CREDIT", 1)
    digests: list[list[str]] = []
    for name in ("interrupted", "whole"):
        with open_session(tmp_path / name, anchor_growth=0.1, anchor_pace="gradual") as session:
            session.apply(edges(0, 200))
            digests.append([])
            for seed in range(1, 12):
                if name == "interrupted" and seed in (2, 5, 8):
                    lose_once("advance_correction")
                if seed == 5:
                    session.snapshot()  # in the middle of a correction
                session.apply(edges(seed, 6))
                digests[-1].append(session.model.digest())
            assert session.model.engine.anchors >= 1
            assert (session.recoveries >= 2) == (name == "interrupted")
    assert digests[0] == digests[1]
