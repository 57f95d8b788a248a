"""Tests of gradual corrections on shards: their schedule, their result, and that they can be saved at any moment."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from ripplevec import Embedder
from ripplevec.batch import Batch, Op
from ripplevec.cluster import shard_correction
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.shard_correction import RemoteCorrection, ShardCorrection
from ripplevec.engine import correction_schedule
from ripplevec.errors import FormatError
from ripplevec.rules import gradual_correction

GRADUAL: dict[str, Any] = {"dim": 8, "anchor_growth": 0.2, "anchor_pace": "gradual", "seed": 3}
START, BATCH, BATCHES = 300, 6, 40


def arrivals(first: int, last: int) -> list[tuple[int, int]]:
    """Return the edges of new vertices: each to three earlier ones, most of them of the same of five communities."""
    rng = np.random.default_rng(first)
    edges = []
    for vertex in range(max(first, 6), last):
        earlier = rng.integers(0, vertex, 3)
        earlier[:2] = np.minimum(earlier[:2] - earlier[:2] % 5 + vertex % 5, vertex - 1)
        edges += [(vertex, int(other)) for other in earlier]
    return edges


def stream() -> list[Batch]:
    firsts = range(START, START + BATCH * BATCHES, BATCH)
    return [Batch.from_any(arrivals(first, first + BATCH)) for first in firsts]


@pytest.fixture(autouse=True)
def slow_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let corrections take several batches, as on a large graph."""
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)
    monkeypatch.setattr(correction_schedule, "MAX_SPREAD", 0.5)
    monkeypatch.setattr(shard_correction, "MIN_SHARD_CREDIT", 1)


def start(engine: Any) -> Any:
    engine.start(Batch.from_any(arrivals(0, START)))
    return engine


def vectors_of(engine: Any) -> NDArray[np.float32]:
    return np.asarray(engine.get_vectors(engine.rows_by_arrival()))


def cosines(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / lengths)


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_corrections_have_the_schedule_and_about_the_vectors_of_one_machine(
    new_cluster: Any, shards: int, storage: str
) -> None:
    parameters = GRADUAL | {"storage": storage, "threads": 1}
    one, cluster = start(Embedder(**parameters).fit([])._engine), start(new_cluster(shards, **parameters))
    for batch in stream():
        for engine in (one, cluster):
            anchors, outcome = engine.anchors, engine.apply(batch)
        assert outcome.anchored == (cluster.anchors > anchors)
        assert one.anchors - cluster.anchors in (0, 1)  # the shard with most rows may need another batch
    assert cluster.anchors == one.anchors >= 2
    cluster.check()
    one._advance_correction(inf)  # shards serve all vectors of an anchor at once
    assert cosines(vectors_of(one), vectors_of(cluster)).mean() > 0.995  # with immediate anchors: 0.96
    assert cluster.orthogonality_error() < 0.1


def test_stream_with_corrections_is_deterministic_for_a_number_of_shards(new_cluster: Any) -> None:
    digests: list[list[str]] = []
    for threads in (1, 2):
        cluster = start(new_cluster(3, **GRADUAL, threads=threads))
        digests.append([cluster.apply(batch) and cluster.digest() for batch in stream()])
    assert digests[0] == digests[1]


def test_correction_saved_and_restored_at_every_stage_continues_bit_for_bit(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up = ShardCorrection._catch_up

    def catch_up_in_two_batches(self: ShardCorrection, store: Any, credit: float) -> float:
        first = self.waited == 0
        self.waited = 1.0  # it is saved, and not used in this stage
        cost = catch_up(self, store, credit)
        return credit if first and not self.swapped else cost

    monkeypatch.setattr(ShardCorrection, "_catch_up", catch_up_in_two_batches)
    whole = start(new_cluster(3, **GRADUAL, threads=1))
    interrupted, stages = start(new_cluster(3, **GRADUAL, threads=1)), set[str]()
    for batch in stream():
        whole.apply(batch)
        interrupted.apply(batch)
        correction = interrupted.transport.shards[0].correction
        stages |= set() if correction is None else {correction.stage_name}
        state = dict(interrupted.state())
        interrupted = new_cluster(3, **GRADUAL, threads=1)
        interrupted.restore(state)
        assert interrupted.digest() == whole.digest()
    assert whole.anchors >= 2
    assert stages >= {"filter", "project", "solve", "transform", "catch_up"}


def test_correction_takes_many_small_calls_and_blocks_no_reader(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    processed: list[int] = []
    process = ShardCorrection._process_range

    def count_rows(self: ShardCorrection, store: Any, last: int, *arguments: Any) -> None:
        if self.stage_name != "announce":
            processed.append(last - self.cursor)
        process(self, store, last, *arguments)

    monkeypatch.setattr(ShardCorrection, "_process_range", count_rows)
    cluster, per_arrival, vertex = start(new_cluster(2, **GRADUAL, threads=1)), list[int](), START
    while not cluster.anchors:
        batch, vertex = Batch.from_any(arrivals(vertex, vertex + 1)), vertex + 1
        assert not cluster.may_trigger_anchor(batch)
        processed.clear()
        cluster.apply(batch)
        per_arrival.append(sum(processed))
    assert np.count_nonzero(per_arrival) > 6
    assert max(per_arrival) < sum(per_arrival) / 4


def test_stream_with_removals_and_aging_keeps_a_consistent_state(new_cluster: Any) -> None:
    rng, digests = np.random.default_rng(5), list[str]()
    drawn = rng.permutation(START)
    for _ in range(2):
        cluster = start(new_cluster(3, **GRADUAL, threads=1, half_life=40.0, expire_after=90.0))
        for number, batch in enumerate(stream()):
            edges = Batch.of(batch.src, batch.dst, time=np.full(len(batch), 10.0 * number))
            cluster.apply(edges)
            removed = drawn[3 * number : 3 * number + 3]
            removed = removed[cluster.find_rows(removed) >= 0]
            cluster.apply(Batch.vertices(removed, Op.REMOVE_VERTEX))
            cluster.check()
        assert cluster.anchors >= 2
        assert np.isfinite(vectors_of(cluster)).all()
        digests.append(cluster.digest())
    assert digests[0] == digests[1]


def correcting_cluster(new_cluster: Any, shards: int = 2) -> Any:
    """Return a cluster with a correction in progress."""
    cluster, batches = start(new_cluster(shards, **GRADUAL, threads=1)), iter(stream())
    while cluster.correction is None:
        cluster.apply(next(batches))
    return cluster


def test_anchor_replaces_a_correction_in_progress(new_cluster: Any) -> None:
    cluster = correcting_cluster(new_cluster)
    anchors = cluster.anchors
    cluster.anchor()
    assert (cluster.anchors, cluster.correction) == (anchors + 1, None)
    assert [shard.correction for shard in cluster.transport.shards] == [None, None]
    assert cluster.orthogonality_error() < 1e-4


def test_removal_of_all_edges_ends_a_correction(new_cluster: Any) -> None:
    cluster = correcting_cluster(new_cluster)
    ids = cluster.ids_of(cluster.rows_by_arrival())
    cluster.apply(Batch.vertices(np.array(ids), Op.REMOVE_VERTEX))
    assert (cluster.correction, cluster.ready, len(cluster)) == (None, False, 0)
    start(cluster)
    cluster.check()


def test_correction_without_usable_vectors_is_refused_and_keeps_vectors(
    new_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradual_correction, "_solve_rotation", lambda products: None)
    cluster = start(new_cluster(2, **GRADUAL, threads=1))
    for batch in stream():
        cluster.apply(batch)
    assert cluster.anchors == 0
    assert cluster.anchors_refused >= 1
    cluster.check()


def test_change_of_views_is_computed_at_once(new_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = start(new_cluster(2, **GRADUAL, threads=1))
    monkeypatch.setattr(ClusterEngine, "_begin_correction", lambda self: None)
    for batch in stream():
        cluster.apply(batch)
        assert cluster.correction is None
    assert cluster.anchors >= 2


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("shard1_pending_stage", None, "some of its parts are missing"),
        ("pending_credit", np.array(np.nan), "finite"),
        ("pending_pace", None, "pace"),
        ("shard1_pending_passes", np.array(1), "passes differs between shards"),
        ("shard0_pending_first_new", np.array(10**6), "out of range"),
        ("shard0_pending_cursor", np.array(10**6), "out of range"),
    ],
)
def test_damaged_saved_correction_is_rejected(new_cluster: Any, name: str, value: Any, fault: str) -> None:
    state = dict(correcting_cluster(new_cluster).state())
    if value is None and name.startswith("shard"):
        state = {key: array for key, array in state.items() if not key.startswith("shard1_pending_")}
    elif value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(FormatError, match=fault):
        new_cluster(2, **GRADUAL, threads=1).restore(state)


def test_correction_that_an_earlier_version_had_begun_is_dropped(new_cluster: Any) -> None:
    state = dict(correcting_cluster(new_cluster).state())
    for name in ("shard0_pending_column_parts", "shard1_pending_column_parts"):
        del state[name]
    restored = new_cluster(2, **GRADUAL, threads=1)
    restored.restore(state)
    assert restored.correction is None
    restored.apply(stream()[-1])


def test_remote_correction_saves_its_pace(new_cluster: Any) -> None:
    cluster = correcting_cluster(new_cluster)
    restored = RemoteCorrection(cluster, 3)
    restored.restore(cluster.correction.state())
    assert restored.earn_credit(1.0) == cluster.correction.earn_credit(1.0) > 0


def test_rows_are_converted_by_one_thread_of_blas() -> None:
    """BLAS may add in another order on two threads; shards may be on machines with different numbers of cores."""
    workspace, threads = SimpleNamespace(rows=SimpleNamespace(array=np.zeros((9, 4), np.float32))), set[int]()

    def axes() -> NDArray[np.float32]:
        threads.update(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return np.eye(4, dtype=np.float32)

    correction: Any = SimpleNamespace(workspace=workspace, _old_to_new_axes=axes)
    vectors = np.arange(36, dtype=np.float32).reshape(9, 4)
    with threadpool_limits(2, "blas"):
        ShardCorrection._convert_rows(correction, SimpleNamespace(vectors=vectors), np.arange(1, 9))  # type: ignore[arg-type]
    assert threads == {1}
    assert np.array_equal(workspace.rows.array[1:], vectors[1:])
    assert not workspace.rows.array[0].any()
