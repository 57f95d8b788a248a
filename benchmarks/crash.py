"""Kill a session with SIGKILL again and again; whatever it had acknowledged must be there, once, in the same bits.

    python benchmarks/crash.py [--kills 200] [--sources calls,file,folder,redis,kafka] [--batches 200] [--json FILE]

A stream is taken in by a process that is killed, started again, killed again, until the stream ends. Each new process
reports the sequence number and the digest of the state it found, which must be those of a process that is never killed.
Some kills come at a random time (also while the state is being recovered), the others at a chosen moment: before or
after a commit, within a snapshot, a compaction, an anchor. With `--json`, the kills are added to those of the record in
that file, and the streams go on with the next seed: 10,000 kills may be made in as many runs as it takes.

All processes are forked from this one, which has loaded the kernels and runs no threads: that makes kills cheap.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # processes are forked, so there should be no threads

import argparse
import gc
import json
import random
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _crash_process import MOMENTS, Tell, be_quiet, die_at, start_process, warm_up, work_through
from _crash_record import Record, Stream
from _crash_reference import Reference
from _crash_sources import KINDS, SIZE, events, prepare, running_brokers

MOST_KILLS = {"redis": 30, "kafka": 10}  # of one stream; their clients take longer to start
USUAL_KILLS = 60
LONGEST = 0.04  # seconds until a kill at a random time
WITH_OPENING = 0.25  # the share of random times that are counted from the fork: many fall into recovery


class Life:
    """One process: what it told until its end, and whether it was killed."""

    def __init__(self, work: Callable[[Tell], None], die: Callable[[], None] | None) -> None:
        self.begun: tuple[int, str, int] | None = None
        self.done: list[Any] | None = None
        self.acknowledged = 0
        self.faults: list[str] = []
        self._child, self._reading = start_process(work, die)

    def follow(self, after: float | None, counted_from_fork: bool) -> bool:
        """Read what it tells, kill it at its time; whether it was killed."""
        deadline = time.monotonic() + after if after is not None and counted_from_fork else None
        for kind, *words in self._messages(deadline, after):
            if kind == "begun":
                self.begun = words[0], words[1], words[2]
            elif kind == "safe":
                self.acknowledged = max(self.acknowledged, words[0])
            elif kind == "done":
                self.done = words
            else:
                self.faults += map(str, words)
        os.close(self._reading)
        _, status = os.waitpid(self._child, 0)
        return os.WIFSIGNALED(status)

    def _messages(self, deadline: float | None, after: float | None) -> Iterator[list[Any]]:
        rest = b""
        while True:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._reading], [], [], wait)[0]:
                os.kill(self._child, signal.SIGKILL)
                deadline = after = None
                continue
            data = os.read(self._reading, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message[0] == "begun" and after is not None and deadline is None:
                    deadline = time.monotonic() + after
                yield message


class Player:
    """Takes streams through their kills."""

    def __init__(self, reference: Reference, batches: int, brokers: dict[str, str]) -> None:
        self._reference, self._batches, self._brokers = reference, batches, brokers

    def play(self, kind: str, seed: int, kills: int, place: Path) -> Stream:
        """Take in one stream under so many kills (fewer, if it comes to its end), and compare."""
        began, chooser, one = time.monotonic(), random.Random(seed), Stream(kind, seed)
        rows = events(self._batches * SIZE, seed)
        make = None if kind == "calls" else prepare(kind, rows, place, self._brokers)
        done = False
        while not done and not one.faults:
            moment, die, after = "none", None, None
            if sum(one.kills.values()) < kills:
                moment, die, after = chosen(chooser, kind)
            life = Life(lambda tell: work_through(place, make, rows, tell), die)
            if life.follow(after, moment == RECOVERY):
                one.kills[moment] += 1
            done = life.done is not None
            self._compare(one, life)
        if kind != "calls" and not one.faults:
            one.faults += unpublished(place / "changes.jsonl", self._batches)
        one.seconds = time.monotonic() - began
        return one

    def _compare(self, one: Stream, life: Life) -> None:
        """Check what a process found when it began, and where it ended."""
        one.faults += life.faults
        if life.begun is not None:
            sequence, digest, snapshot = life.begun
            one.opened, one.from_snapshot = one.opened + 1, one.from_snapshot + (snapshot > 0)
            if sequence < one.acknowledged:
                one.faults.append(f"batch {one.acknowledged} was acknowledged, and only {sequence} are there")
            self._compare_digest(one, sequence, digest)
        one.acknowledged = max(one.acknowledged, life.acknowledged)
        if life.done is not None:
            one.batches = life.done[0]
            self._compare_digest(one, *life.done)
            if one.batches != self._batches:
                one.faults.append(f"{self._batches} batches were sent, and {one.batches} are there")

    def _compare_digest(self, one: Stream, sequence: int, digest: str) -> None:
        expected = self._reference.digest(one.seed, self._batches, sequence)
        if digest != expected:
            one.faults.append(f"digest after batch {sequence}: expected {expected}, got {digest}")


RECOVERY, RANDOM = "a random time from the fork on", "a random time"


def chosen(chooser: random.Random, kind: str) -> tuple[str, Callable[[], None] | None, float | None]:
    """The next kill: at a random time, or at a moment (which may not come before the stream ends)."""
    if chooser.random() < 0.5:
        moment = RECOVERY if chooser.random() < WITH_OPENING else RANDOM
        return moment, None, chooser.random() * LONGEST
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


def kill_often(record: Record, kinds: tuple[str, ...], kills: int, batches: int) -> None:
    """Streams over all sources until there have been so many more kills, or a fault."""
    goal = record.found["kills"] + kills
    with tempfile.TemporaryDirectory() as folder, running_brokers(kinds, Path(folder)) as brokers:
        warm_up(events(40 * SIZE, 0), Path(folder) / "warm")
        gc.freeze()  # collections in the processes that are killed would copy every page
        reference = Reference()
        player = Player(reference, batches, brokers)
        while (left := goal - record.found["kills"]) > 0 and not record.found["faults"]:
            number = record.found["streams"]
            kind, place = kinds[number % len(kinds)], Path(folder) / f"{number}"
            place.mkdir()
            most = min(left, MOST_KILLS.get(kind, USUAL_KILLS), -(-kills // len(kinds)))
            one = player.play(kind, record.found["next_seed"], most, place)
            record.add(one)
            count = sum(one.kills.values())
            print(f"{kind:8} {count:3} kills, {one.seconds:5.1f} s, {len(one.faults)} faults", flush=True)
            if one.faults:
                keep(place)
            shutil.rmtree(place)
        reference.close()


def keep(place: Path) -> None:
    """Leave a state with a fault where it can be looked at."""
    print(f"state kept: directory={shutil.copytree(place, Path(tempfile.mkdtemp(prefix='crash-')) / 'kept')}")


def main() -> None:
    """Kill, and write down what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="in this run, beside those of the record")
    parser.add_argument("--sources", default=",".join(KINDS))
    parser.add_argument("--batches", type=int, default=200, help="of one stream")
    parser.add_argument("--seed", type=int, default=0, help="of the first stream of a new record")
    parser.add_argument("--json", type=Path, help="the record: continued where it is there")
    options = parser.parse_args()
    be_quiet()
    record = Record(options.json, options.seed)
    kill_often(record, tuple(options.sources.split(",")), options.kills, options.batches)
    print(json.dumps(record.found, indent=1))
    raise SystemExit(1 if record.found["faults"] else 0)


if __name__ == "__main__":
    main()
