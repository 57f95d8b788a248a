"""Kill a session with SIGKILL again and again; whatever it had acknowledged must be there, once, in the same bits.

    python benchmarks/crash.py [--kills 200] [--sources calls,file,folder,redis,kafka] [--batches 500] [--json FILE]

Each round takes in one stream in a process that is killed, begun again, killed again, until nothing is left of it, and
is compared with a process that was left alone. Some of the kills come at a random time, the others at a chosen moment:
before or after a commit, within a snapshot, a compaction, an anchor.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # processes are forked, so there should be no threads

import argparse
import json
import random
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _crash_sources import KINDS, SIZE, events, prepare, running_brokers

from ripplet.errors import SelfLoopWarning
from ripplet.io.base import ReadOptions
from ripplet.io.json_sinks import JsonlDeadLetters, JsonlSink
from ripplet.io.messages import decode_many
from ripplet.rules.pending import Pending
from ripplet.session import Entry, Session
from ripplet.state import files, snapshot
from ripplet.state.journal import Journal
from ripplet.state.model import KeptModel

PARAMETERS: dict[str, Any] = {
    "dim": 8,
    "start_size": 20,
    "anchor_growth": 0.05,
    "anchor_lag": 4,
    "snapshot_every": 6 * SIZE,
    "threads": 1,
}
MOST_KILLS = 30  # of one round
LONGEST = 0.3  # seconds until a kill at a random time

MOMENTS: dict[str, tuple[Any, str, str, int]] = {  # whose which call, before or after it, the latest that it may be
    "before a commit": (Journal, "append", "before", 12),
    "after a commit": (Journal, "append", "after", 12),
    "after a batch was applied": (KeptModel, "take_in", "after", 60),
    "within a snapshot": (files, "_write_array", "after", 40),
    "before a snapshot is in place": (files, "_put_in_place", "before", 2),
    "after a snapshot is in place": (files, "_put_in_place", "after", 2),
    "before an old snapshot is removed": (snapshot.shutil, "rmtree", "before", 1),
    "within a compaction": (Journal, "_drop", "after", 4),
    "after an anchor was begun": (Pending, "begin", "after", 2),
    "before an anchor is taken over": (Pending, "take_over", "before", 2),
    "after an anchor was taken over": (Pending, "take_over", "after", 2),
    "before changes are passed on": (JsonlSink, "write", "before", 60),
    "after changes were passed on": (JsonlSink, "flush", "after", 6),
}


@dataclass
class Round:
    """What one stream went through."""

    source: str
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0  # the last batch whose sender was told that it is safe
    begun: list[int] = field(default_factory=list)  # the last batch that was there, at every beginning
    snapshots: int = 0  # beginnings from a snapshot
    faults: list[str] = field(default_factory=list)


def die_at(moment: str, call: int) -> None:
    """Have this process kill itself at the given call of what the moment names."""
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


class Told:
    """A source that tells the other process when something is safe."""

    def __init__(self, source: Any, session: Session, tell: Callable[..., None]) -> None:
        self.source, self.session, self.tell = source, session, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def acknowledge(self, position: Any) -> None:
        """Pass it on, and tell."""
        self.source.acknowledge(position)
        self.tell("safe", self.session.model.sequence)


def take_in(place: Path, make: Callable[[], Any] | None, rows: list[dict[str, Any]], tell: Callable[..., None]) -> None:
    """What the killed process does: go on with the stream, and tell what is safe."""
    with Session(place / "state", **PARAMETERS) as session:
        tell("begun", session.model.sequence, session.recovery.snapshot)
        if session.recovery.notes and not all("had not been finished" in note for note in session.recovery.notes):
            tell("fault", *session.recovery.notes)
        if make is None:
            call(session, rows, tell)
        else:
            source, sink, letters = make(), JsonlSink(place / "changes.jsonl"), JsonlDeadLetters(place / "bad.jsonl")
            session.run(
                Told(source, session, tell), [sink], letters, lambda: session.model.sequence * SIZE >= len(rows)
            )
            source.close()
        tell("done", session.model.sequence, session.model.digest())


def call(session: Session, rows: list[dict[str, Any]], tell: Callable[..., None]) -> None:
    """A client that sends every batch under a key, and again those of which it was perhaps not told."""
    chooser = random.Random(session.model.sequence)
    first = max(0, session.model.sequence - 3)
    while first < len(rows) // SIZE:
        last = min(first + chooser.choice([1, 1, 5]), len(rows) // SIZE)
        entries = []
        for number in range(first, last):
            lines = [("", json.dumps(row).encode()) for row in rows[number * SIZE : (number + 1) * SIZE]]
            entries.append(Entry(decode_many(lines, ReadOptions())[0], key=f"batch {number}"))
        answers = session.apply_many(entries)
        tell("safe", max(answer.sequence for answer in answers))  # none of them can be refused
        first = last


def in_child(work: Callable[[Callable[..., None]], None], die: Callable[[], None] | None) -> tuple[int, int]:
    """Run something in a process of its own; its number, and where to read what it tells."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        warnings.simplefilter("ignore", SelfLoopWarning)
        if die is not None:
            die()
        work(lambda *words: os.write(writing, (json.dumps(words) + "\n").encode()))
        os._exit(0)
    except BaseException as error:
        os.write(writing, (json.dumps(["fault", repr(error)]) + "\n").encode())
        os._exit(1)


def messages(reading: int, until: float | None, child: int) -> Iterator[list[Any]]:
    """What a process tells until it ends; it is killed a while after it has begun, if asked."""
    import select

    rest, deadline = b"", None
    while True:
        wait = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([reading], [], [], wait)[0]:
            os.kill(child, signal.SIGKILL)
            deadline = None
            continue
        data = os.read(reading, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message[0] == "begun" and until is not None:
                deadline = time.monotonic() + until
            yield message


def go_on(one: Round, work: Callable[..., None], die: Any, until: float | None) -> list[Any] | None:
    """One life of the process: what it told at its end, None where it was killed before."""
    child, reading = in_child(work, die)
    done = None
    for kind, *words in messages(reading, until, child):
        if kind == "begun":
            one.begun.append(words[0])
            one.snapshots += words[1] > 0
            if words[0] < one.acknowledged:
                one.faults.append(f"batch {one.acknowledged} was acknowledged, and only {words[0]} are there")
        elif kind == "safe":
            one.acknowledged = max(one.acknowledged, words[0])
        elif kind == "done":
            done = words
        else:
            one.faults += map(str, words)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    return done if os.WIFEXITED(status) else None


def play(kind: str, seed: int, kills: int, batches: int, place: Path, brokers: dict[str, str]) -> Round:
    """Take in one stream under so many kills (fewer, if it comes to its end), and compare."""
    chooser, one = random.Random(seed), Round(kind)
    rows = events(batches * SIZE, seed)
    for name in ("left alone", "killed"):
        (place / name).mkdir(parents=True)
    make = None if kind == "calls" else prepare(kind, rows, place, brokers)
    expected = go_on(Round(kind), lambda tell: take_in(place / "left alone", make, rows, tell), None, None)
    done = None
    while done is None:
        moment, die, until = "none", None, None
        if sum(one.kills.values()) < kills:
            moment, die, until = chosen(chooser, kind)
        done = go_on(one, lambda tell: take_in(place / "killed", make, rows, tell), die, until)
        if done is None:
            one.kills[moment] += 1
        if one.faults:
            break
    if done != expected:
        one.faults.append(f"left alone: {expected}, killed {sum(one.kills.values())} times: {done}")
    if kind != "calls":
        one.faults += unpublished(place / "killed" / "changes.jsonl", batches)
    return one


def chosen(chooser: random.Random, kind: str) -> tuple[str, Callable[[], None] | None, float | None]:
    """The next kill: at a random time, or at a moment (which may not come before the stream ends)."""
    if chooser.random() < 0.4:
        return "a random time", None, chooser.random() * LONGEST
    moments = [moment for moment in MOMENTS if kind != "calls" or "passed on" not in moment]
    moment = chooser.choice(moments)
    number = chooser.randint(1, MOMENTS[moment][-1])
    return moment, lambda: die_at(moment, number), None


def unpublished(path: Path, batches: int) -> list[str]:
    """Which batches' changes did not get to the sink, if any; the last line may be half, as a kill leaves it."""
    seen = set()
    for line in path.read_bytes().splitlines():
        try:
            seen.add(json.loads(line)["sequence"])
        except ValueError:
            continue
    missing = set(range(1, batches + 1)) - seen
    return [f"changes of batches {sorted(missing)} were never passed on"] if missing else []


def main() -> None:
    """Rounds over all sources until there have been enough kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--sources", default=",".join(KINDS))
    parser.add_argument("--batches", type=int, default=500, help="of one stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    kinds, began = tuple(options.sources.split(",")), time.monotonic()
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as folder, running_brokers(kinds, Path(folder)) as brokers:
        while (left := options.kills - sum(sum(one.kills.values()) for one in rounds)) > 0:
            number = len(rounds)
            kind, place = kinds[number % len(kinds)], Path(folder) / f"{number}"
            kills = min(left, MOST_KILLS, -(-options.kills // len(kinds)))
            rounds.append(play(kind, options.seed + number, kills, options.batches, place, brokers))
            shutil.rmtree(place)
            print(f"{kind:8} {sum(rounds[-1].kills.values()):3} kills, {len(rounds[-1].faults)} faults", flush=True)
    report = summary(rounds, options.batches, time.monotonic() - began)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    raise SystemExit(1 if report["faults"] else 0)


def summary(rounds: list[Round], batches: int, seconds: float) -> dict[str, Any]:
    """The record."""
    moments: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    for one in rounds:
        moments += one.kills
        sources[one.source] += sum(one.kills.values())
    return {
        "kills": sum(sources.values()),
        "faults": [fault for one in rounds for fault in one.faults],
        "streams": len(rounds),
        "batches": len(rounds) * batches,
        "by_source": dict(sorted(sources.items())),
        "by_moment": dict(sorted(moments.items())),
        "beginnings": sum(len(one.begun) for one in rounds),
        "beginnings_from_a_snapshot": sum(one.snapshots for one in rounds),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()
