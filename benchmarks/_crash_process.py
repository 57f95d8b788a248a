"""Worker process of the crash test: opens a session, reports its state, and continues the stream until killed."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _crash_sources import BATCH_SIZE

from ripplevec import Batch
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded
from ripplevec.durability.journal import Journal
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.durability.session_model import SessionModel
from ripplevec.engine import correction_schedule
from ripplevec.errors import SelfLoopWarning
from ripplevec.io.messages import decode_messages
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink
from ripplevec.rules import gradual_correction
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.util import checked_directory
from ripplevec.views import background_choice

PARAMETERS: dict[str, Any] = {"dim": 8, "start_size": 20, "anchor_growth": 0.1}
SESSION: dict[str, Any] = {**PARAMETERS, "snapshot_every": 4 * BATCH_SIZE, "threads": 1}


def use_shards(shards: int) -> None:
    """Keep the model on shards, without anchors: only then it has the same bits as the reference on one machine."""
    SESSION.update(model=Sharded(shards, IN_PROCESS), anchor_growth=0)


MOMENTS: dict[str, tuple[Any, str, str, int]] = {  # owner, function, before or after the call, last call to kill at
    "before a commit": (Journal, Journal.append.__name__, "before", 6),
    "after a commit": (Journal, Journal.append.__name__, "after", 6),
    "after a batch was applied": (SessionModel, SessionModel.apply_batch.__name__, "after", 15),
    "within a snapshot": (checked_directory, checked_directory._write_array.__name__, "after", 30),
    "before a snapshot is in place": (checked_directory, checked_directory._move_into_place.__name__, "before", 1),
    "after a snapshot is in place": (checked_directory, checked_directory._move_into_place.__name__, "after", 1),
    "before an old snapshot is removed": (shutil, "rmtree", "before", 1),
    "within a compaction": (Journal, Journal._drop_batches.__name__, "after", 1),
    "after a slice of an anchor": (GradualCorrection, GradualCorrection.advance.__name__, "after", 15),
    "after a stage of an anchor was begun": (GradualCorrection, GradualCorrection._begin_stage.__name__, "after", 12),
    "before an anchor replaces all rows": (GradualCorrection, GradualCorrection._swap.__name__, "before", 1),
    "after an anchor has replaced all rows": (GradualCorrection, GradualCorrection._swap.__name__, "after", 1),
    "before changes are passed on": (JsonlSink, JsonlSink.write.__name__, "before", 30),
    "after changes were passed on": (JsonlSink, JsonlSink.flush.__name__, "after", 3),
}

FORK_SAFE_THREAD = "jemalloc_bg_thd"
"""Thread of Arrow's memory allocator, which handles forks itself."""

Report = Callable[..., None]
"""Function that sends a report, a kind and its values, to the parent process."""


def slow_down_anchors() -> None:
    """Let anchors take many batches, as on a large graph."""
    correction_schedule.SPREAD_VERTICES = 1


def kill_self_at(moment: str, call: int) -> None:
    """Make this process kill itself at the given call of the function that belongs to a moment."""
    owner, name, when, _ = MOMENTS[moment]
    function, calls = getattr(owner, name), iter(range(1, 1 << 30))

    def wrapped(*arguments: Any, **options: Any) -> Any:
        last = next(calls) == call
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, wrapped)


def make_batch(rows: list[dict[str, Any]], number: int) -> Batch:
    """Return the batch with a number, counted from 0, of a stream."""
    lines = [("", json.dumps(row).encode()) for row in rows[number * BATCH_SIZE : (number + 1) * BATCH_SIZE]]
    return decode_messages(lines, ReadOptions())[0]


class ReportingSource:
    """Source that reports every acknowledgment to the parent process."""

    def __init__(self, source: Any, session: Session, report: Report) -> None:
        self._source, self._session, self._report = source, session, report

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def acknowledge(self, position: Any) -> None:
        """Acknowledge to the source, and report."""
        self._source.acknowledge(position)
        self._report("acknowledged", self._session.model.sequence)


def process_stream(
    directory: Path, make_source: Callable[[], Any] | None, rows: list[dict[str, Any]], report: Report
) -> None:
    """Open the session, report its state, and continue the stream to its end."""
    with Session(directory / "state", **SESSION) as session:
        report("recovered", session.model.sequence, session.model.digest(), session.recovery.snapshot)
        for note in session.recovery.notes:
            if "dropped the last write" not in note:
                report("fault", note)
        if make_source is None:
            apply_with_keys(session, rows, report)
        else:
            run_source(session, directory, make_source, len(rows) // BATCH_SIZE, report)
        report("final", session.model.sequence, session.model.digest())


def run_source(session: Session, directory: Path, make_source: Callable[[], Any], batches: int, report: Report) -> None:
    """Run the session on a source, with a sink for the changes."""
    source, sink = make_source(), JsonlSink(directory / "changes.jsonl")
    dead_letters = JsonlDeadLetters(directory / "bad.jsonl")
    reporting = ReportingSource(source, session, report)
    session.run(reporting, [sink], dead_letters, lambda: session.model.sequence >= batches)
    source.close()


def apply_with_keys(session: Session, rows: list[dict[str, Any]], report: Report) -> None:
    """Apply every batch with a key, alone or in a group; the first ones repeat batches that are already applied."""
    chooser, batches = random.Random(session.model.sequence), len(rows) // BATCH_SIZE
    first = max(0, session.model.sequence - 3)
    while first < batches:
        last = min(first + chooser.choice([1, 1, 5]), batches)
        entries = [JournalEntry(make_batch(rows, number), key=f"batch {number}") for number in range(first, last)]
        results = [getattr(result, "sequence", result) for result in session.apply_many(entries)]
        if results != list(range(first + 1, last + 1)):
            report("fault", f"results: expected batches {first + 1} to {last}, got {results}")
        report("acknowledged", last)
        first = last


def start_process(work: Callable[[Report], None], prepare: Callable[[], None] | None) -> tuple[int, int]:
    """Fork a process; return its id and the file descriptor from which its reports can be read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the benchmark and must not count as a fault
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


def silence_warnings() -> None:
    """Suppress the warnings that every stream and every recovery produce."""
    warnings.simplefilter("ignore", SelfLoopWarning)
    logging.lastResort = None


def warm_up(rows: list[dict[str, Any]], directory: Path) -> None:
    """Load every kernel that sessions use, so that forked processes have them at once."""
    process_stream(directory, None, rows, lambda *words: None)
    process_stream(directory, None, rows, lambda *words: None)  # recovery
    gradual_correction._solver().shutdown()
    gradual_correction._solver_of_process.cache_clear()
    background_choice._worker(os.getpid()).shutdown()
    background_choice._worker.cache_clear()
    deadline = time.monotonic() + 60
    while others := [name for name in thread_names() if name != FORK_SAFE_THREAD]:
        if time.monotonic() > deadline:
            raise SystemExit(f"threads before a fork: expected only the main thread, got {', '.join(others)}")
        time.sleep(0.01)


def thread_names() -> list[str]:
    """Return the names of all threads of this process but the main one, including those of C libraries."""
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return [(task / "comm").read_text().strip() for task in others]
