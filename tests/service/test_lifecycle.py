"""Lifecycle of the runtime: recovery, write timeouts, final snapshot, warm-up."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ripplevec.batch import Batch
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.sharded_embedder import IN_PROCESS
from ripplevec.cluster.transport import LocalTransport
from ripplevec.durability.session import Session
from ripplevec.durability.session_model import build_metadata, create_model
from ripplevec.embedder import Embedder
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.graph import MIN_EDGES_FOR_THREADS
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.service import lifecycle
from ripplevec.service.lifecycle import Runtime, warm_up
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.settings import Limits, Settings


def make_settings(tmp_path: Path, **options: Any) -> Settings:
    return Settings(state=tmp_path / "state", **{"parameters": {"dim": 4, "threads": 1}} | options)


def run_with_runtime(settings: Settings, work: Callable[[Runtime], Any]) -> Any:
    async def run() -> Any:
        runtime = Runtime(settings)
        runtime.start()
        while runtime.status == "recovering":
            await asyncio.sleep(0.005)
        try:
            return await work(runtime)
        finally:
            await asyncio.to_thread(runtime.stop)

    return asyncio.run(run())


def test_runtime_stop_writes_a_snapshot(tmp_path: Path) -> None:
    async def work(runtime: Runtime) -> str:
        for number in range(5):
            await runtime.writer.write(Batch.of([number], [number + 1]), None)
        return runtime.model.digest()

    digest = run_with_runtime(make_settings(tmp_path), work)
    with Session(tmp_path / "state") as session:
        assert (session.recovery.snapshot, session.recovery.replayed) == (5, 0)
        assert session.model.digest() == digest


def test_runtime_damaged_state_fails_and_rejects_requests(tmp_path: Path) -> None:
    Session(tmp_path / "state", dim=4).close()
    (tmp_path / "state" / "journal.sqlite").write_bytes(b"nonsense" * 1000)
    for rest in (tmp_path / "state").glob("journal.sqlite-*"):
        rest.unlink()

    async def work(runtime: Runtime) -> None:
        assert runtime.status == "failed"
        assert isinstance(runtime.failure, FormatError)
        with pytest.raises(RejectedRequest):
            await runtime.writer.write(Batch.of(["a"], ["b"]), None)

    run_with_runtime(make_settings(tmp_path), work)


def test_runtime_parameters_differing_from_state_fail(tmp_path: Path) -> None:
    Session(tmp_path / "state", dim=8).close()

    async def work(runtime: Runtime) -> None:
        assert isinstance(runtime.failure, InvalidValueError)

    run_with_runtime(make_settings(tmp_path), work)


@pytest.mark.parametrize(
    "addresses",
    [
        {"sink": "foo://x"},
        {"sink": "lancedb://store?tabel=x"},
        {"source": "foo://x"},
        {"source": "edges.csv?heder=yes"},
        {"source": "-", "dead_letters": "letters.txt"},
    ],
)
def test_runtime_with_an_invalid_address_fails_before_a_state_is_created(
    tmp_path: Path, addresses: dict[str, str]
) -> None:
    async def work(runtime: Runtime) -> None:
        assert isinstance(runtime.failure, InvalidValueError)

    run_with_runtime(make_settings(tmp_path, **addresses), work)
    assert not (tmp_path / "state").exists()


def test_runtime_write_timeout_is_rejected_and_retry_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(runtime: Runtime) -> None:
        release = asyncio.Event()
        loop = asyncio.get_running_loop()
        apply_many = runtime.session.apply_many

        def slow(entries: Any) -> Any:
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
            return apply_many(entries)

        monkeypatch.setattr(runtime.session, "apply_many", slow)
        with pytest.raises(RejectedRequest, match="same key") as rejected:
            await runtime.writer.write(Batch.of(["a"], ["b"]), "k")
        assert rejected.value.status == 503
        release.set()
        monkeypatch.undo()
        again = None
        while again is None:  # on a busy machine the first write may not be complete yet
            with suppress(RejectedRequest):
                again = await runtime.writer.write(Batch.of(["a"], ["b"]), "k")
        assert again.repeated
        assert runtime.model.sequence == 1

    run_with_runtime(make_settings(tmp_path, limits=Limits(write_seconds=0.3)), work)


@pytest.mark.parametrize("parameters", [{"dim": 8}, {"dim": 4, "rule": "paper", "directed": True}])
def test_warm_up_leaves_the_model_unchanged(parameters: dict[str, Any]) -> None:
    model = create_model(build_metadata(parameters), threads=1)
    before = model.digest()
    warm_up(model)
    assert (model.digest(), len(model)) == (before, 0)


def test_warm_up_logs_nothing_about_its_small_model(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ripplevec.rules")
    model = create_model(build_metadata({"dim": 8}), threads=1)
    warm_up(model)
    assert caplog.messages == []
    ends = [(vertex, (vertex + step) % 300) for vertex in range(300) for step in (1, 2, 5)]
    model.apply_batch(Batch.of(*map(list, zip(*ends, strict=True))))
    assert any(message.startswith("views chosen") for message in caplog.messages)


def test_warm_up_does_not_silence_other_threads(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ripplevec.rules")
    log = logging.getLogger("ripplevec.rules")
    with lifecycle._only_warnings("ripplevec.rules"):
        thread = threading.Thread(target=log.info, args=["from another thread"])
        thread.start()
        thread.join()
        log.info("from this thread")
        log.warning("a warning")
    log.info("afterwards")
    assert caplog.messages == ["from another thread", "a warning", "afterwards"]


def test_warm_up_applies_a_batch_that_is_large_enough_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    apply = Adjacency.apply

    def record_and_apply(self: Adjacency, op: Any, *arguments: Any) -> Any:
        sizes.append(len(op))
        return apply(self, op, *arguments)

    monkeypatch.setattr(Adjacency, "apply", record_and_apply)
    warm_up(create_model(build_metadata({"dim": 8}), threads=2))
    assert max(sizes) >= MIN_EDGES_FOR_THREADS > min(sizes)


def test_warm_up_completes_a_gradual_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    swapped: list[int] = []
    swap = GradualCorrection._swap

    def record_and_swap(self: GradualCorrection, *arguments: Any) -> None:
        swapped.append(self.since)
        swap(self, *arguments)

    monkeypatch.setattr(GradualCorrection, "_swap", record_and_swap)
    warm_up(create_model(build_metadata({"dim": 8}), threads=1))
    assert swapped


def test_service_on_shards_recovers_lost_shards(start: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A write succeeds and is applied once; reads succeed, or get status 503 and succeed when they are repeated."""
    service, to_lose = start(shards=2, ray_address=IN_PROCESS), set[str]()

    def lose_once(name: str) -> None:
        function = getattr(LocalTransport, name)

        def wrapped(self: LocalTransport, method: str, *columns: Any, **constants: Any) -> Any:
            if method in to_lose:
                to_lose.remove(method)
                raise ShardLostError("gone")
            return function(self, method, *columns, **constants)

        monkeypatch.setattr(LocalTransport, name, wrapped)

    lose_once("run")
    lose_once("call")
    ring = [[f"r{i}", f"r{(i + step) % 40}"] for i in range(40) for step in (1, 2)]
    assert service.edges(*ring).status_code == 200
    to_lose.add("apply_batch")
    assert service.edges(["new", "r1"], ["new", "r2"], key="once").json()["sequence"] == 2
    assert service.edges(["new", "r1"], ["new", "r2"], key="once").json()["sequence"] == 2
    for method, path in (("read_row", "/v1/vertices/new"), ("search_nearest", "/v1/vertices/new/nearest?k=3")):
        to_lose.add(method)
        deadline = time.monotonic() + 60
        while (response := service.http.get(path)).status_code == 503 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (response.status_code, to_lose) == (200, set())
    assert service.runtime.session.recoveries == 3
    single = Embedder(dim=8, threads=1)
    for batch in ([tuple(edge) for edge in ring], [("new", "r1"), ("new", "r2")]):
        single.partial_fit(batch)
    assert service.digest() == single.digest()
