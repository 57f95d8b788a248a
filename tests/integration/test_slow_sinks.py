"""Slow and blocked sinks: the source waits for them, so that no changes pile up, get lost or change their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.durability.session import GROUP_SIZE, Session
from ripplevec.io.brokers import OutageTimer, UnreachableError
from ripplevec.io.protocols import ReadResult

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "threads": 1}
TIMEOUT_SECONDS = 30.0


class EndlessSource:
    """Source that always has a batch ready, and counts the reads that were not acknowledged."""

    name = "endless"

    def __init__(self) -> None:
        self.reads = self.acknowledged = self.max_unacknowledged = 0

    def open(self, position: Any) -> None:
        self.reads = self.acknowledged = position or 0

    def read(self, timeout: float) -> ReadResult:
        self.reads += 1
        self.max_unacknowledged = max(self.max_unacknowledged, self.reads - self.acknowledged)
        return ReadResult(make_batch(self.reads), self.reads)

    def acknowledge(self, position: Any) -> None:
        self.acknowledged = position

    def close(self) -> None:
        """Do nothing: no resources are held."""


class BlockingSink:
    """Sink whose writes block until its gate is open."""

    def __init__(self) -> None:
        self.gate, self.blocked = threading.Event(), threading.Event()
        self.sequences: list[int] = []

    def write(self, changes: Changes) -> None:
        self.blocked.set()
        assert self.gate.wait(TIMEOUT_SECONDS)
        self.sequences.append(changes.sequence)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Do nothing: no resources are held."""


def make_batch(number: int) -> Batch:
    return Batch.of([number % 23, number % 7], [f"v{number % 31}", f"v{number % 5}"])


@contextmanager
def running(session: Session, source: EndlessSource, sink: BlockingSink, stop: threading.Event) -> Iterator[list[int]]:
    batches: list[int] = []
    thread = threading.Thread(target=lambda: batches.append(session.run(source, [sink], until=stop.is_set)))
    thread.start()
    try:
        yield batches
    finally:
        stop.set()
        sink.gate.set()
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()


def test_run_blocked_sink_stops_only_its_source(tmp_path: Path) -> None:
    source, sink, stop = EndlessSource(), BlockingSink(), threading.Event()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with running(session, source, sink, stop) as batches:
            assert sink.blocked.wait(TIMEOUT_SECONDS)
            read_before_block = source.reads
            assert not sink.gate.wait(0.5)  # nothing is read while the sink is blocked
            assert (source.reads, source.acknowledged, session.position("endless")) == (
                read_before_block,
                0,
                read_before_block,
            )
            assert read_before_block <= GROUP_SIZE
            assert (
                session.apply([("a", "b")], key="k").sequence == read_before_block + 1
            )  # other writers are not blocked
            assert session.model["a"].shape == (3,)
        assert batches == [read_before_block]  # `until` is called again once the sink is free
        assert (sink.sequences, source.acknowledged) == (list(range(1, read_before_block + 1)), read_before_block)


def test_run_delivers_all_changes_in_order_with_bounded_backlog(tmp_path: Path) -> None:
    source, sink = EndlessSource(), BlockingSink()
    sink.gate.set()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        session.run(source, [sink], until=lambda: source.reads >= 20 * GROUP_SIZE)
        assert source.max_unacknowledged <= GROUP_SIZE
        assert sink.sequences == list(range(1, source.reads + 1))
        digest = session.model.digest()
    with Session(tmp_path / "undisturbed", **PARAMETERS) as session:
        for number in range(1, source.reads + 1):
            session.apply(make_batch(number))
        assert session.model.digest() == digest


def test_run_failed_flush_delivers_changes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = EndlessSource(), BlockingSink()
    sink.gate.set()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with monkeypatch.context() as patch:
            patch.setattr(sink, "flush", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session.run(source, [sink])
        assert source.acknowledged == 0
        first, sink.sequences = sink.sequences, []
        session.run(source, [sink], until=lambda: source.reads >= 2 * GROUP_SIZE)
    assert sink.sequences == list(range(1, 2 * GROUP_SIZE + 1))
    assert first == sink.sequences[: len(first)]


class SilentSource(EndlessSource):
    """Source with three batches, followed by silence without an end."""

    def read(self, timeout: float) -> ReadResult | None:  # type: ignore[override]
        return super().read(timeout) if self.reads < 3 else None


class RemoteSink:
    """Sink that buffers undelivered changes; its clock advances a minute with every flush."""

    def __init__(self, is_reachable: Callable[[int], bool]) -> None:
        self._is_reachable, self._now, self.flushes = is_reachable, 0.0, 0
        self._absence = OutageTimer("the receiver", 600, clock=lambda: self._now)
        self._buffer: list[int] = []
        self.delivered: list[int] = []

    def write(self, changes: Changes) -> None:
        self._buffer.append(changes.sequence)

    def flush(self) -> None:
        self.flushes, self._now = self.flushes + 1, self._now + 60
        if self._is_reachable(self.flushes):
            self.delivered, self._buffer = self.delivered + self._buffer, []
        else:
            self._absence.record_failure(OSError("no answer"))

    def close(self) -> None:
        """Do nothing: no resources are held."""


def run_silent_source(folder: Path, sink: RemoteSink, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with a source that falls silent, until the sink has been flushed a number of times."""
    monkeypatch.setattr("ripplevec.durability.session.IDLE_FLUSH_SECONDS", 0.0)
    timed_out, source = threading.Event(), SilentSource()
    timer = threading.Timer(TIMEOUT_SECONDS, timed_out.set)
    timer.start()
    try:
        with Session(folder / "state", **PARAMETERS) as session:
            session.run(source, [sink], until=lambda: timed_out.is_set() or sink.flushes == times)
    finally:
        timer.cancel()
    assert not timed_out.is_set(), "the sink was not flushed during silence"


def test_run_silent_source_unreachable_sink_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = RemoteSink(lambda flush: False)
    with pytest.raises(UnreachableError, match="the receiver has not answered for 600 s"):
        run_silent_source(tmp_path, sink, 100, monkeypatch)
    assert sink.flushes == 11  # one with the batches, and one in each of the ten minutes until its timeout


def test_run_silent_source_returning_sink_receives_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = RemoteSink(lambda flush: flush > 5)
    run_silent_source(tmp_path, sink, 6, monkeypatch)
    assert sink.delivered == [1, 2, 3]
