"""Writer, corrections, readers, followers and a vector store in seeded orders: whatever is answered is a whole state.

`RIPPLEVEC_SEEDS=20000 pytest tests/test_interleavings.py` tries more of them.
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
from histories import Follower, Reference, State, seen, stream
from scheduler import Deadlock, Scheduler

from ripplevec import Changes, Embedder, Session
from ripplevec.durability import session as session_module
from ripplevec.durability.session_model import SessionModel
from ripplevec.rules import background_anchor as pending_module
from ripplevec.rules.ripple import RippleRule
from ripplevec.service import change_feed as feed_module
from ripplevec.service import vector_store_sync as mirror_module
from ripplevec.service.change_feed import ChangeFeed
from ripplevec.service.responses import RejectedRequest
from ripplevec.service.vector_store_sync import VectorStoreSync
from ripplevec.util import locks as locks_module

SEEDS = int(os.environ.get("RIPPLEVEC_SEEDS", "160"))
LAGS = 0, 1e-9, 0.05
HOW: dict[str, Any] = {"dim": 3, "anchor_growth": 0.15, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = stream(9)


@cache
def render_api_docs(lag: float) -> tuple[Reference, str]:
    with tempfile.TemporaryDirectory() as place, Session(place, anchor_lag=lag, **HOW) as alone:
        found = Reference.of(alone.model, alone.apply, BATCHES)
        assert found.states[-1].anchors >= 2
        return found, alone.model.digest()


class Store:
    """A vector store in memory, which fails now and then; whatever it holds has to be a whole state."""

    def __init__(self, scheduler: Scheduler, expected: Reference) -> None:
        self._scheduler, self._expected = scheduler, expected
        self.held: Follower | None = None
        self.checked = 0

    def fill(self, model: Embedder) -> int:
        state = seen(model, self._scheduler.pause)
        self._call()
        self.held = Follower(state)
        self._check()
        return self.held.sequence

    def write(self, changes: Changes) -> None:
        self._call()
        assert self.held is not None
        self.held.follow([changes])

    def flush(self) -> None:
        self._call()
        self._check()

    def _call(self) -> None:
        self._scheduler.pause()
        if self._scheduler.random.random() < 0.05:
            raise OSError("the store is away")

    def _check(self) -> None:
        assert self.held is not None
        self.held.check(self._expected)
        self.checked += 1


class Run:
    """One order of everything."""

    def __init__(self, seed: int, place: Path) -> None:
        self.scheduler = Scheduler(seed)
        self.place, self.lag = place, LAGS[seed % len(LAGS)]
        self.expected, self.digest = render_api_docs(self.lag)
        self.written, self.reads = False, 0

    def go(self, patch: pytest.MonkeyPatch) -> None:
        """Run it, and fail where anything that was answered is not what the reference says."""
        threads = self.scheduler.threading()
        for module in (locks_module, session_module, feed_module, mirror_module):
            patch.setattr(module, "threading", threads)
        patch.setattr(pending_module, "_in_background", self.scheduler.in_background)
        patch.setattr(mirror_module, "lance_sink", lambda _: Store(self.scheduler, self.expected))
        patch.setattr(mirror_module, "log_event", lambda *_, **__: None)
        for name in ("_bases", "first_bases", "prepare", "adopt", "apply"):
            patch.setattr(RippleRule, name, self._pausing(getattr(RippleRule, name)))
        with Session(self.place, anchor_lag=self.lag, snapshot_every=60, **HOW) as session:
            feed = ChangeFeed(0, HOW["dim"], max_batches=100, max_bytes=1 << 30, max_followers=9)
            session.add_listener(lambda _, changes: feed.append(changes))
            mirror = VectorStoreSync(session, "memory")
            self.scheduler.spawn("writer", lambda: self._write(session, mirror))
            for name in ("reader", "other reader"):
                self.scheduler.spawn(name, lambda: self._read(session.model))
            for name in ("follower", "other follower"):
                self.scheduler.spawn(name, lambda: self._follow(session.model, feed))
            self.scheduler.run()
            assert session.model.digest() == self.digest
            assert mirror._sink.checked >= 1  # type: ignore[attr-defined]
        assert self.reads >= 4

    def _pausing(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.scheduler.pause()
            found = work(*arguments, **options)
            self.scheduler.pause()
            return found

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
            self._check(seen(model, self.scheduler.pause))
            self.scheduler.pause()
        self._check(seen(model, self.scheduler.pause))

    def _check(self, state: State) -> None:
        self.expected.check(state)
        self.reads += 1

    def _follow(self, model: Embedder, feed: ChangeFeed) -> None:
        follower = Follower(seen(model, self.scheduler.pause))
        while follower.sequence < len(BATCHES):
            follower.check(self.expected)
            self.scheduler.pause()
            try:
                follower.follow(feed.read_after(follower.sequence, 2))
            except RejectedRequest:  # applied, and about to be told
                assert follower.sequence > feed.newest
        follower.check(self.expected)


@pytest.fixture
def place() -> Iterator[Callable[[], Path]]:
    """New directories, in memory where there is such a place."""
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    numbers = iter(range(1 << 30))
    yield lambda: base / str(next(numbers))
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("part", range(4))
def test_interleavings_of_all_threads_answer_whole_states(
    part: int, place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(part, SEEDS, 4):
        with monkeypatch.context() as patch:
            try:
                Run(seed, place()).go(patch)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise


def test_interleaving_that_fails_is_run_again_by_its_seed(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = []
    for seed in (5, 5, 6, 7, 8):
        run = Run(seed, place())
        with monkeypatch.context() as patch:
            run.go(patch)
        traces.append(tuple(run.scheduler.trace))
    assert traces[0] == traces[1]
    assert len(set(traces)) == 4


def found_by(place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, name: str, fault: Any, where: Any) -> str:
    """What the first of some seeds that shows a fault says; nothing where none does."""
    for seed in range(30):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, fault)
            try:
                Run(seed, place()).go(patch)
            except (AssertionError, Deadlock) as error:
                return str(error)
    return ""


def test_interleavings_show_a_number_that_is_raised_before_the_work(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = SessionModel._apply_to_engine

    def hasty(self: SessionModel, batch: Any) -> Any:
        self._engine.sequence += 1
        with self._lock.reading():
            pass
        self._engine.sequence -= 1
        return write(self, batch)

    assert "is another state" in found_by(place, monkeypatch, "_apply_to_engine", hasty, SessionModel)


def test_interleavings_show_readers_that_are_let_in_too_early(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(self: Any, work: Callable[[], Any]) -> Any:
        return work()

    assert "is another state" in found_by(place, monkeypatch, "run_exclusively", careless, locks_module.ReadWriteLock)


def test_interleavings_show_a_follower_that_misses_a_batch(
    place: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = ChangeFeed.append

    def forgetful(self: ChangeFeed, changes: Changes) -> None:
        if changes.sequence != 3:
            append(self, changes)

    assert "a batch is missing" in found_by(place, monkeypatch, "append", forgetful, ChangeFeed)


def test_scheduler_of_threads_that_wait_for_each_other_says_so() -> None:
    scheduler = Scheduler(1)
    one, other = scheduling.Lock(scheduler), scheduling.Lock(scheduler)

    def take(first: Any, second: Any) -> None:
        with first:
            scheduler.pause(lambda: one._held and other._held)
            with second:
                pass

    scheduler.spawn("one", lambda: take(one, other))
    scheduler.spawn("other", lambda: take(other, one))
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
