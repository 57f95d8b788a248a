"""A sink that is slow or stuck: the source waits for it, so that nothing piles up, is lost or changes its place."""

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
from ripplevec.io.protocols import ReadResult
from ripplevec.io.retry_policy import OutageTimer, UnreachableError

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.3, "anchor_lag": 0.05, "threads": 1}
LONG = 30.0


class Fast:
    """A source that never has to be waited for; counts what was read of it and not acknowledged."""

    name = "fast"

    def __init__(self) -> None:
        self.given = self.acknowledged = self.most_held = 0

    def open(self, position: Any) -> None:
        self.given = self.acknowledged = position or 0

    def read(self, timeout: float) -> ReadResult:
        self.given += 1
        self.most_held = max(self.most_held, self.given - self.acknowledged)
        return ReadResult(batch(self.given), self.given)

    def acknowledge(self, position: Any) -> None:
        self.acknowledged = position

    def close(self) -> None:
        """There is nothing to let go of."""


class Gated:
    """A sink that takes nothing while its gate is shut."""

    def __init__(self) -> None:
        self.gate, self.stuck = threading.Event(), threading.Event()
        self.sequences: list[int] = []

    def write(self, changes: Changes) -> None:
        self.stuck.set()
        assert self.gate.wait(LONG)
        self.sequences.append(changes.sequence)

    def flush(self) -> None:
        """Everything is taken at once."""

    def close(self) -> None:
        """There is nothing to let go of."""


def batch(number: int) -> Batch:
    return Batch.of([number % 23, number % 7], [f"v{number % 31}", f"v{number % 5}"])


@contextmanager
def running(session: Session, source: Fast, sink: Gated, over: threading.Event) -> Iterator[list[int]]:
    taken: list[int] = []
    thread = threading.Thread(target=lambda: taken.append(session.run(source, [sink], until=over.is_set)))
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        sink.gate.set()
        thread.join(LONG)
        assert not thread.is_alive()


def test_a_stuck_sink_holds_up_the_source_and_nothing_else(tmp_path: Path) -> None:
    source, sink, over = Fast(), Gated(), threading.Event()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with running(session, source, sink, over) as taken:
            assert sink.stuck.wait(LONG)
            held = source.given
            assert not sink.gate.wait(0.5)  # as long as it is stuck, nothing more is read
            assert (source.given, source.acknowledged, session.position("fast")) == (held, 0, held)
            assert held <= GROUP_SIZE
            assert session.apply([("someone", "else")], key="k").sequence == held + 1  # others are not held up
            assert session.model["someone"].shape == (3,)
        assert taken == [held]  # `until` is asked when it is free again
        assert (sink.sequences, source.acknowledged) == (list(range(1, held + 1)), held)


def test_nothing_piles_up_is_lost_or_changes_its_place(tmp_path: Path) -> None:
    source, sink = Fast(), Gated()
    sink.gate.set()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        session.run(source, [sink], until=lambda: source.given >= 20 * GROUP_SIZE)
        assert source.most_held <= GROUP_SIZE
        assert sink.sequences == list(range(1, source.given + 1))
        digest = session.model.digest()
    with Session(tmp_path / "calm", **PARAMETERS) as session:
        for number in range(1, source.given + 1):
            session.apply(batch(number))
        assert session.model.digest() == digest


def test_a_sink_that_fails_after_a_long_time_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = Fast(), Gated()
    sink.gate.set()
    with Session(tmp_path / "state", **PARAMETERS) as session:
        with monkeypatch.context() as patch:
            patch.setattr(sink, "flush", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session.run(source, [sink])
        assert source.acknowledged == 0
        first, sink.sequences = sink.sequences, []
        session.run(source, [sink], until=lambda: source.given >= 2 * GROUP_SIZE)
    assert sink.sequences == list(range(1, 2 * GROUP_SIZE + 1))
    assert first == sink.sequences[: len(first)]


class Silent(Fast):
    """A source that gives a few batches and then nothing, without an end."""

    def read(self, timeout: float) -> ReadResult | None:  # type: ignore[override]
        return super().read(timeout) if self.given < 3 else None


class Remote:
    """A sink that keeps what it cannot deliver for its next flush; a minute passes with every flush."""

    def __init__(self, answers: Callable[[int], bool]) -> None:
        self._answers, self._now, self.flushes = answers, 0.0, 0
        self._absence = OutageTimer("the receiver", 600, clock=lambda: self._now)
        self._held: list[int] = []
        self.delivered: list[int] = []

    def write(self, changes: Changes) -> None:
        self._held.append(changes.sequence)

    def flush(self) -> None:
        self.flushes, self._now = self.flushes + 1, self._now + 60
        if self._answers(self.flushes):
            self.delivered, self._held = self.delivered + self._held, []
        else:
            self._absence.record_failure(OSError("no answer"))

    def close(self) -> None:
        """There is nothing to let go of."""


def run_until_flushed(folder: Path, sink: Remote, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with a source that falls silent until the sink has been flushed so often."""
    monkeypatch.setattr("ripplevec.durability.session.IDLE_FLUSH", 0.0)
    waited, source = threading.Event(), Silent()
    timer = threading.Timer(LONG, waited.set)
    timer.start()
    try:
        with Session(folder / "state", **PARAMETERS) as session:
            session.run(source, [sink], until=lambda: waited.is_set() or sink.flushes == times)
    finally:
        timer.cancel()
    assert not waited.is_set(), "the sink was not flushed while no input came"


def test_run_without_input_whose_sink_is_away_ends_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Remote(lambda flush: False)
    with pytest.raises(UnreachableError, match="the receiver has not answered for 600 s"):
        run_until_flushed(tmp_path, sink, 100, monkeypatch)
    assert sink.flushes == 11  # with the batches, and one in each of the ten minutes of its patience


def test_run_without_input_whose_sink_comes_back_delivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Remote(lambda flush: flush > 5)
    run_until_flushed(tmp_path, sink, 6, monkeypatch)
    assert sink.delivered == [1, 2, 3]
