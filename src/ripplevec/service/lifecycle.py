"""Service lifecycle (recovering, ready, closing) and `Runtime`, the shared state of all endpoints."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from starlette.types import Receive

from ripplevec.batch import Batch, Op
from ripplevec.changes import Changes
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.durability.session_model import ModelFactory, SessionModel
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.graph.graph import MIN_EDGES_FOR_THREADS
from ripplevec.io.registry import create_vector_store_sink, dead_letters_to
from ripplevec.service.batch_writer import BatchWriter
from ripplevec.service.change_feed import ChangeFeed, EncodedChangeFeed
from ripplevec.service.coalesced_reads import CoalescedReads
from ripplevec.service.logs import log_event
from ripplevec.service.map.stream_stats import Drift
from ripplevec.service.metrics import Metrics, resident_bytes
from ripplevec.service.request_body import BodyReader
from ripplevec.service.responses import RejectedRequest, ResponseBudget
from ripplevec.service.settings import Settings
from ripplevec.service.source_follower import SourceFollower, open_source
from ripplevec.service.thread_queue import ThreadQueue
from ripplevec.service.vector_store_sync import VectorStoreSync
from ripplevec.service.vertex_labels import VertexLabels
from ripplevec.util.compilation import working_clock

READER_THREADS, SEARCH_THREADS, WRITE_TASK_THREADS = 8, 2, 4
"""Threads for short reads, for reads of the whole model, and for tasks before a write (such as decoding bodies)."""

_WARM_UP_VERTICES, _WARM_UP_ARRIVALS = 40, 4

T = TypeVar("T")


class Runtime:
    """Shared state of a running service.

    The state is recovered in the background; requests that need it are rejected with 503 until then.
    """

    def __init__(
        self,
        settings: Settings,
        on_failure: Callable[[BaseException], None] | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings
        self.status = "recovering"
        self.failure: BaseException | None = None
        limits = settings.limits
        self.write_bodies = BodyReader(limits, limits.bodies_bytes)
        self.read_bodies = BodyReader(limits, limits.read_bodies_bytes)
        self.response_budget = ResponseBudget(limits.answers_bytes)
        self.metrics = Metrics()
        self.metrics.add_gauge("ready", "1 once recovery is complete.", lambda: float(self.status == "ready"))
        self._read_queue = self._make_read_queue("reader", READER_THREADS)
        self._search_queue = self._make_read_queue("searcher", SEARCH_THREADS)
        self._map_queue = self._make_read_queue("mapper", 1)
        self._metrics_queue = self._make_read_queue("operator", 1)
        self._write_task_queue = ThreadQueue(
            "ripplevec-preparer",
            threads=WRITE_TASK_THREADS,
            max_waiting=limits.queue_requests,
            timeout=limits.write_seconds,
        )
        self._on_failure, self._on_ready = on_failure, on_ready
        self._last_seen_snapshot = (0, math.nan)  # sequence number and modification time
        self._session: Session | None = None
        self._writer: BatchWriter | None = None
        self._feed: ChangeFeed | None = None
        self._encoded_feed: EncodedChangeFeed | None = None
        self._labels: VertexLabels | None = None
        self._coalesced_reads: CoalescedReads | None = None
        self._source_follower: SourceFollower | None = None
        self._store_sync: VectorStoreSync | None = None
        self._recovery_thread = threading.Thread(target=self._recover, name="ripplevec-recovery", daemon=True)
        self._stopping = threading.Event()

    # ------------------------------------------------------------------ for endpoints

    @property
    def session(self) -> Session:
        """The session."""
        return self._require_ready(self._session)

    @property
    def model(self) -> SessionModel:
        """The model, for reading."""
        return self.session.model

    @property
    def writer(self) -> BatchWriter:
        """The only writer of the session, besides the source follower."""
        return self._require_ready(self._writer)

    @property
    def feed(self) -> ChangeFeed:
        """Changes of the most recent batches."""
        return self._require_ready(self._feed)

    @property
    def encoded_feed(self) -> EncodedChangeFeed:
        """The change feed as JSON messages."""
        return self._require_ready(self._encoded_feed)

    @property
    def labels(self) -> VertexLabels:
        """Labels of vertices."""
        return self._require_ready(self._labels)

    async def run_write_task(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a task that precedes a write, on threads that reads do not use."""
        return await self._write_task_queue.run(function, *arguments)

    async def read_inline(self, function: Callable[[], T], receive: Receive | None = None) -> T:
        """Run a read of microseconds under the read lock, on the event loop unless the model is on shards."""
        if self.settings.shards is not None:
            return await self.run_read(self._call_locked, function, receive=receive)
        return await self._require_ready(self._coalesced_reads).run(function)

    async def run_read(self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None) -> T:
        """Run a read of the model on a thread: it may have to wait for a batch, which must not block the event loop."""
        return await self._read_queue.run(function, *arguments, receive=receive)

    def _call_locked(self, function: Callable[[], T]) -> T:
        with self.model.lock.reading():
            return function()

    async def run_search(
        self,
        function: Callable[..., T],
        *arguments: Any,
        receive: Receive | None = None,
        timeout: float | None = None,
    ) -> T:
        """Run a read of the whole model; only a few at a time, so that short reads find a free thread."""
        return await self._search_queue.run(function, *arguments, receive=receive, timeout=timeout)

    async def run_map_read(self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None) -> T:
        """Run a read of the map; one at a time, as each updates the same map state."""
        return await self._map_queue.run(function, *arguments, receive=receive)

    async def run_metrics_read(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a request of a monitoring system, on a thread that no other request uses."""
        return await self._metrics_queue.run(function, *arguments)

    def _make_read_queue(self, name: str, threads: int) -> ThreadQueue:
        limits = self.settings.limits
        return ThreadQueue(
            f"ripplevec-{name}", threads=threads, max_waiting=limits.queue_reads, timeout=limits.read_seconds
        )

    # ------------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Start recovery in the background."""
        self._recovery_thread.start()

    def begin_stop(self) -> None:
        """Begin to close: end the requests that wait for changes, since an event stream never ends by itself."""
        self._stopping.set()
        if self.status == "ready":
            self.status = "closing"
        if self._feed is not None:
            self._feed.close()

    def stop(self) -> None:
        """Write the queued batches and a snapshot, then release the state."""
        self.begin_stop()
        self._recovery_thread.join()
        if self._source_follower is not None:
            self._source_follower.close()
        if self._writer is not None:
            self._writer.close()
        if self._store_sync is not None:
            self._store_sync.close()
        if self._session is not None:
            self._write_final_snapshot(self._session)
            self._session.close()
        if self._labels is not None:
            self._labels.close()
        for queue in (
            self._read_queue,
            self._search_queue,
            self._map_queue,
            self._metrics_queue,
            self._write_task_queue,
        ):
            queue.close()
        if self._encoded_feed is not None:
            self._encoded_feed.close()
        log_event("closed")

    def _recover(self) -> None:
        """Open the state on the recovery thread; report success or failure to the callbacks and the log."""
        started = working_clock()
        try:
            self._open()
        except BaseException as error:
            self._fail(error)
            return
        if self._on_ready is not None:
            self._on_ready()
        recovery = self.session.recovery
        log_event(
            "ready",
            url=self.settings.url,
            seconds=round(working_clock() - started, 3),
            sequence=self.model.sequence,
            vertices=len(self.model),
            snapshot=recovery.snapshot,
            replayed=recovery.replayed,
        )

    def _fail(self, error: BaseException) -> None:
        """Reject all requests from now on, as the state is unusable, and call `on_failure`."""
        self.status, self.failure = "failed", error
        log_event("failed", logging.CRITICAL, reason=str(error))
        if self._on_failure is not None:
            self._on_failure(error)

    def _open(self) -> None:
        """Recover the session, then create everything that depends on it; the service is ready afterwards."""
        settings, limits = self.settings, self.settings.limits
        # First, so that an invalid address raises before a state is created and kernels are compiled.
        source = None if settings.source is None else open_source(settings.source)
        dead_letters = None if settings.dead_letters is None else dead_letters_to(settings.dead_letters)
        sink = None if settings.sink is None else create_vector_store_sink(settings.sink)
        session = Session(settings.state, model=_model_factory(settings), **settings.parameters)
        self._session = session
        if settings.shards is None:  # shards use other kernels
            warm_up(session.model)
        self._coalesced_reads = CoalescedReads(session.model.lock)
        newest = session.model.sequence
        self._labels = VertexLabels(settings.state / "labels.sqlite")
        feed = self._feed = ChangeFeed(
            newest,
            session.model.dim,
            max_batches=limits.retained_batches,
            max_bytes=limits.retained_bytes,
            max_followers=limits.followers,
        )
        self._encoded_feed = EncodedChangeFeed(feed, max_waiting=limits.followers, timeout=limits.read_seconds)
        self.metrics.record_anchors(session.model.engine.anchors)
        session.add_listener(lambda entry, changes: self._publish(feed, entry, changes))
        self._writer = BatchWriter(
            session,
            self.metrics,
            max_delay=settings.max_delay_ms / 1000,
            max_batch=settings.max_batch,
            queue_requests=limits.queue_requests,
            queue_events=limits.queue_events,
            queue_seconds=limits.queue_seconds,
            write_seconds=limits.write_seconds,
            newest=newest,
            on_failure=self._fail,
        )
        self._add_gauges(session.model)
        if sink is not None:
            self._store_sync = store_sync = VectorStoreSync(session, sink)
            self.metrics.add_gauge(
                "sink_batches", "Batches not yet in the vector store.", lambda: store_sync.pending_batches
            )
        if settings.source is not None and source is not None:
            self._source_follower = SourceFollower(
                session, source, settings.source, self.metrics, dead_letters, self._fail
            )
        if self._stopping.is_set():
            self._feed.close()
        self.status = "closing" if self._stopping.is_set() else "ready"

    def _publish(self, feed: ChangeFeed, entry: JournalEntry, changes: Changes) -> None:
        """Append to the feed; count batches of the source (the writer counts those of requests, with their latency)."""
        feed.append(changes)
        self.metrics.record_anchors(self.session.model.engine.anchors)
        if entry.source is not None:
            self.metrics.record_batch(len(entry.batch), changes, None)

    def _require_ready(self, part: T | None) -> T:
        if part is None or self.status in ("recovering", "failed"):
            raise RejectedRequest(503, f"the service is not ready: {self.status}", {"Retry-After": "1"})
        return part

    # ------------------------------------------------------------------ snapshots and gauges

    def _write_final_snapshot(self, session: Session) -> None:
        """Write a snapshot so that the next start replays nothing; no data is lost if this fails."""
        try:
            sequences = SnapshotStore(session.directory / "snapshots").sequences
            if session.model.sequence > (sequences[0] if sequences else 0):
                session.snapshot()
        except Exception as error:
            log_event("final snapshot failed", logging.WARNING, reason=str(error))

    def snapshot_state(self) -> tuple[int, float]:
        """Return the sequence number of the newest snapshot and its age in seconds; 0 and NaN if there is none.

        If the directory cannot be read (out of file handles, say), the last known snapshot is reported.
        """
        snapshots = SnapshotStore(self.settings.state / "snapshots")
        with suppress(OSError):
            self._last_seen_snapshot = next(_snapshot_times(snapshots), (0, math.nan))
        sequence, written = self._last_seen_snapshot
        return sequence, max(0.0, time.time() - written) if sequence else math.nan

    @property
    def snapshot_failed(self) -> bool:
        """Whether the last snapshot could not be written; the batches are safe without it."""
        return self.session.snapshot_failure is not None

    @property
    def _waiting_reads(self) -> int:
        return sum(queue.waiting for queue in (self._read_queue, self._search_queue, self._map_queue))

    def _add_gauges(self, model: SessionModel) -> None:
        """Register the gauges of the model, the queues, the change feed and the snapshots."""
        gauge = self.metrics.add_gauge

        def engine() -> Engine:
            return model.engine

        def body_bytes() -> float:
            return self.write_bodies.held_bytes + self.read_bodies.held_bytes

        gauge("sequence", "Batches applied since the state was created.", lambda: engine().sequence)
        gauge("vertices", "Vertices in the graph.", lambda: len(engine()))
        gauge("edges", "Edges in the graph.", lambda: engine().edges)
        gauge("anchors_refused", "Consecutive anchors that were refused.", lambda: engine().anchors_refused)
        gauge("rows_shortened", "Rows scaled back to the bound since the last anchor.", lambda: engine().rows_shortened)
        gauge("growth_since_anchor", "Relative growth since the last anchor.", lambda: float(engine().growth))
        gauge("drift_degrees", "Mean angle of sampled vectors to those at the last anchor.", _drift_gauge(model))
        gauge("queue_requests", "Requests in the write queue.", lambda: self.writer.queued_requests)
        gauge("queue_events", "Events in the write queue.", lambda: self.writer.queued_events)
        gauge("queue_reads", "Reads that wait for a thread.", lambda: self._waiting_reads)
        gauge("body_bytes", "Bytes of request bodies in memory.", body_bytes)
        gauge("answer_bytes", "Bytes of large responses not sent yet.", lambda: self.response_budget.pending_bytes)
        gauge("memory_bytes", "Resident memory of the process.", lambda: resident_bytes() or math.nan)
        gauge("followers", "Open change streams and plain requests for changes.", lambda: self.feed.followers)
        gauge("feed_batches", "Batches whose changes are retained.", lambda: self.feed.newest - self.feed.oldest)
        gauge("snapshot_sequence", "Sequence number of the newest snapshot.", lambda: self.snapshot_state()[0])
        gauge("snapshot_failed", "1 if the last snapshot could not be written.", lambda: float(self.snapshot_failed))
        gauge("snapshot_age_seconds", "Age of the newest snapshot.", lambda: self.snapshot_state()[1])


def warm_up(model: Embedder) -> None:
    """Run every kind of operation on a small model with the same parameters, so that all kernels are loaded.

    Kernels are compiled once and cached on disk; even then, loading all of them takes half a second, for which the
    first requests would have to wait. What the small model logs about itself would be misleading, so it is not logged.
    """
    with _only_warnings("ripplevec.rules"):
        _use_small_model(model)


@contextmanager
def _only_warnings(logger: str) -> Iterator[None]:
    """Log only warnings and errors of a logger from this thread."""
    log, thread = logging.getLogger(logger), threading.get_ident()

    def is_logged(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.thread != thread

    log.addFilter(is_logged)
    try:
        yield
    finally:
        log.removeFilter(is_logged)


def _use_small_model(model: Embedder) -> None:
    """Use a small model with the parameters of this one in every common way."""
    trial = SessionModel(**model.get_params() | {"start_size": _WARM_UP_VERTICES // 2})
    edges = [(vertex, (vertex + step) % _WARM_UP_VERTICES) for vertex in range(_WARM_UP_VERTICES) for step in (1, 2, 5)]
    src, dst = [f"v{src}" for src, _ in edges], [f"v{dst}" for _, dst in edges]
    for copies in (1, 1 + MIN_EDGES_FOR_THREADS // len(edges)):  # large batches have kernels of their own
        trial.apply_batch(Batch.of(src * copies, dst * copies))
    for number in range(_WARM_UP_ARRIVALS):  # enough growth to make an anchor due
        trial.apply_batch(Batch.of([f"new{number}", f"new{number}"], ["v0", f"v{number + 1}"]))
    trial.apply_batch(Batch.of(["new0"], ["v0"], op=[Op.REMOVE]))
    trial.nearest("v0")
    trial.preview(["v0", "v1"])
    trial.vectors(["v0", "v1"])
    trial.engine.snapshot().digest()


def _snapshot_times(snapshots: SnapshotStore) -> Iterator[tuple[int, float]]:
    """Yield the sequence number and modification time of each snapshot, newest first."""
    for sequence in snapshots.sequences:
        with suppress(FileNotFoundError):  # replaced meanwhile
            yield sequence, snapshots.path(sequence).stat().st_mtime


def _drift_gauge(model: SessionModel) -> Callable[[], float]:
    """Make a thread-safe function that measures drift in degrees; NaN if there were no vectors to compare."""
    drift, lock = Drift(model), threading.Lock()

    def measure() -> float:
        with lock:
            degrees = drift.measure()
        return math.nan if degrees is None else degrees

    return measure


def _model_factory(settings: Settings) -> ModelFactory:
    """Return the factory of the model: in this process, or on shards."""
    if settings.shards is None:
        return SessionModel
    # Ray's handler would abort the process 3 s after a SIGTERM, even if the shutdown is not complete.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    from ripplevec.cluster import Sharded

    return Sharded(settings.shards, settings.ray_address)
