"""Writer, anchors, readers, followers and a vector store in seeded orders: every answer is a complete state.

`RIPPLEVEC_SEEDS=20000 pytest tests/test_interleavings.py` tries more orders.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import scheduler as scheduling
from histories import Follower, Reference, State, make_batches, read_state
from scheduler import Deadlock, Scheduler

from ripplevec import Changes, Embedder, Session
from ripplevec.durability import session as session_module
from ripplevec.durability.session_model import SessionModel
from ripplevec.engine import correction_schedule
from ripplevec.rules import anchor
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.rules.ripple import RippleRule
from ripplevec.service import change_feed as feed_module
from ripplevec.service import vector_store_sync as sync_module
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.vector_store_sync import VectorStoreSync
from ripplevec.util import locks as locks_module

SEEDS = int(os.environ.get("RIPPLEVEC_SEEDS", "160"))
PACES = "immediate", "gradual"
PARAMETERS: dict[str, Any] = {"dim": 3, "anchor_growth": 0.15, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = make_batches(9)


@pytest.fixture(autouse=True)
def slow_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gradual corrections take several batches, as on a large graph."""
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)


@cache
def compute_reference(pace: str) -> tuple[Reference, str]:
    with tempfile.TemporaryDirectory() as place, Session(place, anchor_pace=pace, **PARAMETERS) as alone:
        found = Reference.of(alone.model, alone.apply, BATCHES)
        assert found.states[-1].anchors >= 2
        return found, alone.model.digest()


class Store:
    """A vector store in memory that fails now and then; its content must always be a complete state."""

    def __init__(self, scheduler: Scheduler, expected: Reference) -> None:
        self._scheduler, self._expected = scheduler, expected
        self.content: Follower | None = None
        self.checked = 0

    def synchronize(self, model: Embedder) -> int:
        state = read_state(model, self._scheduler.pause)
        self._call()
        self.content = Follower(state)
        self._check()
        return self.content.sequence

    def write(self, changes: Changes) -> None:
        self._call()
        assert self.content is not None
        self.content.follow([changes])

    def flush(self) -> None:
        self._call()
        self._check()

    def close(self) -> None: ...

    def _call(self) -> None:
        self._scheduler.pause()
        if self._scheduler.random.random() < 0.05:
            raise OSError("the store is unavailable")

    def _check(self) -> None:
        assert self.content is not None
        self.content.check(self._expected)
        self.checked += 1


class Run:
    """One run of all threads in one order."""

    def __init__(self, seed: int, place: Path) -> None:
        self.scheduler = Scheduler(seed)
        self.place, self.pace = place, PACES[seed // 4 % len(PACES)]
        self.expected, self.digest = compute_reference(self.pace)
        self.written, self.reads = False, 0

    def go(self, patch: pytest.MonkeyPatch) -> None:
        """Run the threads and compare every answer with the reference."""
        threads = self.scheduler.threading()
        for module in (locks_module, session_module, feed_module, sync_module):
            patch.setattr(module, "threading", threads)
        store = Store(self.scheduler, self.expected)
        patch.setattr(sync_module, "log_event", lambda *_, **__: None)
        patch.setattr(anchor, "correct_bases", self._pausing(anchor.correct_bases))
        for name in ("solve_start", "apply"):
            patch.setattr(RippleRule, name, self._pausing(getattr(RippleRule, name)))
        for name in ("record_batch", "advance", "_begin_stage", "_swap"):
            patch.setattr(GradualCorrection, name, self._pausing(getattr(GradualCorrection, name)))
        with Session(self.place, anchor_pace=self.pace, snapshot_every=60, **PARAMETERS) as session:
            feed = ChangeFeed(0, PARAMETERS["dim"], max_batches=100, max_bytes=1 << 30, max_followers=9)
            session.add_listener(lambda _, changes: feed.append(changes))
            mirror = VectorStoreSync(session, store)
            self.scheduler.spawn("writer", lambda: self._write(session, mirror))
            for name in ("reader", "other reader"):
                self.scheduler.spawn(name, lambda: self._read(session.model))
            for name in ("follower", "other follower"):
                self.scheduler.spawn(name, lambda: self._follow(session.model, feed))
            self.scheduler.run()
            assert session.model.digest() == self.digest
            assert store.checked >= 1
        assert self.reads >= 4

    def _pausing(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.scheduler.pause()
            result = work(*arguments, **options)
            self.scheduler.pause()
            return result

        return wrapped

    def _write(self, session: Session, mirror: VectorStoreSync) -> None:
        try:
            for batch in BATCHES[:6]:
                session.apply(batch)
                self.scheduler.pause()
            session.apply_many(BATCHES[6:])
        finally:
            self.written = True
        mirror.close()

    def _read(self, model: Embedder) -> None:
        while not self.written:
            self._check(read_state(model, self.scheduler.pause))
            self.scheduler.pause()
        self._check(read_state(model, self.scheduler.pause))

    def _check(self, state: State) -> None:
        self.expected.check(state)
        self.reads += 1

    def _follow(self, model: Embedder, feed: ChangeFeed) -> None:
        follower = Follower(read_state(model, self.scheduler.pause))
        while follower.sequence < len(BATCHES):
            follower.check(self.expected)
            self.scheduler.pause()
            try:
                follower.follow(feed.read_after(follower.sequence, 2))
            except RejectedRequest:  # applied, and not yet in the feed
                assert follower.sequence > feed.newest
        follower.check(self.expected)


@pytest.fixture
def place() -> Iterator[Callable[[], Path]]:
    """Create new directories, in memory if possible."""
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    numbers = iter(range(1 << 30))
    yield lambda: base / str(next(numbers))
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("part", range(4))
def test_interleavings_of_all_threads_return_complete_states(
    part: int,
    place: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    seeds = range(part, SEEDS, 4)
    record_property("schedules", len(seeds))
    for seed in seeds:
        with monkeypatch.context() as patch:
            try:
                Run(seed, place()).go(patch)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise


def test_interleaving_is_reproduced_by_its_seed(place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    for seed in (5, 5, 6, 7, 8):
        run = Run(seed, place())
        with monkeypatch.context() as patch:
            run.go(patch)
        traces.append(tuple(run.scheduler.trace))
    assert traces[0] == traces[1]
    assert len(set(traces)) == 4


def detect(place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, name: str, fault: Any, where: Any) -> str:
    """Return the message of the first seed that detects a fault; empty if none does."""
    for seed in range(30):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, fault)
            try:
                Run(seed, place()).go(patch)
            except (AssertionError, Deadlock) as error:
                return str(error)
    return ""


def test_interleavings_detect_a_sequence_number_raised_too_early(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_batch = SessionModel.apply_batch

    def premature(self: SessionModel, batch: Any) -> Any:
        self.engine.sequence += 1
        with self.lock.reading():
            pass
        self.engine.sequence -= 1
        return apply_batch(self, batch)

    assert "is another state" in detect(place, monkeypatch, "apply_batch", premature, SessionModel)


def test_interleavings_detect_readers_admitted_too_early(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_lock(self: Any, work: Callable[[], Any], on_error: Any = None) -> Any:
        return work()

    assert "is another state" in detect(place, monkeypatch, "run_exclusively", without_lock, locks_module.ReadWriteLock)


def test_interleavings_detect_a_follower_that_misses_a_batch(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = ChangeFeed.append

    def lossy(self: ChangeFeed, changes: Changes) -> None:
        if changes.sequence != 3:
            append(self, changes)

    assert "a batch is missing" in detect(place, monkeypatch, "append", lossy, ChangeFeed)


def test_scheduler_of_deadlocked_threads_raises_deadlock() -> None:
    scheduler = Scheduler(1)
    one, other = scheduling.Lock(scheduler), scheduling.Lock(scheduler)

    def acquire_both(first: Any, second: Any) -> None:
        with first:
            scheduler.pause(lambda: one.held and other.held)
            with second:
                pass

    scheduler.spawn("one", lambda: acquire_both(one, other))
    scheduler.spawn("other", lambda: acquire_both(other, one))
    with pytest.raises(Deadlock, match="all wait: one, other"):
        scheduler.run()


def test_scheduler_explores_both_orders_of_two_threads() -> None:
    orders = set()
    for seed in range(20):
        scheduler = Scheduler(seed)
        for name in "ab":
            scheduler.spawn(name, scheduler.pause)
        scheduler.run()
        orders.add("".join(dict.fromkeys(scheduler.trace)))
    assert orders == {"ab", "ba"}
