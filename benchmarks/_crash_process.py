"""The process that the crash test kills: it opens a session, reports its state, and goes on with the stream."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _crash_sources import SIZE

from ripplevec import Batch
from ripplevec.durability import snapshot
from ripplevec.durability.journal import Journal
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.durability.session_model import SessionModel
from ripplevec.errors import SelfLoopWarning
from ripplevec.io.messages import decode_messages
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink
from ripplevec.rules.background_anchor import BackgroundAnchor
from ripplevec.rules.ripple import RippleRule
from ripplevec.util import checked_directory

PARAMETERS: dict[str, Any] = {"dim": 8, "start_size": 20, "anchor_growth": 0.1}
SESSION: dict[str, Any] = {**PARAMETERS, "anchor_lag": 0.05, "snapshot_every": 4 * SIZE, "threads": 1}

MOMENTS: dict[str, tuple[Any, str, str, int]] = {  # owner, call, before or after it, the latest call to die at
    "before a commit": (Journal, "append", "before", 6),
    "after a commit": (Journal, "append", "after", 6),
    "after a batch was applied": (SessionModel, "take_in", "after", 15),
    "within a snapshot": (checked_directory, "_write_array", "after", 30),
    "before a snapshot is in place": (checked_directory, "_put_in_place", "before", 1),
    "after a snapshot is in place": (checked_directory, "_put_in_place", "after", 1),
    "before an old snapshot is removed": (snapshot.shutil, "rmtree", "before", 1),
    "within a compaction": (Journal, "_drop", "after", 1),
    "after an anchor was begun": (BackgroundAnchor, "begin", "after", 1),
    "before an anchor is taken over": (BackgroundAnchor, "prepare", "before", 1),
    "after an anchor was taken over": (RippleRule, "adopt", "after", 1),
    "before changes are passed on": (JsonlSink, "write", "before", 30),
    "after changes were passed on": (JsonlSink, "flush", "after", 3),
}

FORK_SAFE = "jemalloc_bg_thd"
"""The thread of Arrow's allocator, which sees to forks itself."""

Tell = Callable[..., None]


def die_at(moment: str, call: int) -> None:
    """Have this process kill itself at the given call of the function that the moment names."""
    owner, name, when, _ = MOMENTS[moment]
    real, calls = getattr(owner, name), iter(range(1, 1 << 30))

    def wrapped(*given: Any, **options: Any) -> Any:
        last = next(calls) == call
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*given, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, wrapped)


def batch_of(rows: list[dict[str, Any]], number: int) -> Batch:
    """One batch of the stream, counted from 0."""
    lines = [("", json.dumps(row).encode()) for row in rows[number * SIZE : (number + 1) * SIZE]]
    return decode_messages(lines, ReadOptions())[0]


class TellingSource:
    """A source that tells the other process when a batch is safe."""

    def __init__(self, source: Any, session: Session, tell: Tell) -> None:
        self._source, self._session, self._tell = source, session, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def acknowledge(self, position: Any) -> None:
        """Pass it on, and tell."""
        self._source.acknowledge(position)
        self._tell("safe", self._session.model.sequence)


def work_through(place: Path, make: Callable[[], Any] | None, rows: list[dict[str, Any]], tell: Tell) -> None:
    """Open the session, report what it holds, and go on with the stream until its end."""
    with Session(place / "state", **SESSION) as session:
        tell("begun", session.model.sequence, session.model.digest(), session.recovery.snapshot)
        for note in session.recovery.notes:
            if "had not been finished" not in note:
                tell("fault", note)
        if make is None:
            send_with_keys(session, rows, tell)
        else:
            run_source(session, place, make, len(rows) // SIZE, tell)
        tell("done", session.model.sequence, session.model.digest())


def run_source(session: Session, place: Path, make: Callable[[], Any], batches: int, tell: Tell) -> None:
    """Read a source, with a sink for the changes."""
    source, sink, letters = make(), JsonlSink(place / "changes.jsonl"), JsonlDeadLetters(place / "bad.jsonl")
    session.run(TellingSource(source, session, tell), [sink], letters, lambda: session.model.sequence >= batches)
    source.close()


def send_with_keys(session: Session, rows: list[dict[str, Any]], tell: Tell) -> None:
    """Send every batch under a key, alone or in a group, beginning with some that are there already."""
    chooser, batches = random.Random(session.model.sequence), len(rows) // SIZE
    first = max(0, session.model.sequence - 3)
    while first < batches:
        last = min(first + chooser.choice([1, 1, 5]), batches)
        entries = [JournalEntry(batch_of(rows, number), key=f"batch {number}") for number in range(first, last)]
        answers = [getattr(answer, "sequence", answer) for answer in session.apply_many(entries)]
        if answers != list(range(first + 1, last + 1)):
            tell("fault", f"batches {first + 1} to {last} were answered with {answers}")
        tell("safe", last)
        first = last


def start_process(work: Callable[[Tell], None], prepare: Callable[[], None] | None) -> tuple[int, int]:
    """Fork; the number of the new process, and where to read what it tells."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the benchmark, and is no fault of a session
        os.close(reading)
        if prepare is not None:
            prepare()
        work(lambda *words: send(writing, words))
        os._exit(0)
    except BaseException as error:
        send(writing, ("fault", repr(error)))
        os._exit(1)


def send(pipe: int, words: Any) -> None:
    """Write one line of JSON."""
    os.write(pipe, (json.dumps(words) + "\n").encode())


def be_quiet() -> None:
    """Leave out warnings that every stream and every recovery gives."""
    warnings.simplefilter("ignore", SelfLoopWarning)
    logging.lastResort = None


def warm_up(rows: list[dict[str, Any]], place: Path) -> None:
    """Load every kernel that sessions use, so that processes forked from here have them at once."""
    work_through(place, None, rows, lambda *words: None)
    work_through(place, None, rows, lambda *words: None)  # recovery
    deadline = time.monotonic() + 60
    while left := [name for name in thread_names() if name != FORK_SAFE]:
        if time.monotonic() > deadline:
            raise SystemExit(f"threads before a fork: expected none beside this one, got {', '.join(left)}")
        time.sleep(0.01)


def thread_names() -> list[str]:
    """The names of all threads of this process but its first, those of C libraries included."""
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return [(task / "comm").read_text().strip() for task in others]
