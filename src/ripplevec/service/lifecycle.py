"""The life of a service: recovering, ready, closing; and what its endpoints share."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from starlette.types import Receive

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.durability.session_model import ModelFactory, SessionModel
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.engine.engine import Engine
from ripplevec.io.registry import dead_letters_to
from ripplevec.service.batch_writer import BatchWriter, WriteResult
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.encoded_change_feed import EncodedChangeFeed
from ripplevec.service.logs import log_event
from ripplevec.service.map.drift import Drift
from ripplevec.service.metrics import Metrics
from ripplevec.service.reads.coalesced_reads import CoalescedReads
from ripplevec.service.request_body import BodyReader
from ripplevec.service.responses import RejectedRequest, ResponseBudget
from ripplevec.service.settings import Settings
from ripplevec.service.source_follower import SourceFollower
from ripplevec.service.thread_queue import ThreadQueue
from ripplevec.service.vector_store_sync import VectorStoreSync
from ripplevec.service.vertex_labels import VertexLabels
from ripplevec.service.warmup import warm_up

READERS, SEARCHERS, PREPARERS = 8, 2, 4
"""Threads for reads, for reads that look at everything, and for bodies of writes before they are written."""

T = TypeVar("T")


class Runtime:
    """What is there while a service runs. Recovery happens in the background; until then everything is refused."""

    def __init__(
        self,
        settings: Settings,
        failed: Callable[[BaseException], None] | None = None,
        ready: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings
        self.status = "recovering"
        self.failure: BaseException | None = None
        limits = settings.limits
        self.bodies = BodyReader(limits, limits.bodies_bytes)
        self.read_bodies = BodyReader(limits, limits.read_bodies_bytes)
        self.response_budget = ResponseBudget(limits.answers_bytes)
        self.metrics = Metrics()
        self._readers = self._queue("reader", READERS)
        self._searchers = self._queue("searcher", SEARCHERS)
        self._mapper = self._queue("mapper", 1)
        self._operator = self._queue("operator", 1)
        self._preparers = ThreadQueue(
            "ripplevec-preparer", threads=PREPARERS, waiting=limits.queue_requests, seconds=limits.write_seconds
        )
        self._failed, self._ready = failed, ready
        self._snapshot = (0, math.nan)  # the newest that was seen, and when it was written
        self._session: Session | None = None
        self._writer: BatchWriter | None = None
        self._feed: ChangeFeed | None = None
        self._encoded_feed: EncodedChangeFeed | None = None
        self._labels: VertexLabels | None = None
        self._reading: CoalescedReads | None = None
        self._stream: SourceFollower | None = None
        self._mirror: VectorStoreSync | None = None
        self._opening = threading.Thread(target=self._open, name="ripplevec-recovery", daemon=True)
        self._stopping = threading.Event()

    # ------------------------------------------------------------------ what endpoints use

    @property
    def session(self) -> Session:
        """The session, once it is there."""
        return self._there(self._session)

    @property
    def model(self) -> SessionModel:
        """The model, for reading."""
        return self.session.model

    @property
    def writer(self) -> BatchWriter:
        """The one writer."""
        return self._there(self._writer)

    @property
    def feed(self) -> ChangeFeed:
        """What the last batches changed."""
        return self._there(self._feed)

    @property
    def encoded_feed(self) -> EncodedChangeFeed:
        """The same as messages."""
        return self._there(self._encoded_feed)

    @property
    def labels(self) -> VertexLabels:
        """The labels of vertices."""
        return self._there(self._labels)

    async def write(self, batch: Batch, key: str | None) -> WriteResult:
        """Put a batch on disk and apply it."""
        writing = asyncio.wrap_future(self.writer.submit(JournalEntry(batch, key)))
        seconds = self.settings.limits.write_seconds
        done, _ = await asyncio.wait([writing], timeout=seconds)
        if not done:
            reason = f"not on disk within {seconds:g} s; it may still be: send it again with the same key"
            raise RejectedRequest(503, reason, {"Retry-After": "5"})
        return writing.result()

    async def prepare(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run what a write needs before it is written, on threads that no reader occupies."""
        return await self._preparers.run(function, *arguments)

    async def read_shortly(self, function: Callable[[], T], receive: Receive | None = None) -> T:
        """Read the engine of the model here, while nobody writes: for what takes microseconds, where it is here."""
        if self.settings.shards is not None:
            return await self.read(self._read_in_turn, function, receive=receive)
        return await self._there(self._reading)(function)

    async def read(self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None) -> T:
        """Run a read of the model aside: it may wait for one batch, and nobody should wait for that."""
        return await self._readers.run(function, *arguments, receive=receive)

    def _read_in_turn(self, function: Callable[[], T]) -> T:
        with self.model.lock.reading():
            return function()

    async def search(
        self,
        function: Callable[..., T],
        *arguments: Any,
        receive: Receive | None = None,
        seconds: float | None = None,
    ) -> T:
        """Run a read that looks at everything there is: few at a time, so that short ones find a thread."""
        return await self._searchers.run(function, *arguments, receive=receive, seconds=seconds)

    async def draw(self, function: Callable[..., T], *arguments: Any, receive: Receive | None = None) -> T:
        """Run a read of the map: one at a time, as each brings the same map up to date."""
        return await self._mapper.run(function, *arguments, receive=receive)

    async def operate(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run what whoever watches the service asks for: on a thread that no other request occupies."""
        return await self._operator.run(function, *arguments)

    def _queue(self, name: str, threads: int) -> ThreadQueue:
        limits = self.settings.limits
        return ThreadQueue(
            f"ripplevec-{name}", threads=threads, waiting=limits.queue_reads, seconds=limits.read_seconds
        )

    # ------------------------------------------------------------------ its life

    def start(self) -> None:
        """Begin to recover."""
        self._opening.start()

    def begin_stop(self) -> None:
        """Let go of those who wait for changes: a stream would never end by itself."""
        self._stopping.set()
        if self.status == "ready":
            self.status = "closing"
        if self._feed is not None:
            self._feed.close()

    def stop(self) -> None:
        """Finish what waits, write a snapshot, let go of the state."""
        self.begin_stop()
        self._opening.join()
        if self._stream is not None:
            self._stream.close()
        if self._writer is not None:
            self._writer.close()
        if self._mirror is not None:
            self._mirror.close()
        if self._session is not None:
            self._last_snapshot(self._session)
            self._session.close()
        if self._labels is not None:
            self._labels.close()
        for queue in (self._readers, self._searchers, self._mapper, self._operator, self._preparers):
            queue.close()
        if self._encoded_feed is not None:
            self._encoded_feed.close()
        log_event("closed")

    def _open(self) -> None:
        began = time.perf_counter()
        try:
            self._make()
        except BaseException as error:
            self._fail(error)
            return
        if self._ready is not None:
            self._ready()
        recovery = self.session.recovery
        log_event(
            "ready",
            seconds=round(time.perf_counter() - began, 3),
            sequence=self.model.sequence,
            vertices=len(self.model),
            snapshot=recovery.snapshot,
            replayed=recovery.replayed,
        )

    def _fail(self, error: BaseException) -> None:
        """The state cannot be used: nothing is answered any more, and whoever runs this is told, to start it again."""
        self.status, self.failure = "failed", error
        log_event("failed", logging.CRITICAL, reason=str(error))
        if self._failed is not None:
            self._failed(error)

    def _make(self) -> None:
        settings, limits = self.settings, self.settings.limits
        session = Session(settings.state, model=_maker(settings), **settings.parameters)
        self._session = session
        if settings.shards is None:  # shards have kernels of their own
            warm_up(session.model)
        self._reading = CoalescedReads(session.model.lock)
        newest = session.model.sequence
        self._labels = VertexLabels(settings.state / "labels.sqlite")
        feed = self._feed = ChangeFeed(
            newest,
            session.model.dim,
            batches=limits.retained_batches,
            size=limits.retained_bytes,
            followers=limits.followers,
        )
        self._encoded_feed = EncodedChangeFeed(feed, waiting=limits.followers, seconds=limits.read_seconds)
        session.add_listener(lambda entry, changes: self._applied(feed, entry, changes))
        self._writer = BatchWriter(
            session,
            self.metrics,
            max_delay=settings.max_delay_ms / 1000,
            max_batch=settings.max_batch,
            queue_requests=limits.queue_requests,
            queue_events=limits.queue_events,
            queue_seconds=limits.queue_seconds,
            newest=newest,
            broken=self._fail,
        )
        self._add_gauges(session.model)
        if settings.sink is not None:
            self._mirror = mirror = VectorStoreSync(session, settings.sink)
            self.metrics.gauge("sink_batches", "Batches that the sink has not got.", lambda: mirror.batches)
        if settings.source is not None:
            letters = None if settings.dead_letters is None else dead_letters_to(settings.dead_letters)
            self._stream = SourceFollower(session, settings.source, self.metrics, letters, self._fail)
        if self._stopping.is_set():
            self._feed.close()
        self.status = "closing" if self._stopping.is_set() else "ready"

    def _applied(self, feed: ChangeFeed, entry: JournalEntry, changes: Changes) -> None:
        """Tell those who follow; batches of requests are counted by the writer, who knows how long they took."""
        feed.append(changes)
        if entry.source is not None:
            self.metrics.applied(len(entry.batch), changes, None)

    def _there(self, part: T | None) -> T:
        if part is None or self.status in ("recovering", "failed"):
            raise RejectedRequest(503, f"not ready: {self.status}", {"Retry-After": "1"})
        return part

    def _last_snapshot(self, session: Session) -> None:
        """So that the next start has nothing to replay; without it nothing is lost."""
        try:
            sequences = SnapshotStore(session.directory / "snapshots").sequences
            if session.model.sequence > (sequences[0] if sequences else 0):
                session.snapshot()
        except Exception as error:
            log_event("no last snapshot", logging.WARNING, reason=str(error))

    def snapshot_state(self) -> tuple[int, float]:
        """The sequence number of the newest snapshot and its age in seconds; 0 and NaN where there is none.

        As it was last seen where the directory cannot be read now: whoever watches needs no file handle.
        """
        snapshots = SnapshotStore(self.settings.state / "snapshots")
        with suppress(OSError):
            self._snapshot = next(_written(snapshots), (0, math.nan))
        sequence, written = self._snapshot
        return sequence, max(0.0, time.time() - written) if sequence else math.nan

    @property
    def _reads_waiting(self) -> int:
        return sum(queue.waiting for queue in (self._readers, self._searchers, self._mapper))

    @property
    def snapshot_failed(self) -> bool:
        """Whether the last snapshot could not be written; the batches are safe without it."""
        return self.session.snapshot_failure is not None

    def _add_gauges(self, model: SessionModel) -> None:
        gauge = self.metrics.gauge

        def engine() -> Engine:
            return model.engine

        gauge("ready", "1 once recovery is over.", lambda: float(self.status == "ready"))
        gauge("sequence", "Batches applied since the start of the state.", lambda: engine().sequence)
        gauge("vertices", "Vertices in the graph.", lambda: len(engine()))
        gauge("edges", "Edges in the graph.", lambda: engine().edges)
        gauge("anchors_refused", "Corrections in a row that came to nothing.", lambda: engine().anchors_refused)
        gauge("rows_shortened", "Rows scaled back to the bound since the last anchor.", lambda: engine().rows_shortened)
        gauge("growth_since_anchor", "Growth since the last anchor, as a share.", lambda: float(engine().growth))
        gauge("drift_degrees", "Mean turn of a sample of vectors since the last anchor that was seen.", _turned(model))
        gauge("queue_requests", "Requests that wait for the writer.", lambda: self.writer.requests)
        gauge("queue_events", "Events in them.", lambda: self.writer.events)
        gauge("queue_reads", "Reads that wait for a thread.", lambda: self._reads_waiting)
        gauge("body_bytes", "Bytes of requests that are held.", lambda: self.bodies.held + self.read_bodies.held)
        gauge(
            "answer_bytes", "Bytes of large answers that clients have not taken yet.", lambda: self.response_budget.held
        )
        gauge("followers", "Open streams of changes, and plain requests for them.", lambda: self.feed.followers)
        gauge("feed_batches", "Batches whose changes are kept.", lambda: self.feed.newest - self.feed.oldest)
        gauge("snapshot_sequence", "The batch of the newest snapshot.", lambda: self.snapshot_state()[0])
        gauge("snapshot_failed", "1 where the last could not be written.", lambda: float(self.snapshot_failed))
        gauge("snapshot_age_seconds", "Since the newest snapshot.", lambda: self.snapshot_state()[1])


def _written(snapshots: SnapshotStore) -> Iterator[tuple[int, float]]:
    """The snapshots with the time each was written at, the newest first."""
    for sequence in snapshots.sequences:
        with suppress(FileNotFoundError):  # replaced meanwhile
            yield sequence, snapshots.path(sequence).stat().st_mtime


def _turned(model: SessionModel) -> Callable[[], float]:
    """How far vectors have turned, in degrees, whoever asks; NaN where there were none."""
    drift, measuring = Drift(model), threading.Lock()

    def degrees() -> float:
        with measuring:
            turned = drift.measure()
        return math.nan if turned is None else turned

    return degrees


def _maker(settings: Settings) -> ModelFactory:
    """What makes the model: one in this process, or one on shards."""
    if settings.shards is None:
        return SessionModel
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")  # which aborts 3 s after a SIGTERM, done or not
    from ripplevec.cluster import Sharded

    return Sharded(settings.shards, settings.ray_address)
